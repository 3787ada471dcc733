"""Estimates, from a group's own past, of quantities that its profile would otherwise assume."""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from cost_model.physics.capacity import (
    LEAST_COMMITS,
    SATURATED_LAG_SECONDS,
    WINDOW_SPREAD,
    BoolArray,
    CapacityBelief,
)
from cost_model.physics.drains import Drain
from cost_model.physics.profile import Capacity, GroupProfile
from forecasting.history import MINUTE_SECONDS, History
from forecasting.history_tier import FIRST_MINUTES, MINUTES_PER_WEEK
from forecasting.units import FloatArray, IntArray, MessagesPerSecond, Seconds

# What disturbs a window beside its commits, as a deviation of ln rate; with commits each 5 s, a minute has 8 % in all.
REST_SPREAD = 0.0724
# Older evidence weighs less than a quarter by then, a minute's weight being 0.999 of the next one's.
LOOK_BACK_MINUTES = 1440
# What replicas have shown counts for a week and a day: the peak of a Monday is known after a weekend. It does not
# where the group has been behind within the last day while it did clearly less.
SHOWN_MINUTES = MINUTES_PER_WEEK + LOOK_BACK_MINUTES
# A capacity that was never reached is inferred from nearly a day of minutes, by the fullest of them: a rate that a
# group has held for three minutes together is possible. One odd minute is part of three such stretches, which are
# skipped.
ENOUGH_MINUTES = 1320
SUSTAINED_MINUTES = 3
# Before that day, what replicas have shown over ten minutes is a lower bound, from half an hour of minutes on: commits
# that come every few minutes, while five seconds are assumed, look like a rate several times as high in three. In that
# half hour it is the mean of what there is, under which nothing is removed, and no more than was produced meanwhile:
# that does not come in lumps.
BOUND_MINUTES, BOUND_SUSTAINED_MINUTES = 30, 10
FULLER_STRETCHES = 3
# Plans fill replicas so much further, because fuller minutes would never occur otherwise; the middle of the possible
# capacities lies further up.
PLANNED_BEYOND, STEP_BEYOND = 1.06, 1.15
# A group that falls behind has done all that it can by the end of the minute; one such minute may be odd.
ODD_MINUTES = 1
# At the limit the middle lies a little above what minutes show that began before the group was behind.
AT_LIMIT_BEYOND = 1.03
# Clients report the share of their time in which they work: so many minutes of it, in which they work at least for a
# tenth, show what a replica does when it works all the time, as a band of a tenth at least. An application that hands
# messages to threads of its own looks idle while these work: so no more than twice of what a replica has shown counts.
BUSY_MINUTES, LEAST_BUSY, BUSY_BAND, BUSY_BEYOND = 10, 0.1, 0.1, 2.0
# A minute this full beside the fullest ones may have been at the limit.
NEARLY_AS_FULL = 0.9


class Windows(NamedTuple):
    """The group's last minutes, oldest first, as estimates of capacity and downstream limits read them.

    `rates` (messages/s of the whole group) are NaN where a minute is not used: members changed, or a rebalance lay in
    it; `replicas` is 0 where the count is unknown. In a saturated minute the group worked at its limit.
    """

    replicas: IntArray
    rates: FloatArray
    saturated: BoolArray


def windows_of(history: History, profile: GroupProfile, *, minutes: int = LOOK_BACK_MINUTES) -> Windows:
    """The last so many known minutes, those of a day, that have one before them.

    A minute counts as saturated when the backlog at both its ends exceeds two seconds of its rate plus the uncommitted
    messages of a commit interval. Where commits are seldom, that rate is the mean of the minutes up to it.
    """
    tail = _look_back(history, minutes=minutes)
    consumed = history.consume_messages_per_second[tail]
    lag, members, rebalance = history.lag_messages[tail], history.members[tail], history.in_rebalance[tail]
    steady = (members[1:] == members[:-1]) & (members[1:] > 0) & (rebalance[1:] == 0.0) & (rebalance[:-1] == 0.0)
    rate = _trailing_mean(consumed, minutes=_window_minutes(profile))[1:]
    floor = (SATURATED_LAG_SECONDS + profile.commits_every_seconds) * rate
    saturated = steady & (lag[1:] > floor) & (lag[:-1] > floor) & (rate > 0.0)
    return Windows(
        replicas=np.nan_to_num(members[1:]).astype(np.int64),
        rates=np.where(steady, consumed[1:], np.nan),
        saturated=saturated,
    )


