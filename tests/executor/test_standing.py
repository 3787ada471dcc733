"""The record that an executor keeps of its moves if a cluster does not take it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from executor.errors import ScaleError
from executor.standing import Applied, Record, Spot, Standings


class Away:
    """Records that can be read and never written, and how often that was tried."""

    def __init__(self) -> None:
        self.tried = 0

    def read(self, _: str) -> Mapping[tuple[str, str], Record]:
        """Three groups."""
        return {("c", group): Record(name=group, uid=group) for group in "abc"}

    def write(self, _namespace: str, _record: Record) -> None:
        """Not now."""
        self.tried += 1
        message = "the API server does not answer"
        raise ScaleError(message)


def test_a_cluster_that_is_away_is_asked_once_more_and_not_for_each_group() -> None:
    """Of 200 moves whose records time out after ten seconds each, the next look is not half an hour late."""
    records = Away()
    standings = Standings(records)
    applied = Applied(recommendation_id="r-1", replicas=8, at=datetime(2026, 1, 5, 12, tzinfo=UTC))
    for group in "abc":
        spot = Spot("c", group, "shop", "apps/v1", "Deployment", group)
        standings.acted(spot, applied)
        standings.keep(spot)
    assert records.tried == 3
    standings.keep_unwritten()
    assert records.tried == 4
