"""C14, C15: the next hour and the week after it as one series with a limited number of points."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.forecast import QUANTILES, Forecast
from forecasting.handover import from_instant, joined
from recommender.deciding.recommendation import Recommendation
from recommender.outlook import HOUR_QUANTILES, Outlook, fitted_to, hour_ahead, outlook, week_ahead

MakeAdvice = Callable[..., Recommendation]

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def week_of(issued_at: datetime, *, steps: int = 2016) -> Forecast:
    """A daily wave whose quantiles are 2 % apart."""
    medians = 1000.0 + 400.0 * np.sin(2.0 * np.pi * np.arange(steps) / 288.0)
    return Forecast(
        cluster="prod-eu",
        group="orders",
        model="long_term",
        history_tier="weekly",
        origin_at=issued_at,
        step_seconds=300,
        paths=np.outer(1.0 + 0.02 * np.arange(len(QUANTILES)), medians),
    )


def hour_of(advice: MakeAdvice, origin_at: datetime = NOW, *, minutes: int = 60) -> Recommendation:
    """Advice whose forecast rises by 1 message/s each minute."""
    rising = tuple(float(2000 + minute) for minute in range(minutes))
    lower, upper = (tuple(factor * value for value in rising) for factor in (0.9, 1.1))
    summary = replace(advice().forecast, origin_at=origin_at, p05=lower, p50=rising, p95=upper)
    return advice(forecast=summary)


def together(advice: Recommendation | None, week: Forecast | None, *, now: datetime = NOW) -> Outlook:
    ahead = outlook(hour_ahead(advice, now=now), week_ahead(week, now=now))
    assert isinstance(ahead, Outlook)
    return ahead


def test_the_hour_by_the_minute_is_handed_over_to_the_week(advice: MakeAdvice) -> None:
    """The series has the advice's sixty minutes, then the joined week of an issue of seven minutes before."""
    recommendation, week = hour_of(advice), week_of(NOW - timedelta(minutes=7))
    ahead = together(recommendation, week)
    assert ahead.quantiles == HOUR_QUANTILES
    # Of 2,016 steps of the week seven minutes are over; the last step would reach beyond its end.
    assert list(ahead.step_seconds) == [60] * 60 + [300] * (2016 - 2 - 12)
    np.testing.assert_array_equal(ahead.paths[1, :60], recommendation.forecast.p50)
    later = from_instant(week, NOW)
    rows = [QUANTILES.index(quantile) for quantile in HOUR_QUANTILES]
    hour = np.array([recommendation.forecast.p05, recommendation.forecast.p50, recommendation.forecast.p95])
    same = joined(
        replace(later, step_seconds=60, paths=hour),
        replace(later, paths=later.paths[rows]),
    )
    np.testing.assert_allclose(ahead.paths[:, 60:], same.paths[:, 12:])
    assert [(part.model, part.issued_at, part.ends_at) for part in ahead.parts] == [
        ("blend", NOW, NOW + timedelta(hours=1)),
        ("long_term", week.origin_at, ahead.ends_at[-1]),
    ]
    assert ahead.notes == ()


def test_a_week_from_a_later_instant_is_the_same_week() -> None:
    """From a whole step on the figures are equal; two minutes into a step, they are 3/5 of it and 2/5 of the next."""
    week = week_of(NOW)
    np.testing.assert_array_equal(from_instant(week, NOW + timedelta(minutes=10)).paths, week.paths[:, 2:])
    later = from_instant(week, NOW + timedelta(minutes=2))
    np.testing.assert_allclose(later.paths, 0.6 * week.paths[:, :-1] + 0.4 * week.paths[:, 1:])
    for outside in (NOW - timedelta(minutes=1), NOW + timedelta(days=7), NOW + timedelta(days=7, minutes=-4)):
        with pytest.raises(ValueError, match="the forecast has whole steps from 2026-01-05T12:00:00"):
            from_instant(week, outside)


