"""A consumer, or a producer, of kafka-python, in a process of its own.

python -m tests.live.harness.kafka_python BOOTSTRAP TOPIC produce COUNT
python -m tests.live.harness.kafka_python BOOTSTRAP TOPIC consume GROUP
"""

import signal
import sys
import threading


def main() -> None:
    """Produce so many messages, or consume until SIGTERM."""
    # Its import warns, and warnings are errors where modules are looked through for examples.
    from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    bootstrap, topic, does, what = sys.argv[1:]
    if does == "produce":
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        for _ in range(int(what)):
            producer.send(topic, b"message")
        producer.flush(30)
        producer.close()
        return
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=what,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
    )
    while not ended.is_set():
        consumer.poll(timeout_ms=100)
    consumer.close()


if __name__ == "__main__":
    main()
