"""C35, B7: a group may be scaled to zero while nothing is produced, if its owner allows it, and starts in time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile, ScaleToZero
from forecasting.forecast import Forecast
from forecasting.history import GroupInterval, History, HistoryBuffer
from forecasting.refusal import Refusal
from forecasting.units import Replicas, Seconds, read_only
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.deciding.windows import Window
from recommender.following.grading import Grader

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SETTINGS = DecisionSettings()
RULE = ScaleToZero()
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]
MakeRow = Callable[..., GroupInterval]


@pytest.fixture
def lazy(profile: GroupProfile) -> GroupProfile:
    """A group that may be scaled to zero; one replica does 1,000/s and starts in 30 s."""
    return replace(profile, scale_to_zero=RULE)


@pytest.fixture
def nothing(forecast: MakeForecast) -> Forecast:
    """A forecast of no message for an hour."""
    return forecast([0.0])


@pytest.fixture
def idle(history: MakeHistory) -> History:
    """An hour in which two members had no messages."""
    return history(0.0, members=2)


@pytest.fixture
def scaled_to_zero(idle: History, nothing: Forecast, lazy: GroupProfile) -> Recommendation:
    """The advice of ten minutes ago to go to 0."""
    before = advised(idle, nothing, lazy)
    ago = timedelta(minutes=10)
    return replace(before, issued_at=NOW - ago, execute_at=NOW - ago, valid_until=NOW - ago)


def decided(history: History, forecast: Forecast | Refusal, profile: GroupProfile, **named: Any) -> Decision:  # noqa: ANN401  # of `recommend`
    return recommend(history, forecast, profile, **({"settings": SETTINGS, "previous": None, "now": NOW} | named))


def advised(history: History, forecast: Forecast | Refusal, profile: GroupProfile, **named: Any) -> Recommendation:  # noqa: ANN401  # as above
    """The decision, which must be advice."""
    decision = decided(history, forecast, profile, **named)
    assert isinstance(decision, Recommendation), decision
    return decision


def test_b7_a_group_for_which_nothing_comes_goes_to_zero_where_its_owner_allows_it(
    idle: History, nothing: Forecast, lazy: GroupProfile, profile: GroupProfile
) -> None:
    """After 15 idle minutes the advice is 0, at once and priced; without the setting a replica stays."""
    advice = advised(idle, nothing, lazy)
    assert (advice.action, advice.current_replicas, advice.desired_replicas) == ("scale_in", 2, 0)
    assert (advice.reason, advice.binding_rule, advice.useful_replicas[0]) == ("idle", None, 0)
    assert advice.execute_at == NOW < advice.latest_safe <= advice.valid_until
    # Two replicas for an hour against none.
    assert (advice.stay.total, advice.chosen.total, advice.currency) == (2.0, 0.0, "pod-hours")
    (sentence,) = advice.sentences
    assert sentence == (
        "Nothing has come for 15 min and none is expected in as many to come: no replica is needed. The group is "
        "started again when 1 message waits."
    )
    assert advised(idle, nothing, profile).desired_replicas == 1


@pytest.mark.parametrize(
    "last",
    [
        {"produce_messages_per_second": 0.1},
        {"produce_messages_per_second": None},
        {"lag_messages": 1.0},
        {"lag_messages": None},
        {"sampled_partitions": 23},
    ],
    ids=["a message came", "produce rate unknown", "a message waits", "lag unknown", "a partition unseen"],
)
def test_b7_an_unknown_rate_never_counts_as_nothing(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile, last: dict[str, float | None]
) -> None:
    """One such row is enough to stay active."""
    assert advised(history(0.0, members=2, last=last), nothing, lazy).desired_replicas > 0


def test_a_gap_never_counts_as_nothing(row: MakeRow, nothing: Forecast, lazy: GroupProfile) -> None:
    """Two minutes without samples in an idle hour keep the group active."""
    buffer = HistoryBuffer("c", "orders")
    for back in range(240, -1, -1):
        if not 20 <= back < 28:
            buffer.append(row(NOW - timedelta(seconds=15 * back), 0.0, members=2))
    history = buffer.history()
    assert history is not None
    assert advised(history, nothing, lazy).desired_replicas == 1


def test_a_group_stays_active_when_messages_are_expected_soon(
    idle: History, forecast: MakeForecast, lazy: GroupProfile
) -> None:
    """Messages in 10 minutes, within the idle time of 15, keep it active; for messages in 30 minutes it goes to 0."""
    assert advised(idle, forecast([0.0] * 10 + [50.0]), lazy).desired_replicas > 0
    assert advised(idle, forecast([0.0] * 30 + [50.0]), lazy).desired_replicas == 0


def test_going_to_zero_takes_the_idle_time_that_is_set(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile
) -> None:
    """With an idle time of an hour and a half, an hour is too short."""
    patient = replace(lazy, scale_to_zero=ScaleToZero(idle_seconds=Seconds(5400.0)))
    assert advised(history(0.0, members=2), nothing, patient).desired_replicas == 1
    assert advised(history(0.0, minutes=100, members=2), nothing, patient).desired_replicas == 0


def test_markers_that_stay_for_ever_are_no_work(history: MakeHistory, nothing: Forecast, lazy: GroupProfile) -> None:
    """24 messages wait for ever; with an activation of 25, the group stays at zero."""
    marked = history(0.0, members=2, lag_messages=24.0)
    above = replace(lazy, scale_to_zero=ScaleToZero(activation_lag_messages=25))
    assert advised(marked, nothing, lazy).desired_replicas == 1
    assert advised(marked, nothing, above).desired_replicas == 0


def test_guards_and_windows_hold_the_move_to_zero(
    idle: History, history: MakeHistory, nothing: Forecast, lazy: GroupProfile
) -> None:
    """A window and a recent change of the count hold it; the fallback policy, which never goes to 0, does not."""
    closed = Window(schedule="0 11 * * *", duration_seconds=7200, effect="no_scale_in")
    assert advised(idle, nothing, lazy, settings=replace(SETTINGS, windows=(closed,))).desired_replicas == 2
    assert advised(history(0.0, members=3, last={"members": 2}), nothing, lazy).desired_replicas == 2
    assert advised(idle, nothing, lazy, fallback_replicas=1).desired_replicas == 0


def test_a_group_at_zero_stays_there_until_a_message_waits(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile, scaled_to_zero: Recommendation
) -> None:
    """No replica is due while no message waits; the row that shows a message starts one replica."""
    still = advised(history(0.0, members=0), nothing, lazy, previous=scaled_to_zero)
    assert (still.action, still.desired_replicas, still.due_replicas(now=NOW), still.reason) == ("hold", 0, 0, "idle")
    (sentence,) = still.sentences
    assert sentence == (
        "No replica is needed: no message waits, and none is expected within the 30 s that a start takes. It takes 1."
    )
    activated = advised(history(0.0, members=0, last={"lag_messages": 1.0}), nothing, lazy, previous=still)
    assert (activated.action, activated.current_replicas, activated.desired_replicas) == ("scale_out", 0, 1)
    assert (activated.reason, activated.effective_at) == ("activating", NOW + timedelta(seconds=30))
    assert activated.sentences[0].startswith(
        "The group is at 0 and 1 message waits; it takes 1 to start it. 1 to begin with"
    )


def test_waiting_and_arriving_messages_give_the_number_to_start(
    history: MakeHistory,
    nothing: Forecast,
    forecast: MakeForecast,
    lazy: GroupProfile,
    scaled_to_zero: Recommendation,
) -> None:
    """600,000 waiting are 2,000/s for five minutes; with 1,500/s arriving, 3,546/s need four replicas."""
    flooded = {"lag_messages": 600_000.0, "produce_messages_per_second": 0.0}
    assert advised(history(0.0, members=0, last=flooded), nothing, lazy, previous=scaled_to_zero).desired_replicas == 2
    coming = forecast([1500.0])
    assert advised(history(0.0, members=0, last=flooded), coming, lazy, previous=scaled_to_zero).desired_replicas == 4


def test_a_group_at_zero_is_started_ahead_of_what_is_expected(
    history: MakeHistory, forecast: MakeForecast, lazy: GroupProfile, scaled_to_zero: Recommendation
) -> None:
    """It is started within the start-up time of 30 s, and not before."""
    at_rest = history(0.0, members=0)
    assert advised(at_rest, forecast([0.0] * 5 + [100.0]), lazy, previous=scaled_to_zero).desired_replicas == 0
    ahead = advised(at_rest, forecast([100.0]), lazy, previous=scaled_to_zero)
    assert (ahead.desired_replicas, ahead.reason) == (1, "activating")
    assert "3,000 are expected within the 30 s that a start takes" in ahead.sentences[0]


def test_a_group_is_started_briefly_before_kafka_deletes_its_offsets(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile, scaled_to_zero: Recommendation
) -> None:
    """It is started after six of the seven days; one member in that time is enough to stay at 0."""
    minutes = 6 * 1440
    rested = history(0.0, minutes=minutes, members=0)
    activated = advised(rested, nothing, lazy, previous=scaled_to_zero)
    assert (activated.desired_replicas, activated.reason) == (1, "activating")
    assert "Kafka deletes the offsets of such a group after 7 (offsets.retention.minutes)" in activated.sentences[0]
    members = rested.members.copy()
    members[0] = 1.0
    seen = replace(rested, members=read_only(members))
    assert advised(seen, nothing, lazy, previous=scaled_to_zero).desired_replicas == 0
    assert advised(rested.last(minutes - 1), nothing, lazy, previous=scaled_to_zero).desired_replicas == 0


def test_a_group_without_members_for_a_moment_is_not_scaled_to_zero(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile
) -> None:
    """While all its pods are replaced at once, no advice starts it again or makes 0 due."""
    advice = advised(history(0.0, members=8, last={"members": 0, "lag_messages": 900.0}), nothing, lazy)
    assert (advice.current_replicas, advice.due_replicas(now=NOW)) == (8, 8)
    for_long = advised(history(0.0, members=0, last={"lag_messages": 900.0}), nothing, lazy)
    assert (for_long.current_replicas, for_long.reason) == (0, "activating")


def test_without_the_setting_a_group_at_zero_is_left_alone(
    history: MakeHistory, nothing: Forecast, profile: GroupProfile
) -> None:
    """The stop counts as intended: there is no advice."""
    refusal = decided(history(0.0, members=0, last={"lag_messages": 900.0}), nothing, profile)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "partial_data"


def test_a_start_is_waited_for(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile, scaled_to_zero: Recommendation
) -> None:
    """30 s after the command with no member no new move is advised; after twice the start-up time it is."""
    waiting = history(0.0, members=0, last={"lag_messages": 5.0})
    activated = advised(waiting, nothing, lazy, previous=scaled_to_zero)
    started = replace(activated, issued_at=NOW - timedelta(seconds=30), execute_at=NOW - timedelta(seconds=30))
    assert advised(waiting, nothing, lazy, previous=started).reason == "warming_up"
    long_ago = replace(activated, issued_at=NOW - timedelta(minutes=5), execute_at=NOW - timedelta(minutes=5))
    assert advised(waiting, nothing, lazy, previous=long_ago).reason == "activating"


def test_an_old_capacity_or_a_refused_forecast_does_not_keep_a_group_with_waiting_messages_at_zero(
    history: MakeHistory, nothing: Forecast, lazy: GroupProfile, scaled_to_zero: Recommendation
) -> None:
    """A capacity learned a month ago, and a forecast that needs more history, do not keep the group at 0."""
    unknown = replace(lazy, capacity=None)
    waiting = history(0.0, members=0, last={"lag_messages": 5.0})
    too_short = Refusal(
        cluster="c",
        group="orders",
        reason="not_enough_history",
        sentence="Too short.",
        evidence=(),
        remedy="Wait.",
        refused_at=NOW,
    )
    activated = advised(waiting, too_short, unknown, previous=scaled_to_zero)
    assert (activated.desired_replicas, activated.capacity, activated.forecast.model) == (
        1,
        scaled_to_zero.capacity,
        "none",
    )
    never = decided(waiting, nothing, unknown)
    assert isinstance(never, Refusal)
    assert never.reason == "capacity_unknown"


def test_a_minimum_above_one_is_that_of_a_group_that_is_active(
    history: MakeHistory, idle: History, nothing: Forecast, lazy: GroupProfile, scaled_to_zero: Recommendation
) -> None:
    """The advice is none, or at least three."""
    three = replace(lazy, min_replicas=Replicas(3))
    assert advised(idle, nothing, three).desired_replicas == 0
    assert advised(
        history(0.0, members=0, last={"lag_messages": 5.0}), nothing, three, previous=scaled_to_zero
    ).due_replicas(now=NOW) in {3, 4}


def test_a_start_from_zero_teaches_nothing_of_moves(row: MakeRow, lazy: GroupProfile) -> None:
    """A group that activates has a backlog, and no member was there to be stopped."""
    grader = Grader(profile=lazy, max_lag_seconds=10.0)
    members = [2] * 40 + [0] * 40 + [1] * 4 + [3] * 40
    lags = [0.0] * 40 + [10.0 * number for number in range(40)] + [300.0, 200.0, 100.0, 0.0] + [0.0] * 40
    graded = [
        grader.observe(row(NOW + timedelta(seconds=15 * number), 10.0, members=count, lag_messages=lag), None)
        for number, (count, lag) in enumerate(zip(members, lags, strict=True))
    ]
    assert [move for move in graded if move is not None] == []


KNOWN: dict[str, object] = {}
ODD: list[dict[str, object]] = [
    KNOWN,
    {"lag_messages": None},
    {"produce_messages_per_second": 2.0},
    {"produce_messages_per_second": None},
    {"sampled_partitions": 3},
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(odd=st.lists(st.tuples(st.integers(0, 59), st.sampled_from(ODD)), max_size=3))
def test_zero_takes_a_quarter_of_an_hour_of_which_everything_is_known(
    row: MakeRow, nothing: Forecast, lazy: GroupProfile, odd: list[tuple[int, dict[str, object]]]
) -> None:
    """The advice is 0 exactly if every row of the last 15 minutes shows no arrival and no lag."""
    buffer, last = HistoryBuffer("c", "orders"), dict(odd)
    for back in range(180, -1, -1):
        buffer.append(row(NOW - timedelta(seconds=15 * back), 0.0, members=2, **last.get(back, KNOWN)))
    history = buffer.history()
    assert history is not None
    decision = decided(history, nothing, lazy)
    at_zero = isinstance(decision, Recommendation) and decision.desired_replicas == 0
    assert at_zero == (not any(last.values()))