def test_each_part_stands_alone_with_the_cause(advice: MakeAdvice) -> None:
    """Without a week the hour remains, without an hour the week; each missing part has a sentence with the cause."""
    alone = together(hour_of(advice), None)
    assert (alone.points, alone.quantiles) == (60, HOUR_QUANTILES)
    assert "no long forecast of this group was issued in the last 7 days" in alone.notes[0]
    long = together(None, week_of(NOW))
    assert (long.points, long.quantiles) == (2016, QUANTILES)
    assert "no advice with a forecast" in long.notes[0]
    ended = together(hour_of(advice, NOW - timedelta(hours=1)), week_of(NOW))
    assert ended.notes == ("The next hour is not known: the last advice looked ahead to 2026-01-05T12:00:00+00:00.",)
    assert outlook("no hour", "no week") == ("no hour", "no week")
    assert "no advice" in str(hour_ahead(advice(), now=NOW))  # stored before the origin was recorded


def test_a_week_of_two_days_ago_is_used_and_an_older_one_is_not(advice: MakeAdvice) -> None:
    """At the limit the week is joined; a second later the hour stands alone, with age and limit."""
    limit = NOW - timedelta(days=2)
    assert len(together(hour_of(advice), week_of(limit)).parts) == 2
    stale = together(hour_of(advice), week_of(limit - timedelta(seconds=1)))
    assert len(stale.parts) == 1
    assert "172,801 s before now; the limit is 172,800 s. Run `lagcast forecast`" in stale.notes[0]


def test_an_hour_too_short_for_a_step_of_the_week_stands_alone(advice: MakeAdvice) -> None:
    """Four minutes do not fill a step of five, so nothing is joined, and the sentence names the setting."""
    ahead = together(hour_of(advice, minutes=4), week_of(NOW))
    assert ahead.points == 4
    assert "decision.horizon_seconds" in ahead.notes[0]


def test_coarser_steps_are_means(advice: MakeAdvice) -> None:
    """Steps of ten minutes average ten of the hour's, then two of the week's; an incomplete last step is left out."""
    ahead = together(hour_of(advice), week_of(NOW))
    coarse = ahead.coarser(600)
    assert (coarse.points, set(coarse.step_seconds.tolist())) == (1008, {600})
    np.testing.assert_allclose(coarse.paths[:, 0], ahead.paths[:, :10].mean(axis=1))
    np.testing.assert_allclose(coarse.paths[:, 6], ahead.paths[:, 60:62].mean(axis=1))
    assert together(hour_of(advice), week_of(NOW, steps=2015)).coarser(600).points == 1007


@given(
    since=st.integers(min_value=-3600, max_value=8 * 86_400),
    seconds=st.integers(min_value=1, max_value=8 * 86_400),
    late=st.integers(min_value=0, max_value=1000),
    most_points=st.integers(min_value=1, max_value=2500),
)
def test_no_span_gives_more_points_than_allowed(since: int, seconds: int, late: int, most_points: int) -> None:
    """Any series is inside the span, has no gap and at most the allowed points, and is no coarser than needed."""
    ahead = together(None, week_of(NOW - timedelta(seconds=60 * late)))
    begin, end = NOW + timedelta(seconds=since), NOW + timedelta(seconds=since + seconds)
    fit = fitted_to(ahead, since=begin, until=end, step_seconds=None, most_points=most_points)
    assert fit.points <= most_points
    if fit.points:
        assert begin < fit.ends_at[0]
        assert fit.ends_at[-1] <= end
        assert fit.ends_at[-1] - fit.begins_at == timedelta(seconds=int(fit.step_seconds.sum()))
        assert fit.step_seconds[0] == 300 or ahead.between(begin, end).points > most_points


def test_a_step_that_does_not_fit_is_an_error(advice: MakeAdvice) -> None:
    """The error names the smallest step for the span, or the step of which it must be a multiple."""
    ahead = together(hour_of(advice), week_of(NOW))

    def outlook_of(step_seconds: int | None) -> Outlook:
        return fitted_to(ahead, since=NOW, until=None, step_seconds=step_seconds, most_points=2000)

    with pytest.raises(ValueError, match=r"that is 2,064 points; the limit is 2,000\. Request step=600, or"):
        outlook_of(60)
    with pytest.raises(ValueError, match="step is 420 s; it has to be a multiple of 300 s"):
        outlook_of(420)
    assert outlook_of(3600).points == 168
    assert outlook_of(None).points == 1008
