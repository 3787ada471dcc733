"""The figures of a group's profile that are published with a decision."""

from collections.abc import Callable
from dataclasses import replace

from cost_model.physics.profile import GroupProfile, StreamsProfile
from forecasting.units import Seconds
from recommender.deciding.account import profile_figures
from recommender.deciding.context import DecisionContext

MakeContext = Callable[..., DecisionContext]
STREAMS = StreamsProfile(
    stateful=True,
    tasks=10,
    restore_bytes=4e9,
    commit_interval_seconds=Seconds(7.0),
    configured=frozenset({"commit_interval_seconds"}),
    detected=frozenset({"tasks", "stateful", "restore_bytes"}),
)


def _figures(context: MakeContext, profile: GroupProfile) -> dict[str, tuple[object, str]]:
    figures = profile_figures(context(profile=profile))
    assert len({figure.name for figure in figures}) == len(figures)
    return {figure.name: (figure.value, figure.source) for figure in figures}


def test_the_figures_of_a_streams_application_have_their_sources(context: MakeContext, profile: GroupProfile) -> None:
    """What Kafka shows, what is set and what is assumed; the commit interval is that of the application."""
    figures = _figures(context, replace(profile, streams=STREAMS))
    assert figures["tasks"] == (10.0, "detected")
    assert figures["stateful"] == (True, "detected")
    assert figures["restore_bytes"] == (4e9, "detected")
    assert figures["restore_bytes_per_second"] == (1e7, "assumed")
    assert figures["commit_interval_seconds"] == (7.0, "configured")
    assert "assignor" not in figures


def test_an_application_without_state_has_no_figures_of_state(context: MakeContext, profile: GroupProfile) -> None:
    """Nor has a plain consumer any of Streams."""
    stateless = _figures(context, replace(profile, streams=replace(STREAMS, stateful=False)))
    assert stateless["stateful"] == (False, "detected")
    assert not {"restore_bytes", "standbys", "probing_seconds"} & stateless.keys()
    assert not {"tasks", "stateful"} & _figures(context, profile).keys()
