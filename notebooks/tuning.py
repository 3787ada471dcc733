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
# # Tuning: target utilization and prices against what came of them
#
# Each point is a replay of the same hours, with the same arrivals, by the same decision code that `lagcast serve`
# runs. Only the settings differ. Every run is charged at the default prices, so the points can be compared.

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from api.pictures.league import league
from api.pictures.notebook import Engine, Shown
from cli.league_table import standing_of
from recommender.deciding.decision import DecisionSettings
from replay.contest import LAGCAST, PRICED, Contest, Entry, capacity_for, entry_of, play
from replay.policies.lagcast import Lagcast
from replay.sampling import Names, rows_of
from replay.workload import orders_workload
from replay.world import World

Engine()

# %% tags=["parameters"]
seed = 7
days = 3
judged_hours = 6
target_utilizations = (0.7, 0.85, 0.97)
move_prices = (0.002, 0.02, 0.3)

# %% [markdown]
# ## The load, and what is known before the judged hours

# %%
load = orders_workload(days=days, seed=seed)
past, judged = load.split(judged_hours * 3600)
if past is None:
    message = "take more days than are judged"
    raise SystemExit(message)
world = World(partitions=24, capacity_messages_per_second_per_replica=capacity_for(load, partitions=24))
contest = Contest(trace=judged, world=world, settings=PRICED, names=Names("demo", "orders"), seed=seed)

fig, axis = plt.subplots(figsize=(9, 2.5))
axis.plot(load.messages_per_second, linewidth=0.5)
axis.axvspan(len(past.messages_per_second), len(load.messages_per_second), alpha=0.2, label="judged")
axis.set_xlabel("minutes")
axis.set_ylabel("messages/s")
axis.legend()
fig.tight_layout()

# %%
history = rows_of(replace(contest, trace=past).plant(), contest.names)
len(history)


# %% [markdown]
# ## One replay for each setting


# %%
def outcome(settings: DecisionSettings) -> Entry:
    """The outcome of decisions with `settings`, charged at the default prices."""
    policy = Lagcast(contest.world, settings, names=contest.names, history=history)
    group = contest.plant()
    while group.remaining_seconds > 0:
        group.advance()
        seen = group.observation()
        replicas = policy.decide(seen)
        if replicas != seen.replicas:
            group.scale(replicas)
    return entry_of(LAGCAST, group, contest)


by_target_utilization = [outcome(replace(PRICED, target_utilization=room)) for room in target_utilizations]
by_move_price = [outcome(replace(PRICED, price_per_move=price)) for price in move_prices]
reactive = play("useful-counts", contest)
fixed = play("fixed", contest)


# %% [markdown]
# ## Target utilization: what is saved in replicas is paid in late messages


# %%
def stacked(axis: Axes, names: list[str], entries: list[Entry]) -> None:
    """Cost by item, one bar for each entry."""
    pods = [entry.cost.pods for entry in entries]
    late = [entry.cost.late + entry.cost.duplicates for entry in entries]
    axis.bar(names, pods, label="pods")
    axis.bar(names, late, bottom=pods, hatch="//", label="late and repeated messages")
    axis.axhline(reactive.cost.total, linestyle=":", label="useful counts, reactive")
    axis.set_ylabel("USD")
    axis.legend()


fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
stacked(left, [f"{room:g}" for room in target_utilizations], by_target_utilization)
left.set_title("target_utilization")
stacked(right, [f"{price:g}" for price in move_prices], by_move_price)
right.set_title("price of a move, USD")
fig.tight_layout()

# %% [markdown]
# ## The same as points: what replicas cost, and how many messages are late

# %%
standings = [
    standing_of(reactive, part="rival"),
    standing_of(fixed, part="rival"),
    *(
        standing_of(entry, part="ours", name=f"utilization {room:g}")
        for room, entry in zip(target_utilizations, by_target_utilization, strict=True)
    ),
    *(
        standing_of(entry, part="ours", name=f"move {price:g}")
        for price, entry in zip(move_prices, by_move_price, strict=True)
    ),
]
Shown(league(standings, currency=PRICED.unit_of_cost))

# %% [markdown]
# ## The price of a move: fewer moves, less rebalancing

# %%
for price, entry in zip(move_prices, by_move_price, strict=True):
    print(
        f"move {price:5.3f} USD: {entry.moves:3d} moves, {entry.rebalancing_minutes:4.1f} min rebalancing, "
        f"{entry.late_share:.3%} late, {entry.cost.total:.2f} USD in all"
    )
print(f"fixed at peak: {fixed.cost.total:.2f} USD in all")
