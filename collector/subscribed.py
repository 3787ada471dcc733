"""The topics that a group reads now: commits outlive a subscription by days, and nobody consumes those topics.

Kafka keeps the commits of a topic that a group has given up for seven days (`offsets.retention.minutes`). Its lag grows
all the while, and no replica that is added could make it less.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from collector.kafka_requests import GroupDescription

# Between the two rebalances of a cooperative move a partition is nobody's, though the group reads its topic.
NOBODYS_FOR = timedelta(seconds=600)
# A group without members is forgotten by Kafka, by default, after so long.
FORGOTTEN_AFTER = timedelta(days=7)


class Subscriptions:
    """The topics that each group was seen to hold, until it holds others."""

    def __init__(self) -> None:
        self._held_at: dict[str, dict[str, datetime]] = {}

    def forget(self, now: datetime) -> None:
        """Give up what was known of groups that were last seen at rest a week ago."""
        held = self._held_at.items()
        self._held_at = {name: at for name, at in held if now - max(at.values()) <= FORGOTTEN_AFTER}

    def topics(self, name: str, group: GroupDescription, committed: Iterable[str], *, now: datetime) -> frozenset[str]:
        """The topics of which a member holds a partition, or did within ten minutes; `committed` where none was seen.

        A group that is being rebalanced, or has no members, reads what it read when it was last seen at rest.
        """
        held = {topic for topic, _ in group.assigned}
        if group.state == "STABLE" and held:
            before = self._held_at.get(name, {})
            self._held_at[name] = {topic: at for topic, at in before.items() if now - at <= NOBODYS_FOR}
            self._held_at[name].update(dict.fromkeys(held, now))
        elif name not in self._held_at:
            return frozenset(held).union(committed)
        return frozenset(held).union(self._held_at[name])
