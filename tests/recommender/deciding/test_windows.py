"""C37: windows, in which a group is left alone, open and close at the owner's times, with daylight saving time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import History
from forecasting.units import Replicas
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation
from recommender.deciding.windows import Effect, Window, closed_by, open_until

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
FRIDAY_NIGHT = Window(schedule="0 22 * * 5", duration_seconds=4 * 3600.0)
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]


@pytest.mark.parametrize(
    ("instant", "closes_at"),
    [
        ("2026-01-09T21:59:59Z", None),
        ("2026-01-09T22:00:00Z", "2026-01-10T02:00:00Z"),
        ("2026-01-10T01:59:59Z", "2026-01-10T02:00:00Z"),
        ("2026-01-10T02:00:00Z", None),
        ("2026-01-08T22:00:00Z", None),
    ],
)
def test_a_window_opens_and_closes_to_the_second(instant: str, closes_at: str | None) -> None:
    """The window lasts four hours from Friday at 22:00, over midnight, and does not open on a Thursday."""
    closes = None if closes_at is None else datetime.fromisoformat(closes_at)
    assert FRIDAY_NIGHT.closes_after(datetime.fromisoformat(instant)) == closes


def test_a_window_follows_local_time() -> None:
    """08:00 in Berlin is 07:00 UTC in winter and 06:00 UTC in summer."""
    morning = Window(schedule="0 8 * * *", duration_seconds=60.0, time_zone="Europe/Berlin")
    opens = [morning.opens_after(datetime(2026, month, 1, 12, tzinfo=UTC)).hour for month in (1, 7)]
    assert opens == [7, 6]


def test_a_window_that_opens_again_while_it_is_open_is_one() -> None:
    """Of openings each hour for two hours, the last closing counts."""
    hourly = Window(schedule="0 * * * *", duration_seconds=7200.0)
    assert hourly.closes_after(NOON + timedelta(minutes=30)) == NOON + timedelta(hours=2)


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.floats(1.0, 7 * 86400.0),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda each: each.replace(tzinfo=UTC)),  # noqa: DTZ001
)
def test_a_window_is_open_where_it_opened_less_than_its_length_ago(
    minute: int, hour: int, length: float, instant: datetime
) -> None:
    """The expected value comes from the openings: one is within the length before the instant, or none is."""
    window = Window(schedule=f"{minute} {hour} * * *", duration_seconds=length)
    today = instant.replace(hour=hour, minute=minute, second=0, microsecond=0)
    openings = [today - timedelta(days=days) for days in range(9)]
    ends = [each + timedelta(seconds=length) for each in openings if each <= instant < each + timedelta(seconds=length)]
    assert window.closes_after(instant) == max(ends, default=None)


@pytest.mark.parametrize(("effect", "adding"), [("no_scale_in", False), ("no_moves", True)])
def test_a_window_has_its_effect(effect: Effect, *, adding: bool) -> None:
    """Both effects hold removals; additions wait only with `no_moves`."""
    window = Window(schedule="0 12 * * *", duration_seconds=3600.0, effect=effect)
    assert closed_by([window], NOON, removing=True) == (window, NOON + timedelta(hours=1))
    assert (closed_by([window], NOON, removing=False) is not None) is adding


def test_of_several_windows_the_one_that_closes_last_is_named() -> None:
    """The sentence has the instant from which moves are possible again."""
    short = Window(schedule="0 12 * * *", duration_seconds=60.0)
    long = Window(schedule="0 11 * * *", duration_seconds=7200.0)
    assert closed_by([long, short], NOON, removing=True) == (long, NOON + timedelta(hours=1))


def test_a_move_may_wait_until_a_window_opens_and_no_longer() -> None:
    """The move's latest instant is the opening of the window, so a late executor does not move in it."""
    soon = Window(schedule="10 12 * * *", duration_seconds=60.0)
    latest = NOON + timedelta(minutes=30)
    assert open_until([soon], NOON, latest, removing=True) == NOON + timedelta(minutes=10)
    assert open_until([soon], NOON, latest, removing=False) == latest
    assert open_until([FRIDAY_NIGHT], NOON, latest, removing=True) == latest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "0 22 * *"}, "schedule is '0 22 * *'; it has to have the five fields of cron"),
        ({"schedule": "0 25 * * 5"}, "schedule is '0 25 * * 5', which is not a valid cron schedule"),
        ({"schedule": "0 0 30 2 *"}, "schedule is '0 0 30 2 *', which is not a valid cron schedule"),
        ({"duration_seconds": 0.0}, "duration_seconds is 0; it has to be above 0 and at most 604800"),
        ({"duration_seconds": 604_801.0}, "duration_seconds is 604801; it has to be above 0"),
        ({"time_zone": "Berlin"}, "time_zone is 'Berlin', which is not known; one is Europe/Berlin"),
        ({"time_zone": "../etc/passwd"}, "is not known; one is Europe/Berlin"),
    ],
)
def test_a_window_that_cannot_be_is_refused_in_a_sentence(changes: dict[str, str | float], message: str) -> None:
    """The error names the setting, its value and the expected form."""
    words: dict[str, Any] = {"schedule": "0 22 * * 5", "duration_seconds": 60.0, **changes}
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        Window(**words)
    assert message in str(caught.value)


