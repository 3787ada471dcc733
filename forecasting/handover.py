"""The hand-over from the minutes of the next hour to the week after it: one forecast in steps of five minutes."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from forecasting.forecast import Forecast
from forecasting.units import FloatArray, read_only

_MODEL = "joined"

# The hour's forecast has no skill three hours ahead; until then the week's takes over step by step.
FADE_SECONDS = 7200

# Of a path's mean, added before the logarithm is taken: keeps zero rates finite and changes others by a millionth.
_FLOOR_SHARE = 1e-6


def joined(short: Forecast, long: Forecast) -> Forecast:
    """The hour's quantile paths as means of the week's steps, then the week's, which the gap at the border fades into.

    At the border each quantile of the week is moved, in logarithms, onto the hour's last value; the move shrinks to
    nothing over two hours, so there is no jump, and the week's own ups and downs stay. Steps are those of `long`.
    Within the hour a step's quantile is the mean of its minutes' quantiles: minutes that do not all move
    together would have a narrower one, so it errs on the safe side.
    Errors: ValueError on forecasts of different groups or origins, on steps that do not fit, or where `short` does not
    reach a whole step of `long` or reaches beyond it; that is the caller's bug.
    """
    each = _minutes_per_step(short, long)
    paths = joined_paths(short.paths, long.paths, each=each, step_seconds=long.step_seconds)
    return replace(long, model=_MODEL, paths=paths)


def joined_paths(short: FloatArray, long: FloatArray, *, each: int, step_seconds: int) -> FloatArray:
    """The paths of `joined`, for all quantiles that are known of both.

    Shapes: `short` (quantiles, steps) and `long` (quantiles, steps of `step_seconds`), from the same instant on, the
    same quantiles in the same ascending order; `each` steps of `short` are one of `long`, and at least so many are
    there.
    """
    near_steps = short.shape[1] // each
    near = short[:, : near_steps * each].reshape(len(short), near_steps, each).mean(axis=2)
    floor = _FLOOR_SHARE * max(float(near.mean()), float(long.mean()), np.finfo(np.float64).tiny)
    border = np.log(near[:, -1:] + floor) - np.log(long[:, near_steps - 1 : near_steps] + floor)
    fade_steps = FADE_SECONDS // step_seconds
    left = np.maximum(1.0 - np.arange(1, long.shape[1] - near_steps + 1) / fade_steps, 0.0)
    far: FloatArray = np.exp(np.log(long[:, near_steps:] + floor) + border * left) - floor
    far = np.where(left > 0.0, np.maximum(far, 0.0), long[:, near_steps:])
    return read_only(np.maximum.accumulate(np.concatenate([near, far], axis=1), axis=0))


def from_instant(long: Forecast, origin_at: datetime) -> Forecast:
    """The part of `long` after `origin_at`, in steps of its length that begin there.

    A step that lies across two of `long` takes their quantiles in proportion; the last, which would reach beyond its
    end, is left out. Errors: ValueError where `origin_at` lies before the origin of `long`, or leaves no whole step.
    """
    whole, rest = divmod((origin_at - long.origin_at).total_seconds(), long.step_seconds)
    first, later = int(whole), rest / long.step_seconds
    steps = long.steps - first - (later > 0.0)
    if first < 0 or steps < 1:
        end_at = long.origin_at + timedelta(seconds=long.steps * long.step_seconds)
        message = (
            f"origin_at is {origin_at.isoformat()}; the forecast has whole steps from {long.origin_at.isoformat()} "
            f"to {end_at.isoformat()}"
        )
        raise ValueError(message)
    paths = long.paths[:, first : first + steps]
    if later > 0.0:
        paths = (1.0 - later) * paths + later * long.paths[:, first + 1 : first + 1 + steps]
    return replace(long, origin_at=origin_at, paths=read_only(paths))


def _minutes_per_step(short: Forecast, long: Forecast) -> int:
    """The number of steps of `short` in one step of `long`."""
    if (short.cluster, short.group, short.origin_at) != (long.cluster, long.group, long.origin_at):
        message = (
            f"short is of {short.cluster}/{short.group} at {short.origin_at.isoformat()}, "
            f"long of {long.cluster}/{long.group} at {long.origin_at.isoformat()}; both need the same origin"
        )
        raise ValueError(message)
    each, rest = divmod(long.step_seconds, short.step_seconds)
    if rest or not each <= short.steps <= each * long.steps:
        message = (
            f"short has {short.steps} steps of {short.step_seconds} s and long {long.steps} of {long.step_seconds} s; "
            f"short needs at least one whole step of long, and none beyond its end"
        )
        raise ValueError(message)
    return each
