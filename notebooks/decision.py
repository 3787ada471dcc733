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
# # One decision taken apart
#
# What the decision knows, what each plan costs, and what it would have been with other settings. It is the function
# that `lagcast serve` calls, on rows as the feature table has them.

# %%
from dataclasses import replace

from api.convert import to_wire
from api.pictures.notebook import Engine, Shown
from api.pictures.waterfall import waterfall
from api.schemas import RecommendationV1
from recommender.configuring.settings import GroupSettings
from recommender.deciding.beliefs import beliefs, reversals
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Recommendation
from recommender.following.session import Session
from replay.contest import PRICED, Contest, capacity_for
from replay.policies.lagcast import profile_of
from replay.sampling import Names, rows_of
from replay.workload import orders_workload
from replay.world import World

Engine()

# %% tags=["parameters"]
seed = 7
days = 3
hours_before_the_end = 15.75
replicas = 12
other_target_utilization = 0.6

# %%
load = orders_workload(days=days, seed=seed)
past, _ = load.split(round(hours_before_the_end * 3600))
if past is None:
    message = "take more days"
    raise SystemExit(message)
world = World(partitions=24, capacity_messages_per_second_per_replica=capacity_for(load, partitions=24))
contest = Contest(
    trace=past, world=world, settings=PRICED, names=Names("demo", "orders"), seed=seed, start_replicas=replicas
)
history = rows_of(contest.plant(), contest.names)
now = history[-1].interval_end_at


# %%
def advice(settings: DecisionSettings) -> Recommendation:
    """What is advised at the end of the history under these settings."""
    decision = Session(profile_of(world, contest.names), settings, history).recommend(now)
    if not isinstance(decision, Recommendation):
        raise SystemExit(decision.sentence)
    return decision


def sent(decision: Recommendation) -> RecommendationV1:
    """The same as REST sends it."""
    message = to_wire(decision, GroupSettings(), now=now)
    if not isinstance(message, RecommendationV1):
        raise TypeError(message)
    return message


decided = advice(PRICED)
print("\n".join(decided.sentences))

# %% [markdown]
# ## What each plan costs

# %%
Shown(waterfall(sent(decided)))

# %% [markdown]
# ## What it rests on, and what would reverse it

# %%
print("\n".join((*beliefs(decided), *reversals(decided))))

# %% [markdown]
# ## The same with another target utilization

# %%
changed = advice(replace(PRICED, target_utilization=other_target_utilization))
print(f"{decided.desired_replicas} replicas, and {changed.desired_replicas} at {other_target_utilization:.0%}")

# %%
Shown(waterfall(sent(changed)))