def advise(
    history: History, forecast: Forecast, profile: GroupProfile, *windows: Window, move: float | None = None
) -> Recommendation:
    """The advice at noon; `move` is the risk price of one move."""
    settings = DecisionSettings(windows=windows, price_per_replica_hour=0.05, price_per_move=move)
    decision = recommend(history, forecast, profile, settings, previous=None, now=NOON)
    assert isinstance(decision, Recommendation), decision
    return decision


def test_nothing_is_removed_while_a_window_is_open(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """In a valley the move is held, with the window's schedule and end; after the window replicas are removed."""
    valley = history(1500.0, members=24), forecast([1500.0]), profile
    open_now = Window(schedule="0 11 * * *", duration_seconds=7200.0)
    held = advise(*valley, open_now)
    assert (held.action, held.reason, held.binding_rule) == ("hold", "guarded", "window")
    assert held.uncapped_replicas < 24
    sentence = (
        "The window 0 11 * * * (UTC) is open at 12:00:00 and closes at 2026-01-05T13:00:00Z; until then nothing is"
    )
    assert sentence in held.sentences[-1]
    over = advise(*valley, replace(open_now, duration_seconds=3600.0))
    assert over.action == "scale_in"


def test_more_are_added_though_nothing_may_be_removed(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """Additions against lateness are made in a window, unless its effect is `no_moves`."""
    ramp = history(6000.0), forecast([6000.0] * 5 + [12_000.0]), profile
    window = Window(schedule="0 11 * * *", duration_seconds=7200.0)
    assert advise(*ramp, window).action == "scale_out"
    assert advise(*ramp, replace(window, effect="no_moves")).action == "hold"


def test_a_move_is_not_made_late_into_a_window(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A valley in half an hour: a move not made when the window opens at 12:40 waits until it has closed."""
    valley = history(6000.0, members=24), forecast([6000.0] * 30 + [1500.0]), profile
    free = advise(*valley, move=3.0)
    opens = NOON + timedelta(minutes=40)
    assert free.execute_at < opens < free.latest_safe
    bound = advise(*valley, Window(schedule="40 12 * * *", duration_seconds=60.0), move=3.0)
    assert (bound.action, bound.execute_at, bound.latest_safe) == ("scale_in", free.execute_at, opens)


def test_a_minimum_counts_more_than_a_window(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A count below `min_replicas` is raised in any window."""
    window = Window(schedule="0 11 * * *", duration_seconds=7200.0, effect="no_moves")
    few = replace(profile, min_replicas=Replicas(12))
    advice = advise(history(1500.0, members=8), forecast([1500.0]), few, window)
    assert (advice.desired_replicas, advice.binding_rule) == (12, "minimum")
    assert advice.latest_safe == NOON + timedelta(minutes=1)


def test_the_fallback_policy_is_not_followed_into_a_window(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """The owner's window applies to the moves of every policy."""
    settings = DecisionSettings(windows=(Window(schedule="0 11 * * *", duration_seconds=7200.0),))
    decision = recommend(
        history(6500.0), forecast([6500.0]), profile, settings, previous=None, now=NOON, fallback_replicas=4
    )
    assert isinstance(decision, Recommendation)
    assert (decision.desired_replicas, decision.binding_rule) == (8, "window")
