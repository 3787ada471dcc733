"""Our HPA and our KEDA, the rivals of the replays, beside the real ones: the same series, step by step."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from tests.live.harness.control_plane import ControlPlane, built_control_plane
from tests.live.harness.hpa_shadow import HPA_SERIES, Hand, Look, Series, distinct, missteps, read_book
from tests.live.harness.hpa_stage import flags, played
from tests.live.harness.keda_processes import Keda, built_keda
from tests.live.harness.keda_shadow import KEDA_SERIES, KedaSeries, Reading, overtaken, read_keda_series, shadowed_keda
from tests.live.harness.keda_stage import played_by_keda

pytestmark = [pytest.mark.kubernetes, pytest.mark.alone]

HPAS = read_book(HPA_SERIES)
SCALED_OBJECTS = read_keda_series(KEDA_SERIES)
# The controller reads its clock when it has been answered, and again when it has scaled: a little later than the answer
# left here. A want or a rescale whose age is nearer than this to the end of a window may count or not. Looks are 1.4 s
# apart, and windows whole seconds.
SLACK_SECONDS = 0.3
SLACKS_SECONDS = (0.0, -SLACK_SECONDS, SLACK_SECONDS)


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
    """The events of each series of an HPA, all played at once."""
    return played(HPAS, cluster, tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in HPAS.series])
def test_our_hpa_commands_the_counts_of_the_real_one(seen: dict[str, list[Look | Hand]], series: Series) -> None:
    """At each look the count is the same, from what the real one saw and did before, at the same instants.

    If the machine was in time they are those of the file; the last metric stays until all series are over, and may
    lead on.
    """
    events = seen[series.name]
    assert missteps(series, events, book=HPAS, slack_seconds=SLACK_SECONDS) == []
    looks = [event for event in events if isinstance(event, Look) and event.read is not None]
    scripted = looks[: 1 + sum(step.looks for step in series.steps)]
    if is_in_time(scripted) and all(look.replicas == look.status_replicas for look in scripted):
        counts = distinct([event.replicas for event in events])
        assert counts[: len(series.counts)] == list(series.counts)


@pytest.fixture(scope="module")
def keda(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keda]:
    """A KEDA beside it."""
    keda = Keda(built_keda(), cluster, tmp_path_factory.mktemp("keda"))
    try:
        keda.start()
        yield keda
    finally:
        keda.stop()


@pytest.fixture(scope="module")
def read(
    cluster: ControlPlane, keda: Keda, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Reading]]:
    """The readings of each series of KEDA, all played at once."""
    folder = tmp_path_factory.mktemp("scaled")
    return played_by_keda(SCALED_OBJECTS, cluster, keda, folder, bootstrap=bootstrap)


@pytest.mark.kafka
@pytest.mark.parametrize("series", [pytest.param(series, id=series.name) for series in SCALED_OBJECTS])
def test_our_keda_gives_the_counts_of_the_real_one(read: dict[str, list[Reading]], series: KedaSeries) -> None:
    """The same counts, each within a reading of the other; the real one's loop and HPA do not wait for each other."""
    readings = read[series.name]
    counts = [reading.replicas for reading in readings]
    if is_in_time(readings, polling_seconds=series.polling):
        assert distinct(counts)[: len(series.counts)] == list(series.counts)
    window_seconds = HPAS.stabilisation_seconds
    ours = [
        shadowed_keda(series, readings, stabilisation_seconds=window_seconds, slack_seconds=slack, lost=lost)
        for lost in ((), overtaken(readings, within_seconds=SLACK_SECONDS))
        for slack in SLACKS_SECONDS
    ]
    apart_seconds = SLACK_SECONDS + max(HPAS.sync_seconds, series.polling)
    real = changes(counts, readings)
    alike = [are_alike(real, changes(found, readings), apart_seconds=apart_seconds) for found in ours]
    assert any(alike), side_by_side(counts, ours[0], readings)


def is_in_time(seen: Sequence[Look | Reading], *, polling_seconds: float = 0.0) -> bool:
    """True if no look or poll was late by more than half of the period: files are written for such a machine."""
    longest = max(after.at_seconds - before.at_seconds for before, after in pairwise(seen))
    return longest <= 1.5 * max(HPAS.sync_seconds, polling_seconds)


Change = tuple[float, int]


def are_alike(these: Sequence[Change], those: Sequence[Change], *, apart_seconds: float) -> bool:
    """True if the counts are the same, one after the other, and came at instants that are not further apart."""
    return [count for _, count in these] == [count for _, count in those] and all(
        abs(this - that) <= apart_seconds for (this, _), (that, _) in zip(these, those, strict=True)
    )


def changes(counts: Sequence[int], seen: Sequence[Reading]) -> list[Change]:
    """The instant and the value of each new count."""
    instants = [reading.at_seconds for reading in seen]
    before = [None, *counts[:-1]]
    return [(at, count) for at, count, last in zip(instants, counts, before, strict=True) if count != last]


def side_by_side(real: Sequence[int], ours: Sequence[int], seen: Sequence[Reading]) -> str:
    """A line for each look, with the real count, ours, and a mark where they differ."""
    first = seen[0].at_seconds
    lines = zip(real, ours, seen, strict=True)
    return "\n".join(f"{it.at_seconds - first:7.2f} {a:3d} {b:3d} {' ' if a == b else '<'} {it}" for a, b, it in lines)
