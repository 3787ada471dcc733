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
# # Policies against each other, on one load
#
# The same hours and the same arrivals for a fixed count, HPA, KEDA, a reactive rule, lagcast, and the best plan of
# those that know the future. For your own load, put `read_trace(Path("my-load.csv"))` in place of the generated one;
# for your own prices, change `PRICED`.

# %%
from dataclasses import replace

from api.pictures.notebook import Engine, Shown
from cli.league_table import league_picture, lost_days_sentence
from replay.contest import LAGCAST, PRICED, RIVALS, Contest, capacity_for, play
from replay.hindsight import best_plan
from replay.league import League
from replay.sampling import Names, rows_of
from replay.workload import orders_workload
from replay.world import World

Engine()

# %% tags=["parameters"]
seed = 7
days = 3
judged_hours = 6

# %%
load = orders_workload(days=days, seed=seed)
past, judged = load.split(judged_hours * 3600)
if past is None:
    message = "take more days than are judged"
    raise SystemExit(message)
world = World(partitions=24, capacity_messages_per_second_per_replica=capacity_for(load, partitions=24))
contest = Contest(trace=judged, world=world, settings=PRICED, names=Names("demo", "orders"), seed=seed)
history = rows_of(replace(contest, trace=past).plant(), contest.names)

# %%
entries = [play(policy, contest) for policy in RIVALS]
entries.append(play(LAGCAST, contest, history))
entries.append(best_plan(contest, entries))
league = League(contest=contest, entries=tuple(entries))
print(lost_days_sentence(league))

# %% [markdown]
# ## What replicas cost, and how many messages are late

# %%
Shown(league_picture(league))
