"""Groups that are no consumer groups: their kind, why there is nothing to sample, and the remedy."""

from collections.abc import Mapping

from collector.errors import UnsupportedError
from collector.kafka_requests import KafkaRequests

_STREAMS = (
    "a Kafka Streams group of the newer protocol (KIP-1071) is not supported: its members own tasks, and Kafka's "
    "client can request neither them nor its state; leave it out, or set group.protocol=classic in that application"
)
_SHARE = (
    "a share group (KIP-932), or a Kafka Streams group (KIP-1071) that has committed nothing yet, is not supported: a "
    "share group settles single messages, so that no partition has a committed offset and members may outnumber "
    "partitions; leave it out, and scale it by another signal"
)


def unsupported(kafka: KafkaRequests, protocol_types: Mapping[str, str]) -> dict[str, UnsupportedError]:
    """One sentence for each of these groups, which the cluster lists, but not as consumer groups.

    Share and Streams groups both come without a protocol type; the client lists commits of the latter alone.
    """
    unnamed = [name for name, protocol_type in protocol_types.items() if not protocol_type]
    commits = kafka.committed_offsets(unnamed).got
    return {
        name: UnsupportedError(_sentence(protocol_type, has_commits=bool(commits.get(name))))
        for name, protocol_type in protocol_types.items()
    }


def _sentence(protocol_type: str, *, has_commits: bool) -> str:
    if protocol_type:
        return f"a {protocol_type!r} group is not supported: its members share out something else than partitions"
    return _STREAMS if has_commits else _SHARE