def _window_minutes(profile: GroupProfile) -> int:
    """The minutes of a window whose rate commits show well enough: one, with commits each 12 s or more often."""
    return max(1, ceil(LEAST_COMMITS * profile.commits_every_seconds / MINUTE_SECONDS))


def _trailing_mean(values: FloatArray, *, minutes: int) -> FloatArray:
    """Of each minute, the mean of the known ones among so many up to it; NaN where none is known."""
    if minutes == 1:
        return values
    known = np.isfinite(values)
    kernel = np.ones(minutes)
    sums = np.convolve(np.where(known, values, 0.0), kernel)[: values.size]
    counts = np.convolve(known.astype(np.float64), kernel)[: values.size]
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0.0, sums / counts, np.nan)


def _look_back(history: History, *, minutes: int = LOOK_BACK_MINUTES) -> slice:
    """As many minutes as contain so many known ones: unobserved minutes do not shorten the memory."""
    known = np.isfinite(history.consume_messages_per_second)
    first = int(np.flatnonzero(known)[-minutes:][0]) if known.any() else 0
    # Counted from the end: more is known of the produce rate.
    return slice(first - known.size, None) if known.size else slice(0)


def capacity_seen(history: History, profile: GroupProfile, *, drains: Sequence[Drain] = ()) -> Capacity | None:
    """One replica's capacity from windows in which the group worked at its limit, `drains` among them, oldest first.

    Without such windows, or where they contradict each other, from the time in which its members work, where they
    report it; else at least the rate shown in a day and a step beyond it; before such a day the rate shown, as a lower
    bound, and None before three minutes.

    The rate is shared among members that hold work; where the assignment is uneven that understates capacity, which is
    the safe side.
    """
    windows = windows_of(history, profile)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = windows.rates / _working(profile, windows.replicas)
    if not (rates > 0.0).any():
        return None
    shown = _with_drains(_long_enough(rates, windows, minutes=_window_minutes(profile)), drains, history, profile)
    if shown.saturated.any():
        minutes_since = windows.rates.size - float(shown.ends[shown.saturated].max())
        guess = MessagesPerSecond(float(np.nanmax(shown.rates)))
        belief = CapacityBelief.around(guess).observed(
            shown.rates, shown.saturated, spreads=_spreads(shown.seconds, profile)
        )
        found = belief.capacity(Seconds(minutes_since * MINUTE_SECONDS))
        if found is not None:
            return found
    return _by_busy_time(rates, history, profile) or _at_least(rates, shown, history, profile)


class _Shown(NamedTuple):
    """Windows, oldest first: the minute at whose end each ends, its rate for a replica, and its length."""

    ends: FloatArray
    rates: FloatArray
    saturated: BoolArray
    seconds: FloatArray


