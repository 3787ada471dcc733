"""The lab in short: each arm on a real broker for twenty seconds, with replicas that are processes."""

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
SECONDS = 20


@pytest.mark.usefixtures("jars")
def test_every_message_of_every_arm_is_done_and_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed, KEDA's rule and lagcast lose nothing, and each figure is of as many messages as the trace asked for."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    lab = importlib.import_module("lab")
    setting = lab.setting_of("cooperative", seconds=SECONDS, most_replicas=3)
    results = lab.play(setting, ("fixed", "keda", "lagcast"))
    asked = float(setting.trace.messages_per_second.sum())
    assert [result.arm for result in results] == ["fixed", "keda", "lagcast"]
    for result in results:
        found = result.account
        assert found.lost_messages == 0
        assert found.messages == pytest.approx(asked, rel=0.05)
        assert 0.0 < found.wait_p50_seconds <= found.wait_p99_seconds
        assert found.mean_lag_messages > 0.0
        assert found.replica_seconds > SECONDS
    assert results[0].moves == 0
    assert lab.table_of(results, setting).count("\n") == 5
