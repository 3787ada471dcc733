"""Our HPA and our KEDA, the rivals of the replays, beside the real ones: the same series, step for step."""

from collections.abc import Iterator

import pytest

from tests.live.control_plane import ControlPlane, built_control_plane
from tests.live.hpa_shadow import HPA_SERIES, Hand, Look, Series, distinct, read_book, shadowed
from tests.live.hpa_stage import flags, played

pytestmark = pytest.mark.kubernetes

HPAS = read_book(HPA_SERIES)
# The controller reads its clock when it has been answered, and again when it has scaled: a little later than the answer
# left here. A want or a rescale whose age is nearer than this to the end of a window may count or not. Looks are 1.4 s
# apart, and windows whole seconds.
SLACK_SECONDS = 0.3


@pytest.fixture(scope="module")
def cluster(tools_for_kubernetes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, whose autoscalers look as often as the series are written for."""
    del tools_for_kubernetes
    binary, folder = built_control_plane(), tmp_path_factory.mktemp("cluster")
    cluster = ControlPlane(binary, folder, controller_flags=flags(HPAS))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def seen(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Look | Hand]]:
    """What happened in each series of an HPA, all played at once."""
    return played(HPAS, cluster, tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in HPAS.series])
def test_our_hpa_commands_what_the_real_one_commands(seen: dict[str, list[Look | Hand]], series: Series) -> None:
    """At each look the same count, of what the real one saw at the instants at which it did.

    The file's counts come first; the last metric is told until all series are over, and may lead on.
    """
    events = seen[series.name]
    counts = [event.replicas for event in events if isinstance(event, Look)]
    slacks = (0.0, -SLACK_SECONDS, SLACK_SECONDS)
    assert counts in [shadowed(series, events, book=HPAS, slack_seconds=slack) for slack in slacks]
    assert distinct(counts)[: len(series.counts)] == list(series.counts)
