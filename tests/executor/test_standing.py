"""The record that an executor keeps of its moves while a cluster does not accept it."""

from collections.abc import Mapping
from datetime import UTC, datetime

from executor.errors import ScaleError
from executor.standing import Applied, Record, Spot, Standings


class Away:
    """Records that can be read and never written, with the count of attempts."""

    def __init__(self) -> None:
        self.tried = 0

    def read(self, _: str) -> Mapping[tuple[str, str], Record]:
        """Return three groups."""
        return {("c", group): Record(name=group, uid=group) for group in "abc"}

    def write(self, _namespace: str, _record: Record) -> None:
        """Fail, and count the attempt."""
        self.tried += 1
        message = "the API server does not answer"
        raise ScaleError(message)


def test_an_unreachable_cluster_gets_one_further_attempt_and_not_one_for_each_group() -> None:
    """After one failed write the others wait for the next look, so that 200 timeouts of ten seconds do not delay it."""
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
