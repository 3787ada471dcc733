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
# # A day of the ledger
#
# A group follows one rule for a day; beside it, its rows are counted, and what each scaler would have cost on the same
# messages is simulated from them. This is what `lagcast serve` publishes of each group.

# %%
from api.convert import to_wire
from api.keys import group_key
from api.pictures.ledger import group_ledger
from api.pictures.notebook import Engine, Shown
from api.schemas import GroupLedger, RecommendationV1
from forecasting.history import GroupInterval
from recommender.configuring.settings import GroupSettings
from recommender.following.session import Session
from replay.contest import LEAGUE_POLICIES, PRICED, Contest, capacity_for, run_policy
from replay.plant import Observation
from replay.policies.catalogue import CATALOGUE
from replay.policies.lagcast import profile_of
from replay.policies.policy import Policy
from replay.sampling import Names, Rows
from replay.workload import orders_workload
from replay.world import World

Engine()

# %% tags=["parameters"]
seed = 7
rule = "hpa"

# %%
load = orders_workload(days=1, seed=seed)
world = World(partitions=24, capacity_messages_per_second_per_replica=capacity_for(load, partitions=24))
contest = Contest(trace=load, world=world, settings=PRICED, names=Names("demo", "orders"), seed=seed)


class Watched:
    """A policy whose group's rows are kept."""

    def __init__(self, policy: Policy) -> None:
        self.rows: list[GroupInterval] = []
        self._policy, self._made = policy, Rows(contest.names)

    def decide(self, seen: Observation) -> int:
        """The count of the policy."""
        self.rows.append(self._made.row(seen))
        return self._policy.decide(seen)


watched = Watched(CATALOGUE[LEAGUE_POLICIES[rule]].make(world, contest.first_replicas))
played = run_policy(rule, watched, contest)
print(f"{rule}: {played.cost.total:.2f} {PRICED.currency} by the simulated group itself, {played.moves} moves")

# %%
session = Session(profile_of(world, contest.names), PRICED)
for row in watched.rows:
    session.observe(row)
now = watched.rows[-1].interval_end_at
sent = to_wire(session.recommend(now), GroupSettings(), now=now)
if not isinstance(sent, RecommendationV1) or sent.ledger is None:
    raise SystemExit(" ".join(sent.reason.sentences))

# %% [markdown]
# ## What was paid, and what others would have cost

# %%
key = group_key(sent.cluster, sent.group_id)
Shown(
    group_ledger(
        GroupLedger(
            group_key=key, cluster=sent.cluster, group_id=sent.group_id, issued_at=sent.issued_at, ledger=sent.ledger
        )
    )
)
