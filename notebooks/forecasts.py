# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Forecasts: how far off, how well calibrated, when, and whose
#
# The load is the generated one. For your own, put `read_trace(Path("my-load.csv"))` in its place.

# %%
from datetime import timedelta

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.forecasts.champion import RANGES, championship
from benchmarks.forecasts.fourier import FourierForecaster
from forecasting.backtest import Backtest, backtest, history_of
from forecasting.blend import BlendForecaster
from forecasting.persistence import PersistenceForecaster
from forecasting.refusal import Refusal
from forecasting.seasonal_naive import SeasonalNaiveForecaster
from forecasting.short_term import ShortTermForecaster
from forecasting.smoothing import SmoothingForecaster
from replay.workload import orders_workload

# %% tags=["parameters"]
seed = 7
days = 12
judged_days = 7
origins_per_day = 24
steps = 60

# %%
load = orders_workload(days=days, seed=seed)
produced = np.random.default_rng(seed).poisson(load.minute_rates() * 60) / 60
history = history_of(produced, end_at=load.start_at + timedelta(days=days))
spacing = 1440 // origins_per_day
origins = list(range(history.minutes - judged_days * 1440, history.minutes - steps, spacing))
candidates = (
    PersistenceForecaster(),
    SeasonalNaiveForecaster(),
    SmoothingForecaster(),
    FourierForecaster(),
    ShortTermForecaster(),
    BlendForecaster(),
)
results = [backtest(candidate, history, origins=origins, steps=steps) for candidate in candidates]
judged = [result for result in results if isinstance(result, Backtest)]
ours = judged[-1]
print(f"{len(origins)} origins over {judged_days} days; judged: {', '.join(result.model for result in judged)}")

# %% [markdown]
# ## One forecast, and what came

# %%
known = history.until(origins[len(origins) * 3 // 4])
fitted = BlendForecaster().fit(known)
forecast = fitted if isinstance(fitted, Refusal) else fitted.forecast(known, steps=steps)
if isinstance(forecast, Refusal):
    raise SystemExit(forecast.sentence)
ahead = np.arange(1, steps + 1)
came = produced[known.minutes : known.minutes + steps]

fig, axis = plt.subplots(figsize=(9, 3))
for low, high, shade in ((0.05, 0.95, 0.15), (0.1, 0.9, 0.25), (0.25, 0.75, 0.4)):
    share = f"{high - low:.0%}"
    axis.fill_between(ahead, forecast.path(low), forecast.path(high), alpha=shade, color="tab:blue", label=share)
axis.plot(ahead, forecast.path(0.5), color="tab:blue", label="median")
outside = (came < forecast.path(0.05)) | (came > forecast.path(0.95))
axis.plot(ahead[~outside], came[~outside], ".", color="black", label="came")
axis.plot(ahead[outside], came[outside], "x", color="tab:red", label="came, outside of 90%")
axis.set_xlabel(f"minutes after {forecast.origin_at:%Y-%m-%d %H:%M} UTC")
axis.set_ylabel("messages/s")
axis.set_ylim(bottom=0)
axis.legend(ncols=3)
fig.tight_layout()

# %% [markdown]
# ## Error by horizon, and how much the bands hold

# %%
horizons = [1, 2, 5, 10, 20, 30, 45, 60]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
for result in judged:
    losses = result.pinball_losses(steps=horizons).mean(axis=1) / produced.mean()
    left.plot(horizons, losses, marker=".", linewidth=2.5 if result is ours else 1.0, label=result.model)
left.set_xlabel("minutes ahead")
left.set_ylabel("pinball loss / mean load")
left.legend(fontsize="x-small")
right.plot(horizons, ours.band_coverages(steps=horizons), marker=".")
right.axhline(0.9, linestyle=":", color="black")
right.set_ylim(0.5, 1.0)
right.set_xlabel("minutes ahead")
right.set_ylabel(f"share inside the 90% band of {ours.model}")
fig.tight_layout()

for horizon, held in zip(horizons, ours.band_coverages(steps=horizons), strict=True):
    print(f"{horizon:2d} min ahead: {held:.1%} inside the 90% band")

# %% [markdown]
# ## When it is wrong: hour by weekday

# %%
misses = np.abs(ours.actuals - ours.paths[:, 3]).mean(axis=1) / produced.mean()
starts = [history.end_at - timedelta(minutes=history.minutes - 1 - minute) for minute in origins]
calendar = np.full((7, 24), np.nan)
for weekday in range(7):
    for hour in range(24):
        there = [start.weekday() == weekday and start.hour == hour for start in starts]
        if any(there):
            calendar[weekday, hour] = misses[there].mean()

fig, axis = plt.subplots(figsize=(9, 2.8))
picture = axis.imshow(calendar, aspect="auto", cmap="viridis")
axis.set_yticks(range(7), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
axis.set_xlabel("hour of the origin, UTC")
fig.colorbar(picture, label="error of the median / mean load")
fig.tight_layout()

# %% [markdown]
# ## The champion of the group, near and far

# %%
found = championship(candidates, history)
print(found.sentence)
for standing in getattr(found, "standings", ()):
    parts = ", ".join(
        f"{first}-{last} min {loss:.1f}" for (first, last), loss in zip(RANGES, standing.losses, strict=True)
    )
    print(f"{standing.model:22s} {parts}")
