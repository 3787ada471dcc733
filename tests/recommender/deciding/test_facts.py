"""Facts of the newest rows: the produce rate now, and the lag of a single partition."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import GroupInterval, History
from forecasting.units import MessagesPerSecond, Partitions
from recommender.deciding.context import DecisionContext, read_context
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.facts import excess_seconds
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Recommendation

SETTINGS = DecisionSettings()
MakeHistory = Callable[..., History]
MakeForecast = Callable[[Sequence[float]], Forecast]
FORTY: dict[str, object] = {"partitions": 40, "sampled_partitions": 40, "members": 10}


def context_of(history: History, forecast: Forecast, profile: GroupProfile) -> DecisionContext:
    newest = history.recent[-1].interval_end_at
    context = read_context(history, forecast, profile, SETTINGS, previous=None, now=newest)
    assert isinstance(context, DecisionContext)
    return context


@pytest.mark.parametrize(("waiting_share", "believed"), [(1.0, 8000.0), (0.26, 8000.0), (0.25, 6000.0), (0.0, 6000.0)])
def test_a_surge_counts_at_once_if_the_lag_confirms_it(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile, waiting_share: float, believed: float
) -> None:
    """4,000/s more for 15 s are 60,000 messages: if over a quarter of them wait, all of it counts, else half."""
    last = {"produce_messages_per_second": 8000.0, "lag_messages": 10_000.0 + waiting_share * 60_000.0}
    assert context_of(history(4000.0, last=last), forecast([4000.0]), profile).produce_messages_per_second == believed


def test_a_load_that_falls_is_averaged_however_much_waits(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """From 4,000/s to 2,000/s with a backlog of 60,000 more, one bad sample does not halve the rate."""
    last = {"produce_messages_per_second": 2000.0, "lag_messages": 70_000.0}
    assert context_of(history(4000.0, last=last), forecast([4000.0]), profile).produce_messages_per_second == 3000.0


def test_the_lag_of_a_small_rate_may_be_chance(history: MakeHistory) -> None:
    """5 s of 4/s on 1 partition are 20, give or take 2 x 4.5 messages or 2.2 s; beyond 7.2 s it is behind."""
    row = history(4.0, partitions=1, sampled_partitions=1).recent[-1]
    interval = GroupProfile(cluster="c", group="g", partitions=Partitions(1), capacity=None).commit_interval_seconds
    assert excess_seconds(replace(row, worst_lag_seconds=7.2), interval) == 0.0
    assert excess_seconds(replace(row, worst_lag_seconds=17.24), interval) == pytest.approx(10.0, abs=0.01)
    assert excess_seconds(replace(row, worst_lag_seconds=None), interval) is None


def test_one_sample_of_a_partition_behind_is_ignored(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """The median of four rows, a minute, counts, because one sample may come just before a commit."""
    calm = forecast([4000.0])
    once = history(4000.0, last={"worst_lag_seconds": 60.0}, worst_lag_seconds=3.0)
    assert context_of(once, calm, profile).behind_seconds == 0.0
    # The worst of 24 is 2.5 deviations of 0.17 s out by itself, and two more are chance: 0.8 s, beside 5 s of commits.
    assert context_of(history(4000.0, worst_lag_seconds=60.0), calm, profile).behind_seconds == pytest.approx(
        54.22, abs=0.01
    )


def test_nothing_is_read_from_partitions_while_a_change_of_members_is_young(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """A partition stopped by a move catches up within three minutes, as do messages that waited for the move."""
    settled = history(4000.0, worst_lag_seconds=60.0)
    newest = settled.recent[-1].interval_end_at

    def changed(seconds_ago: int) -> History:
        before = newest - timedelta(seconds=seconds_ago)
        rows: tuple[GroupInterval, ...] = tuple(
            replace(row, members=6) if row.interval_end_at <= before else row for row in settled.recent
        )
        return replace(settled, recent=rows)

    assert context_of(changed(180), forecast([4000.0]), profile).behind_seconds == 0.0
    assert context_of(changed(195), forecast([4000.0]), profile).behind_seconds > 50.0


def advised(
    history: MakeHistory,
    forecast: MakeForecast,
    profile: GroupProfile,
    *,
    scale: float,
    worst_lag_seconds: float | None,
) -> Recommendation:
    """Ten replicas on 40 partitions before a ramp from 8,500 to 10,500/s in 30 min, all rates times `scale`."""
    each = MessagesPerSecond(1000.0 * scale)
    small = replace(
        profile,
        partitions=Partitions(40),
        capacity=Capacity(p20=each, p50=each, p90=each, source="configured"),
    )
    seen = history(8500.0 * scale, worst_lag_seconds=worst_lag_seconds, **FORTY)
    ramp = forecast((scale * np.linspace(8500.0, 10_500.0, 30)).tolist())
    decision = recommend(seen, ramp, small, SETTINGS, previous=None, now=seen.recent[-1].interval_end_at)
    assert isinstance(decision, Recommendation)
    assert decision.desired_replicas == 14
    return decision


def test_one_slow_partition_of_forty_makes_a_scale_out_come_earlier(
    history: MakeHistory, forecast: MakeForecast, profile: GroupProfile
) -> None:
    """2.5 s of total lag look well, and the ramp is met in time; 20 s in one partition need replicas at once."""
    well = advised(history, forecast, profile, scale=1.0, worst_lag_seconds=None)
    slow = advised(history, forecast, profile, scale=1.0, worst_lag_seconds=20.0)
    assert well.execute_at >= well.issued_at + timedelta(minutes=10)
    assert slow.execute_at == slow.issued_at


def test_chance_in_small_rates_does_not(history: MakeHistory, forecast: MakeForecast, profile: GroupProfile) -> None:
    """At 3.4/s the same 20 s are chance: 5 s bring 0.43 messages a partition, and one deviation of that is 7.7 s."""
    well = advised(history, forecast, profile, scale=0.0004, worst_lag_seconds=None)
    slow = advised(history, forecast, profile, scale=0.0004, worst_lag_seconds=20.0)
    assert slow.execute_at == well.execute_at
    assert slow.execute_at >= slow.issued_at + timedelta(minutes=10)
