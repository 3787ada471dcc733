"""The figures of a group's profile that are published with a decision."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from cost_model.physics.detected import DetectedPrice
from cost_model.physics.profile import GroupProfile, StreamsProfile
from forecasting.units import Seconds
from recommender.deciding.account import profile_figures
from recommender.deciding.context import DecisionContext
from recommender.deciding.decision import DecisionSettings, priced
from recommender.deciding.recommendation import ProfileFigure

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
    measured = replace(STREAMS, restore_bytes_per_second=6e7, measured=frozenset({"restore_bytes_per_second"}))
    assert _figures(context, replace(profile, streams=measured))["restore_bytes_per_second"] == (6e7, "measured")
    assert "assignor" not in figures


def test_an_application_without_state_has_no_figures_of_state(context: MakeContext, profile: GroupProfile) -> None:
    """Nor has a plain consumer any of Streams."""
    stateless = _figures(context, replace(profile, streams=replace(STREAMS, stateful=False)))
    assert stateless["stateful"] == (False, "detected")
    assert not {"restore_bytes", "standbys", "probing_seconds"} & stateless.keys()
    assert not {"tasks", "stateful"} & _figures(context, profile).keys()


def test_the_price_of_a_replica_is_a_figure_where_it_is_known(context: MakeContext) -> None:
    """Set by the owner, or detected and then with its age; a what-if's price is in place of the detected one."""

    def figure(settings: DecisionSettings) -> ProfileFigure | None:
        figures = profile_figures(replace(made, settings=settings))
        return next((figure for figure in figures if figure.name == "price_per_replica_hour"), None)

    made = context()
    seen_at = made.now - timedelta(hours=3)
    detected = priced(DecisionSettings(), DetectedPrice(price_per_replica_hour=0.028, seen_at=seen_at))
    assert figure(DecisionSettings()) is None
    as_set = ProfileFigure(name="price_per_replica_hour", value=0.04, source="configured")
    assert figure(DecisionSettings(price_per_replica_hour=0.04)) == as_set
    assert figure(detected) == replace(as_set, value=0.028, source="detected", seen_at=seen_at)
    assert figure(replace(detected, price_per_replica_hour=0.04)) == as_set


def test_what_kafka_shows_has_the_instant_at_which_it_last_did(context: MakeContext, profile: GroupProfile) -> None:
    """The newest row in which the group was described, and for its commits the newest one in which they were known."""
    known = replace(profile, detected=frozenset({"client", "commit_interval_seconds"}))
    made = context(profile=known)
    *before, third, second, newest = made.history.recent
    rows = (
        *before,
        replace(third, group_protocol="classic", commit_interval_seconds=5.0),
        replace(second, group_protocol="classic", commit_interval_seconds=None),
        replace(newest, group_protocol=None, commit_interval_seconds=None),
    )
    seen = replace(made, history=replace(made.history, recent=rows))
    instants = {figure.name: figure.seen_at for figure in profile_figures(seen)}
    assert (instants["client"], instants["commit_interval_seconds"]) == (second.interval_end_at, third.interval_end_at)
    assert instants["session_timeout_seconds"] is None


def test_timeouts_have_the_instant_at_which_their_record_was_last_known(
    context: MakeContext, profile: GroupProfile
) -> None:
    """A figure that cannot be read any more grows old, though the group is still described."""
    known = replace(profile, detected=frozenset({"session_timeout_seconds", "max_poll_interval_seconds"}))
    made = context(profile=known)
    *before, second, newest = made.history.recent
    rows = (
        *before,
        replace(second, group_protocol="classic", session_timeout_seconds=6.0, rebalance_timeout_seconds=60.0),
        replace(newest, group_protocol="classic", session_timeout_seconds=6.0),
    )
    seen = replace(made, history=replace(made.history, recent=rows))
    instants = {figure.name: figure.seen_at for figure in profile_figures(seen)}
    assert instants["session_timeout_seconds"] == newest.interval_end_at
    assert instants["max_poll_interval_seconds"] == second.interval_end_at


def test_each_protocol_has_its_own_heartbeats(context: MakeContext, profile: GroupProfile) -> None:
    """Those of the newer one are the broker's; Kafka Streams has those of its consumers."""
    names = {"heartbeat_interval_seconds", "consumer_heartbeat_seconds"}
    older, newer = (_figures(context, replace(profile, protocol=protocol)) for protocol in ("eager", "kip848"))
    assert names & older.keys() == {"heartbeat_interval_seconds"}
    assert names & newer.keys() == {"consumer_heartbeat_seconds"}
