"""The topics that a group reads now: commits outlive a subscription by days, while no member consumes those topics.

Kafka keeps the commits of a topic for seven days after a group has stopped reading it (`offsets.retention.minutes`).
The lag of that topic grows all the while, and no added replica could reduce it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from collector.kafka_requests import GroupDescription

# Between the two rebalances of a cooperative move a partition has no owner, though the group reads its topic.
NOBODYS_FOR = timedelta(seconds=600)
# By default, Kafka removes a group without members after this time.
FORGOTTEN_AFTER = timedelta(days=7)


class Subscriptions:
    """The topics of each group's assigned partitions, as last seen."""

    def __init__(self) -> None:
        self._held_at: dict[str, dict[str, datetime]] = {}

    def forget(self, now: datetime) -> None:
        """Drop groups that were last seen at rest more than a week ago."""
        held = self._held_at.items()
        self._held_at = {name: at for name, at in held if now - max(at.values()) <= FORGOTTEN_AFTER}

    def topics(self, name: str, group: GroupDescription, committed: Iterable[str], *, now: datetime) -> frozenset[str]:
        """The topics with a partition that a member owns, or owned within ten minutes; `committed` if none was seen.

        For a group that is being rebalanced, or has no members: the topics from when it was last seen at rest.
        """
        held = {topic for topic, _ in group.assigned}
        if group.state == "STABLE" and held:
            before = self._held_at.get(name, {})
            self._held_at[name] = {topic: at for topic, at in before.items() if now - at <= NOBODYS_FOR}
            self._held_at[name].update(dict.fromkeys(held, now))
        elif name not in self._held_at:
            return frozenset(held).union(committed)
        return frozenset(held).union(self._held_at[name])
