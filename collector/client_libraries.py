"""The libraries that a group's members use, by the client ids that each library gives where its application does not.

Member ids tell no more: a broker makes them of the client id and a random part, and members of the newer protocol of a
random part alone. Hosts tell nothing of a library.
"""

import re
from collections.abc import Iterable

# A client id that its application has chosen, or that no library below gives.
UNKNOWN = "unknown"
# Default client ids, by the word of the setting `client`; `{group}` is the group's name. Each with its source:
_DEFAULTS = (
    # KafkaConsumer of apache/kafka: "consumer-<group.id>-<group.instance.id, or a number>", before 2.4 "consumer-<n>".
    ("java", r"consumer-{group}-.+|consumer-\d+"),
    # ClientUtils.consumerClientId of apache/kafka: the consumer of a Streams thread.
    ("java", r".+-StreamThread-\d+-consumer"),
    # SinkTask consumers of Kafka Connect, ConnectUtils and Worker of apache/kafka: "connector-consumer-<name>-<task>".
    ("java", r"connector-consumer-.+-\d+"),
    # rdkafka_conf.c of confluentinc/librdkafka; the clients of Confluent for Python, Go, .NET and JavaScript keep it.
    ("librdkafka", r"rdkafka"),
    # kafka/consumer/group.py of dpkp/kafka-python: "kafka-python-<version>".
    ("kafka-python", r"kafka-python-\d.*"),
    # aiokafka/consumer/consumer.py of aio-libs/aiokafka: "aiokafka-<version>".
    ("aiokafka", r"aiokafka-\d.*"),
    # src/network/connection.js of tulios/kafkajs.
    ("kafkajs", r"kafkajs"),
    # config.go of IBM/sarama.
    ("sarama", r"sarama"),
    # pkg/kgo/config.go of twmb/franz-go.
    ("franz-go", r"kgo"),
    # conn.go of segmentio/kafka-go: "<program>@<host> (github.com/segmentio/kafka-go)".
    ("kafka-go", r".*\(github\.com/segmentio/kafka-go\)"),
)


def client_libraries(group: str, client_ids: Iterable[str]) -> str | None:
    """The libraries that the client ids of a group's members name, sorted, joined by a comma; None without members.

    >>> client_libraries("orders", ["consumer-orders-1", "consumer-orders-2", "rdkafka"])
    'java,librdkafka'
    >>> client_libraries("orders", ["orders-5f7d", "consumer-payments-1"])
    'unknown'
    """
    known = re.escape(group)
    found = {
        next(
            (name for name, pattern in _DEFAULTS if re.fullmatch(pattern.replace("{group}", known), client_id)), UNKNOWN
        )
        for client_id in client_ids
    }
    return ",".join(sorted(found)) or None
