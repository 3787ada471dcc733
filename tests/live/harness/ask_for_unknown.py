"""Rounds of requests for offsets, also of topics that do not exist, as a process of its own.

    python -m tests.live.harness.ask_for_unknown BOOTSTRAP TOPIC

Each of many clients asks for the offsets of TOPIC and of partitions whose leaders it looks for in vain. Tells how many
rounds were answered.
"""

import sys

from collector.kafka_requests import KafkaRequests

CLIENTS, ROUNDS = 60, 10


def main(bootstrap: str, topic: str) -> None:
    """Ask."""
    answered = 0
    for _ in range(CLIENTS):
        kafka = KafkaRequests(bootstrap, cluster="live", client_config={})
        for number in range(ROUNDS):
            partitions = [(topic, 0), *((f"never-made-{number}", partition) for partition in range(4))]
            limits = kafka.limits(open_ended=partitions, stable=partitions)
            answered += [*limits.ends.got, *limits.stable_ends.got, *limits.starts.got] == [(topic, 0)] * 3
    sys.stdout.write(str(answered))


if __name__ == "__main__":
    main(*sys.argv[1:])
