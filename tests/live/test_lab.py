"""The lab in short: each policy on a real broker for twenty seconds, with replicas that are processes."""

import pytest

from benchmarks.lab.policies import setting_of
from benchmarks.lab.processes import play, table_of

pytestmark = pytest.mark.kafka

SECONDS = 20


@pytest.mark.usefixtures("jars")
def test_every_message_of_every_policy_is_done_and_accounted_for() -> None:
    """Fixed, KEDA's rule and lagcast lose nothing, and each figure covers as many messages as the trace has."""
    setting = setting_of("cooperative", seconds=SECONDS, most_replicas=3)
    results = play(setting, ("fixed", "keda", "lagcast"))
    produced = float(setting.trace.messages_per_second.sum())
    assert [result.policy for result in results] == ["fixed", "keda", "lagcast"]
    for result in results:
        found = result.account
        assert found.lost_messages == 0
        assert found.messages == pytest.approx(produced, rel=0.05)
        assert 0.0 < found.wait_p50_seconds <= found.wait_p99_seconds
        assert found.mean_lag_messages > 0.0
        assert found.replica_seconds > SECONDS
    assert results[0].moves == 0
    assert table_of(results, setting).count("\n") == 5