def _long_enough(rates: FloatArray, windows: Windows, *, minutes: int) -> _Shown:
    """The windows of so many minutes or more.

    A window consists of minutes one after the other that are alike: of one size of the group, and all saturated or none
    of them. What is left of too few of them shows nothing.
    """
    if minutes == 1:
        ends = np.arange(1.0, rates.size + 1.0)
        return _Shown(ends, rates, windows.saturated, np.full(rates.size, float(MINUTE_SECONDS)))
    known = np.isfinite(rates)
    alike = np.stack([known, windows.saturated, windows.replicas])
    begins = np.flatnonzero(np.any(alike[:, 1:] != alike[:, :-1], axis=0)) + 1
    runs = [run for run in np.split(np.arange(rates.size), begins) if known[run[0]] and run.size >= minutes]
    cut = [window for run in runs for window in np.array_split(run, run.size // minutes)]
    return _Shown(
        ends=np.array([window[-1] + 1.0 for window in cut]),
        rates=np.array([rates[window].mean() for window in cut]),
        saturated=np.array([windows.saturated[window[0]] for window in cut], dtype=bool),
        seconds=np.array([float(window.size * MINUTE_SECONDS) for window in cut]),
    )


def _with_drains(shown: _Shown, drains: Sequence[Drain], history: History, profile: GroupProfile) -> _Shown:
    """The windows with those drains among them of which no part is a saturated window already."""
    minutes = history.consume_messages_per_second[_look_back(history)].size - 1
    begins = shown.ends - shown.seconds / MINUTE_SECONDS
    for drain in drains:
        end = minutes - (history.end_at - drain.ended_at).total_seconds() / MINUTE_SECONDS
        begin = end - drain.seconds / MINUTE_SECONDS
        if (shown.saturated & (shown.ends > begin) & (begins < end)).any():
            continue
        rate = drain.messages_per_second / min(drain.members, profile.work_units)
        place = int(np.searchsorted(shown.ends, end))
        begins = np.insert(begins, place, begin)
        shown = _Shown(
            ends=np.insert(shown.ends, place, end),
            rates=np.insert(shown.rates, place, rate),
            saturated=np.insert(shown.saturated, place, values=True),
            seconds=np.insert(shown.seconds, place, drain.seconds),
        )
    return shown


def _spreads(seconds: FloatArray, profile: GroupProfile) -> FloatArray:
    """The deviations of ln rate in windows of these lengths: of what disturbs them, and of the commits at their ends.

    Formula: the parts of a commit interval T that are missing and too much are uniform and independent; their
    difference has the deviation T / sqrt(6).
    """
    return np.hypot(REST_SPREAD, profile.commits_every_seconds / (sqrt(6.0) * seconds))


def _by_busy_time(rates: FloatArray, history: History, profile: GroupProfile) -> Capacity | None:
    """What a replica would do if it worked all the time, by the share of it in which it does; None where unknown.

    Nor is it known where the group was behind while it did clearly less: then it waits for something else.
    """
    replicas = windows_of(history, profile).replicas
    with np.errstate(invalid="ignore", divide="ignore"):
        # Members without a partition do not work: those that have one do so for more of their time than the mean says.
        busy = np.minimum(history.busy_ratio[_look_back(history)][1:] * replicas / _working(profile, replicas), 1.0)
    known = np.isfinite(rates) & (rates > 0.0) & np.isfinite(busy) & (busy >= LEAST_BUSY)
    shown = _sustained(rates, minutes=_sustained_minutes(profile))
    if known.sum() < BUSY_MINUTES or shown is None:
        return None
    each = rates[known] / busy[known]
    middle = float(rates[known].sum() / busy[known].sum())
    behind = _behind_rates(history, profile)
    behind = behind[np.isfinite(behind)]
    if behind.size > ODD_MINUTES and behind.max() < NEARLY_AS_FULL * middle:
        return None
    low = min(float(np.quantile(each, 0.2)), (1.0 - BUSY_BAND) * middle)
    high = max(float(np.quantile(each, 0.9)), (1.0 + BUSY_BAND) * middle)
    # What was shown is the least that a replica can do, whatever its clients report.
    p20, p50, p90 = (float(np.clip(value, shown, BUSY_BEYOND * shown)) for value in (low, middle, high))
    return Capacity(
        p20=MessagesPerSecond(p20),
        p50=MessagesPerSecond(p50),
        p90=MessagesPerSecond(p90),
        source="busy_time",
        age_seconds=Seconds(0.0),
    )


def _at_least(rates: FloatArray, shown: _Shown, history: History, profile: GroupProfile) -> Capacity | None:
    """The capacity that every replica has shown within a week, and a step beyond it.

    Planning a step beyond the highest rate seen shows more, step by step, until a window is saturated or the load needs
    no more; so a group that was never at its limit is not refused for ever, and never runs much fuller than before.
    Where a probe has fallen behind at what was shown, that is the limit, and no step is added. So it is where saturated
    windows, too few for a belief, show more than minutes without backlog: the lowest of them, give or take its spread.
    """
    known = int(np.isfinite(history.consume_messages_per_second[_look_back(history)]).sum())
    if known < FIRST_MINUTES:
        return None
    if known < BOUND_MINUTES:
        return _lower_bound(_kept_up(rates, history, profile))
    if known < ENOUGH_MINUTES:
        return _lower_bound(_sustained(rates, minutes=max(_sustained_minutes(profile), BOUND_SUSTAINED_MINUTES)))
    seen, limits, reached = _shown_in_a_week(rates, shown, history, profile)
    if seen is None or not seen > 0.0:
        return None
    limit = float(limits.min()) if limits.size else 0.0
    surely = (1.0 - WINDOW_SPREAD) * limit
    # A step beyond a limit of 1,000 would let plans fill replicas to 1,030, and be late in every burst.
    planned = seen if reached else PLANNED_BEYOND * seen
    likely = AT_LIMIT_BEYOND * seen if reached else STEP_BEYOND * seen
    if surely > seen:
        seen, planned, likely = surely, surely, limit
    return Capacity(
        p20=MessagesPerSecond(planned),
        p50=MessagesPerSecond(likely),
        p90=MessagesPerSecond(likely * likely / seen),
        source="unsaturated_windows",
        age_seconds=Seconds(0.0),
    )


def _shown_in_a_week(
    rates: FloatArray, shown: _Shown, history: History, profile: GroupProfile
) -> tuple[float | None, FloatArray, bool]:
    """What each replica has shown, the rates of windows at the limit, and whether that limit was reached.

    Of the last week; and of the last day alone, that of `rates` and `shown`, where the group was behind in it while it
    did clearly less than in the week: a new version may be slower.
    """
    minutes = _sustained_minutes(profile)
    limits, behind = shown.rates[shown.saturated], _behind_rates(history, profile)
    week = windows_of(history, profile, minutes=SHOWN_MINUTES)
    if week.rates.size > rates.size:
        with np.errstate(invalid="ignore", divide="ignore"):
            week_rates = week.rates / _working(profile, week.replicas)
        week_behind = _behind_rates(history, profile, minutes=SHOWN_MINUTES)
        seen = _seen(week_rates, week_behind, minutes=minutes)
        least = _fullest_but_odd(behind)
        if seen is not None and (least is None or least >= NEARLY_AS_FULL * seen):
            of_week = _long_enough(week_rates, week, minutes=_window_minutes(profile))
            limits = np.append(limits, of_week.rates[of_week.saturated])
            return seen, limits, _is_limit(week_behind, seen)
    seen = _seen(rates, behind, minutes=minutes)
    return seen, limits, seen is not None and _is_limit(behind, seen)


def _seen(rates: FloatArray, behind: FloatArray, *, minutes: int) -> float | None:
    """The rate that these minutes show of a replica, the one it sustained or the one with which it was behind."""
    sustained, least = _sustained(rates, minutes=minutes), _fullest_but_odd(behind)
    return sustained if sustained is None or least is None else max(sustained, least)


def _fullest_but_odd(behind: FloatArray) -> float | None:
    """The fullest of the minutes at whose end the group was behind, but for odd ones; None without enough of them."""
    known = np.sort(behind[np.isfinite(behind)])
    return float(known[-1 - ODD_MINUTES]) if known.size > ODD_MINUTES else None


def _kept_up(rates: FloatArray, history: History, profile: GroupProfile) -> float | None:
    """The mean rate of a replica, or what was produced for it meanwhile if that is less; None without two minutes."""
    working = _working(profile, windows_of(history, profile).replicas)
    with np.errstate(invalid="ignore", divide="ignore"):
        produced = history.produce_messages_per_second[_look_back(history)][1:] / working
    known = np.isfinite(rates) & np.isfinite(produced)
    if known.sum() < FIRST_MINUTES - 1:
        return None
    return float(min(rates[known].mean(), produced[known].mean()))


def _lower_bound(seen: float | None) -> Capacity | None:
    """The rate that every replica has shown, and nothing beyond it: no more is known of any."""
    if seen is None or not seen > 0.0:
        return None
    shown = MessagesPerSecond(seen)
    return Capacity(p20=shown, p50=shown, p90=shown, source="lower_bound", age_seconds=Seconds(0.0))


def _sustained(rates: FloatArray, *, minutes: int) -> float | None:
    """The highest mean of so many minutes together, but for the few fullest; None without enough of them."""
    if rates.size < minutes:
        return None
    stretches = np.convolve(rates, np.full(minutes, 1.0 / minutes), mode="valid")
    stretches = np.sort(stretches[np.isfinite(stretches)])
    return float(stretches[-1 - FULLER_STRETCHES]) if stretches.size > FULLER_STRETCHES else None


def _sustained_minutes(profile: GroupProfile) -> int:
    return max(SUSTAINED_MINUTES, ceil(2.0 * profile.commits_every_seconds / MINUTE_SECONDS))


def shown_by_replica(capacity: Capacity) -> MessagesPerSecond:
    """The rate that every replica has shown, where the capacity was inferred from minutes below the limit.

    >>> inferred = Capacity(p20=MessagesPerSecond(106.0), p50=MessagesPerSecond(115.0), p90=MessagesPerSecond(132.25),
    ...                     source="unsaturated_windows")
    >>> round(shown_by_replica(inferred))
    100
    """
    # Formula: p50 is f times what was shown, and p90 f * f times, whatever the step f.
    return MessagesPerSecond(capacity.p50**2 / capacity.p90)


def seconds_to_show(profile: GroupProfile) -> Seconds:
    """Time for which a group keeps its size until its minutes count as shown by every replica."""
    return Seconds(float((_sustained_minutes(profile) + FULLER_STRETCHES + 1) * MINUTE_SECONDS))


def was_behind(history: History, profile: GroupProfile, *, shown: MessagesPerSecond) -> bool:
    """True if the group was behind at the end of a minute of the last day in which it did about what it has shown.

    That is its limit, even where no saturated window proves it. In emptier minutes something else was wrong, and a
    minute in which it did more shows that its limit lies higher.
    """
    return _is_limit(_behind_rates(history, profile), shown)


def _is_limit(behind: FloatArray, shown: float) -> bool:
    rates = behind / shown
    return bool(((rates > NEARLY_AS_FULL) & (rates < 1.0 / NEARLY_AS_FULL)).any())


def _behind_rates(history: History, profile: GroupProfile, *, minutes: int = LOOK_BACK_MINUTES) -> FloatArray:
    """What each replica did in so many last minutes, at whose end the group was behind; NaN in all others.

    Such a minute is not saturated throughout, so that capacity is at least that much.
    """
    tail = _look_back(history, minutes=minutes)
    lag, consumed = history.lag_messages[tail][1:], history.consume_messages_per_second[tail][1:]
    windows = windows_of(history, profile, minutes=minutes)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = windows.rates / _working(profile, windows.replicas)
        behind = lag > (SATURATED_LAG_SECONDS + profile.commits_every_seconds) * consumed
    return np.where(behind, rates, np.nan)


def _working(profile: GroupProfile, replicas: IntArray) -> FloatArray:
    """Per minute, the number of replicas that held partitions."""
    return np.minimum(replicas, profile.work_units).astype(np.float64)


def quiet_seconds(history: History) -> Seconds | None:
    """Time since the last rebalance in the minutes of the last day; None where they show none.

    Shortened to the octave, 1, 2, 4, ... minutes: heartbeats drift apart with its root, and cached results for the
    group's moves can be used again.
    """
    tail = slice(-LOOK_BACK_MINUTES, None)
    members, rebalance = history.members[tail], history.in_rebalance[tail]
    shown = np.nan_to_num(rebalance) > 0.0
    shown[1:] |= np.isfinite(members[1:]) & np.isfinite(members[:-1]) & (members[1:] != members[:-1])
    if not shown.any():
        return None
    minutes = shown.size - 1 - int(np.flatnonzero(shown)[-1])
    return Seconds(float(MINUTE_SECONDS * 2 ** (max(minutes, 1).bit_length() - 1)))


class MovesPerDay(NamedTuple):
    """The frequency with which a group grows and shrinks."""

    up: float
    down: float


def moves_per_day(history: History) -> MovesPerDay:
    """Changes of members in the last week, per day; less than a day of known members counts as a day."""
    members = history.members[-MINUTES_PER_WEEK:]
    known = members[np.isfinite(members)]
    change = np.diff(known)
    days = max(1.0, known.size / LOOK_BACK_MINUTES)
    return MovesPerDay(up=float((change > 0.0).sum()) / days, down=float((change < 0.0).sum()) / days)
