"""Which library a group's members use: a likelihood for each, from what Kafka shows of the group.

A client id that its library gives by default names it. Where an application has chosen the ids, the assignor may: some
belong to one library only, and the newer protocol is spoken by few. What several libraries do alike tells nothing, and
then the library stays unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cost_model.physics.profile import Client

# From this likelihood on the library counts as seen.
CERTAIN = 0.95
# Of the libraries, the one whose answer to a rebalance was measured to come from a thread of its own, and the one that
# was measured to answer at its next poll. The others are taken to answer like the second: their stops are the longer.
MEASURED: frozenset[Client] = frozenset({"java", "librdkafka"})
# An application keeps its library's default assignor, or client ids, about as often as it sets its own.
_KEPT = 0.5
# Odds of an application that uses the words of another library: an assignor or a client id of one's own making.
_IMITATED = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Library:
    """The assignors of a library, its default first, and whether it speaks the newer protocol, KIP-848."""

    assignors: tuple[str, ...]
    newer_protocol: bool = False


_FOUR = ("range", "roundrobin", "sticky", "cooperative-sticky")
_LIBRARIES: Mapping[Client, _Library] = {
    # ConsumerConfig of apache/kafka: [RangeAssignor, CooperativeStickyAssignor]; "stream" is Kafka Streams' own.
    "java": _Library(assignors=(*_FOUR, "stream"), newer_protocol=True),
    # CONFIGURATION.md of confluentinc/librdkafka: "range,roundrobin"; group.protocol=consumer.
    "librdkafka": _Library(assignors=("range", "roundrobin", "cooperative-sticky"), newer_protocol=True),
    # kafka/consumer/group.py of dpkp/kafka-python: (RangePartitionAssignor, RoundRobinPartitionAssignor).
    "kafka-python": _Library(assignors=_FOUR),
    # aiokafka/consumer/consumer.py of aio-libs/aiokafka: (RoundRobinPartitionAssignor,).
    "aiokafka": _Library(assignors=("roundrobin", "range", "sticky")),
    # src/consumer/assigners/roundRobinAssigner of tulios/kafkajs, which capitalises the name of its own one.
    "kafkajs": _Library(assignors=("RoundRobinAssigner",)),
    # config.go of IBM/sarama: NewBalanceStrategyRange.
    "sarama": _Library(assignors=("range", "roundrobin", "sticky")),
    # pkg/kgo/config.go of twmb/franz-go: CooperativeStickyBalancer.
    "franz-go": _Library(assignors=("cooperative-sticky", "sticky", "range", "roundrobin"), newer_protocol=True),
    # consumergroup.go of segmentio/kafka-go: [Range, RoundRobin]; groupbalancer.go: "rack-affinity".
    "kafka-go": _Library(assignors=("range", "roundrobin", "rack-affinity")),
}


def likelihoods(clients: str | None, *, assignor: str | None, newer_protocol: bool) -> dict[Client, float]:
    """How likely each library is, in sum 1, all alike before anything is seen.

    `clients` are the libraries that client ids name, joined by a comma, "unknown" among them for ids that an owner
    chooses; the assignor counts under the classic protocol alone, since under the newer one it is the broker's.

    >>> seen = likelihoods("unknown", assignor="RoundRobinAssigner", newer_protocol=False)
    >>> max(seen, key=seen.get), round(seen["kafkajs"], 2)
    ('kafkajs', 0.99)
    >>> {round(value, 2) for value in likelihoods(None, assignor=None, newer_protocol=False).values()}
    {0.12}
    """
    named = frozenset((clients or "").split(",")) & _LIBRARIES.keys()
    weights = {
        name: _of_names(name, named)
        * (1.0 if newer_protocol or assignor is None else _of_assignor(library, assignor))
        * (1.0 if library.newer_protocol or not newer_protocol else _IMITATED)
        for name, library in _LIBRARIES.items()
    }
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def client_of(clients: str | None, *, assignor: str | None, newer_protocol: bool) -> Client | None:
    """The library of all members; "other" where they use several, None where it is not known.

    >>> client_of("java", assignor="range", newer_protocol=False), client_of("java,sarama", assignor="range",
    ...     newer_protocol=False), client_of("unknown", assignor="range", newer_protocol=False)
    ('java', 'other', None)
    """
    words = frozenset((clients or "").split(",")) - {""}
    if len(words & _LIBRARIES.keys()) > 1:
        return "other"
    if words & _LIBRARIES.keys() and words - _LIBRARIES.keys():
        return None  # one library, and members that do not tell theirs
    likely = likelihoods(clients, assignor=assignor, newer_protocol=newer_protocol)
    most = max(likely, key=lambda name: likely[name])
    return most if likely[most] >= CERTAIN else None


def _of_names(name: Client, named: frozenset[str]) -> float:
    if not named:
        return 1.0  # under ids of an application's own all are alike
    return _KEPT if name in named else _IMITATED


def _of_assignor(library: _Library, assignor: str) -> float:
    """The share of a library's groups with this assignor: half of them the default, the others alike."""
    if assignor == library.assignors[0]:
        return _KEPT
    return (1.0 - _KEPT) / (len(library.assignors) - 1) if assignor in library.assignors else _IMITATED
