"""Members of consumer groups with the client kafka-python, which take the commands of `java/BatchMembers.java`.

    python -m benchmarks.discovery.kafka_python_members BOOTSTRAP

PROTOCOL, BATCH_MS and INSTANCE are not read: a member has the client's own defaults and works message by message.
"""

import sys
import threading
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.rebalances.members import run_members


def work(bootstrap: str, words: Sequence[str], closing: threading.Event) -> None:
    """Run one member until `closing` is set."""
    # Its import warns, and warnings are errors where modules are looked through for examples.
    from kafka import KafkaConsumer  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    group, topic, record_microseconds = words[1], words[2], int(words[5])
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    while not closing.is_set():
        for messages in consumer.poll(timeout_ms=100, max_records=1).values():
            time.sleep(len(messages) * record_microseconds / 1e6)
    consumer.close()


if __name__ == "__main__":
    run_members(partial(work, sys.argv[1]))
