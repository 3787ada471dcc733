"""Outlook: the forecast of one group, the next hour by the minute and then the week, as one series. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from forecasting.forecast import QUANTILES, Forecast, HistoryTier
from forecasting.handover import from_instant, joined_paths
from forecasting.units import FloatArray, IntArray
from recommender.deciding.recommendation import Recommendation

# A forecast of the week that is two days old has missed two runs of the daily job.
STALE_AFTER = timedelta(days=2)

# The quantiles that advice keeps of its forecast.
HOUR_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlookPart:
    """A forecast that the outlook takes its steps from, until `ends_at`."""

    model: str
    history_tier: HistoryTier
    issued_at: datetime
    step_seconds: int
    ends_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Steps without a gap from `begins_at` on.

    Shapes: `step_seconds` (points,), the length of each step; `paths` (quantiles, points), messages per second.
    `parts` are in the order of time; `notes` contain the reasons why a possible part is missing.
    """

    begins_at: datetime
    step_seconds: IntArray
    quantiles: tuple[float, ...]
    paths: FloatArray
    parts: tuple[OutlookPart, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> int:
        """Number of steps."""
        return len(self.step_seconds)

    @property
    def ends_at(self) -> tuple[datetime, ...]:
        """End of each step."""
        return tuple(self.begins_at + timedelta(seconds=int(end)) for end in np.cumsum(self.step_seconds))

    def coarser(self, step_seconds: int) -> "Outlook":
        """Means over steps of that length, counted from the first; a last one that is not whole is left out.

        A step's quantile is the mean of its parts' quantiles, which errs on the safe side, as in `handover.joined`.
        `step_seconds` is a multiple of every step there is.
        """
        bins = (np.cumsum(self.step_seconds) - 1) // step_seconds
        seconds = np.bincount(bins, weights=self.step_seconds)
        whole = int(np.count_nonzero(seconds == step_seconds))
        sums = [np.bincount(bins, weights=path * self.step_seconds) for path in self.paths]
        return replace(
            self,
            step_seconds=np.full(whole, step_seconds, dtype=np.int64),
            paths=np.array(sums)[:, :whole] / step_seconds,
        )

    def between(self, since: datetime, until: datetime) -> "Outlook":
        """The steps that end after `since` and no later than `until`, which may be none."""
        ends = np.cumsum(self.step_seconds)
        kept = (ends > (since - self.begins_at).total_seconds()) & (ends <= (until - self.begins_at).total_seconds())
        first = int(np.argmax(kept)) if kept.any() else 0
        skipped = timedelta(seconds=int(self.step_seconds[:first].sum()))
        return replace(
            self,
            begins_at=self.begins_at + skipped,
            step_seconds=self.step_seconds[kept],
            paths=self.paths[:, kept],
        )


def hour_ahead(advice: Recommendation | None, *, now: datetime) -> Outlook | str:
    """The forecast behind `advice`, where some of it is still to come; else a sentence with the reason."""
    if advice is None or advice.forecast.origin_at is None:
        return "The next hour is not known: no advice with a forecast was made for this group yet."
    kept = advice.forecast
    steps = len(kept.p50)
    ends_at = advice.forecast.origin_at + timedelta(seconds=steps * kept.step_seconds)
    if ends_at <= now:
        return f"The next hour is not known: the last advice looked ahead to {ends_at.isoformat()}."
    part = OutlookPart(
        model=kept.model,
        history_tier=kept.history_tier,
        issued_at=advice.forecast.origin_at,
        step_seconds=kept.step_seconds,
        ends_at=ends_at,
    )
    return Outlook(
        begins_at=advice.forecast.origin_at,
        step_seconds=np.full(steps, kept.step_seconds, dtype=np.int64),
        quantiles=HOUR_QUANTILES,
        paths=np.array([kept.p05, kept.p50, kept.p95]),
        parts=(part,),
        notes=(),
    )


def week_ahead(week: Forecast | None, *, now: datetime) -> Forecast | str:
    """`week` where it is fresh enough to be used, else a sentence with the reason."""
    if week is None:
        why = "no long forecast of this group was issued in the last 7 days"
        return f"The week ahead is not known: {why}; `lagcast forecast` issues one, or gives the reason."
    age = now - week.origin_at
    if age > STALE_AFTER:
        issued = f"issued at {week.origin_at.isoformat()}, {age.total_seconds():,.0f} s before now"
        limit = f"the limit is {STALE_AFTER.total_seconds():,.0f} s"
        return f"The week ahead is not used: it was {issued}; {limit}. Run `lagcast forecast` once a day."
    return week


def outlook(hour: Outlook | str, week: Forecast | str) -> Outlook | tuple[str, ...]:
    """The hour, joined to the week; only one of them where the other is a sentence.

    Where both are sentences, returns the sentences. `week` was issued no later than the hour begins, and ends after it.
    """
    if isinstance(hour, str):
        return (hour, week) if isinstance(week, str) else replace(_alone(week), notes=(hour,))
    return replace(hour, notes=(week,)) if isinstance(week, str) else _handed_over(hour, week)


def _alone(week: Forecast) -> Outlook:
    return Outlook(
        begins_at=week.origin_at,
        step_seconds=np.full(week.steps, week.step_seconds, dtype=np.int64),
        quantiles=QUANTILES,
        paths=week.paths,
        parts=(_part_of(week),),
        notes=(),
    )


def _handed_over(hour: Outlook, week: Forecast) -> Outlook:
    """The hour as far as its steps fill steps of the week, then the week, moved onto the hour where they meet."""
    (part,) = hour.parts
    each = week.step_seconds // part.step_seconds
    near = hour.points // each
    if near < 1:
        short = f"the hour's {hour.points} steps of {part.step_seconds} s fill none of the week's {week.step_seconds} s"
        return replace(hour, notes=(f"The week ahead is not used: {short}. Set a longer decision.horizon_seconds.",))
    later = from_instant(week, hour.begins_at)
    rows = [QUANTILES.index(quantile) for quantile in hour.quantiles]
    both = joined_paths(hour.paths, later.paths[rows], each=each, step_seconds=week.step_seconds)
    far = np.full(later.steps - near, week.step_seconds, dtype=np.int64)
    border_at = hour.begins_at + timedelta(seconds=near * week.step_seconds)
    return Outlook(
        begins_at=hour.begins_at,
        step_seconds=np.concatenate([hour.step_seconds[: near * each], far]),
        quantiles=hour.quantiles,
        paths=np.concatenate([hour.paths[:, : near * each], both[:, near:]], axis=1),
        parts=(replace(part, ends_at=border_at), replace(_part_of(later), issued_at=week.origin_at)),
        notes=(),
    )


def _part_of(week: Forecast) -> OutlookPart:
    return OutlookPart(
        model=week.model,
        history_tier=week.history_tier,
        issued_at=week.origin_at,
        step_seconds=week.step_seconds,
        ends_at=week.origin_at + timedelta(seconds=week.steps * week.step_seconds),
    )


def fitted_to(
    ahead: Outlook, *, since: datetime, until: datetime | None, step_seconds: int | None, most_points: int
) -> Outlook:
    """The steps that end after `since`, up to `until`, no finer than `step_seconds`, in at most so many points.

    Without `step_seconds` they are as fine as the points allow, in multiples of five minutes where they are not those
    of the forecasts. Errors: ValueError, a sentence, on a step that does not fit or makes too many points.
    """
    coarsest = int(ahead.step_seconds.max())
    end_at = until or ahead.parts[-1].ends_at
    if step_seconds is not None and step_seconds > int(ahead.step_seconds.min()) and step_seconds % coarsest:
        message = f"step is {step_seconds} s; it has to be a multiple of {coarsest} s, the length of the longest steps"
        raise ValueError(message)
    requested = step_seconds or 0
    fit = (ahead.coarser(requested) if requested >= coarsest else ahead).between(since, end_at)
    if fit.points <= most_points:
        return fit
    wider = max(requested, coarsest)
    while (coarser := ahead.coarser(wider).between(since, end_at)).points > most_points:
        wider += coarsest
    if step_seconds is None:
        return coarser
    message = f"that is {fit.points:,} points; the limit is {most_points:,}. Request step={wider}, or a shorter span"
    raise ValueError(message)
