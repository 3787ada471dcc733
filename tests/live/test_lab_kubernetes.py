"""The lab in Kubernetes in short: lagcast and its executor scale real consumers by a real control plane."""

from pathlib import Path

import pytest

from benchmarks.lab.kubernetes import play_one
from benchmarks.lab.policies import setting_of
from tests.live.harness.control_plane import built_control_plane

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes]

# In a minute that takes three pods at its end, two are enough at its beginning.
SECONDS, MOST_REPLICAS, FIRST_REPLICAS = 60, 3, 2


@pytest.mark.usefixtures("jars", "tools_for_kubernetes")
def test_lagcast_scales_the_consumers_of_ready_pods_and_loses_nothing(tmp_path: Path) -> None:
    """Two pods become three by its advice and its executor; the ready pods do the work, and every message is done."""
    setting = setting_of("cooperative", seconds=SECONDS, most_replicas=MOST_REPLICAS)
    played = play_one("lagcast", setting, tmp_path, built_control_plane())
    account, looks = played.result.account, played.looks
    assert account.lost_messages == 0
    assert account.messages == pytest.approx(float(setting.trace.messages_per_second.sum()), rel=0.05)
    assert looks[0].replicas == FIRST_REPLICAS
    assert (looks[-1].replicas, len(looks[-1].ready)) == (MOST_REPLICAS, MOST_REPLICAS)
    assert played.result.moves >= 1
    assert all(look.processes == len(look.ready) for look in looks)
    assert set(played.result.worked) == {pod for look in looks for pod in look.ready}
    log = (tmp_path / "executor.log").read_text()
    assert log.count('"event": "acted"') == played.result.moves
