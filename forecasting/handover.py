"""The hand-over from the minutes of the next hour to the week after it: one forecast in steps of five minutes."""

from dataclasses import replace

import numpy as np

from forecasting.forecast import Forecast
from forecasting.units import FloatArray, read_only

_MODEL = "joined"

# The hour's forecast has nothing left to say three hours ahead; until then the week's takes over step by step.
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
    near_steps = short.steps // each
    near = short.paths[:, : near_steps * each].reshape(len(short.paths), near_steps, each).mean(axis=2)
    floor = _FLOOR_SHARE * max(float(near.mean()), float(long.paths.mean()), np.finfo(np.float64).tiny)
    border = np.log(near[:, -1:] + floor) - np.log(long.paths[:, near_steps - 1 : near_steps] + floor)
    fade_steps = FADE_SECONDS // long.step_seconds
    left = np.maximum(1.0 - np.arange(1, long.steps - near_steps + 1) / fade_steps, 0.0)
    far: FloatArray = np.exp(np.log(long.paths[:, near_steps:] + floor) + border * left) - floor
    far = np.where(left > 0.0, np.maximum(far, 0.0), long.paths[:, near_steps:])
    paths = np.maximum.accumulate(np.concatenate([near, far], axis=1), axis=0)
    return replace(long, model=_MODEL, paths=read_only(paths))


def _minutes_per_step(short: Forecast, long: Forecast) -> int:
    """How many steps of `short` one of `long` covers."""
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
