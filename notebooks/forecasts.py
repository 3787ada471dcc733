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

from api.pictures.backtest import coverages, errors
from api.pictures.calendar import calendar
from api.pictures.notebook import Engine, Shown
from api.pictures.picture import Column
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

Engine()

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
Shown(errors(judged, steps=horizons, ours=ours.model))

# %%
Shown(coverages([ours], steps=horizons, ours=ours.model))

# %% [markdown]
# ## When it is wrong: hour by weekday

# %%
misses = np.abs(ours.actuals - ours.paths[:, 3]).mean(axis=1) / produced.mean() * 100
starts = [history.end_at - timedelta(minutes=history.minutes - 1 - minute) for minute in origins]
off = Column(name="error_percent", title="Error of the median, % of the mean load")
Shown(calendar(zip(starts, misses.tolist(), strict=True), off, title="When forecasts are off"))

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
