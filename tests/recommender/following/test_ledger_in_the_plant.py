"""The ledger against an independent simulation: its HPA and KEDA beside the real rules in a group of partitions.

A group that follows the useful counts is observed from outside; the plant then plays the same messages under HPA and
KEDA, whose rules, partitions, commits and rebalances share no code with the ledger's.
"""

from dataclasses import replace

import pytest

from benchmarks.decisions.load_families import Draw, drawn
from benchmarks.decisions.tournament import rescaled, scenario_of
from cost_model.physics.profile import Capacity, GroupProfile
from recommender.deciding.recommendation import LedgerStanding
from recommender.following.ledger import LAG_ERROR, Ledger
from recommender.following.moves import MoveLearner
from replay.contest import Contest, run_policy
from replay.plant import Observation
from replay.plant.arrivals import draw_arrivals
from replay.policies.catalogue import CATALOGUE
from replay.policies.lagcast import profile_of
from replay.policies.policy import Policy
from replay.sampling import Rows

HOURS = 8


class Observed:
    """A policy whose group the ledger observes, row by row, with what the group's moves have taught by then."""

    def __init__(self, policy: Policy, contest: Contest) -> None:
        profile = profile_of(contest.world, contest.names)
        assert profile.capacity is not None
        self._policy, self._rows, self._contest = policy, Rows(contest.names), contest
        self._profile: GroupProfile = profile
        self._capacity: Capacity = profile.capacity
        self._moves = MoveLearner(profile, contest.settings, ())
        self._ledger = Ledger(
            profile,
            capacity=profile.capacity.p50,
            max_lag_seconds=contest.settings.max_lag_seconds,
            learned=self._moves.learned,
            members=contest.first_replicas,
        )

    def decide(self, seen: Observation) -> int:
        """The policy's count; the row is counted first."""
        row = self._rows.row(seen)
        self._moves.observe(row, self._capacity)
        self._ledger.observe(row, capacity=self._capacity.p50, learned=self._moves.learned)
        return self._policy.decide(seen)

    def standing(self) -> LedgerStanding:
        """The ledger at the contest's prices."""
        standing = self._ledger.standing(self._contest.prices)
        assert standing is not None
        return standing


def contest_of(family: str, world: str, seed: int, *, hours: int = HOURS) -> Contest:
    """The last hours of a tuning draw's judged day, with one draw of its messages for all policies."""
    scenario = scenario_of(rescaled(drawn(Draw(family=family, with_daily=False, seed=seed))), world, seed, ())
    _, last = scenario.contest.trace.split(hours * 3600)
    contest = replace(scenario.contest, trace=last)
    return replace(contest, arrivals=draw_arrivals(contest.world, contest.trace, contest.seed))


def ledger_of(contest: Contest) -> tuple[LedgerStanding, float]:
    """The ledger of a group that follows the useful counts, and what that group has really cost but for duplicates."""
    observed = Observed(CATALOGUE["useful-counts"].make(contest.world, contest.first_replicas), contest)
    entry = run_policy("useful-counts", observed, contest)
    return observed.standing(), entry.cost.pods + entry.cost.late


def cost_in_the_plant(name: str, contest: Contest) -> float:
    """Pods and late messages of a rival in the plant."""
    cost = run_policy(name, CATALOGUE[name].make(contest.world, contest.first_replicas), contest).cost
    return cost.pods + cost.late


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "world", "seed", "error"),
    [
        ("level-shifts", "fine", 1001, 0.25),
        ("flash-crowds", "real-quick", 1000, 0.25),
        ("random-walk", "tight", 1002, 0.25),
        ("level-shifts", "cooperative", 1003, LAG_ERROR),
        ("bursts", "fine", 1004, LAG_ERROR),
    ],
)
def test_p22_hpa_and_keda_cost_in_the_ledger_what_they_do_in_an_independent_simulation(
    family: str, world: str, seed: int, error: float
) -> None:
    """The group itself within 5 %; KEDA at 2,000 and HPA at 10,000 within this share of the greater cost."""
    contest = contest_of(family, world, seed)
    standing, really = ledger_of(contest)
    assert standing.paid.total == pytest.approx(really, rel=0.05)
    totals = {account.scaler: account.total for account in standing.accounts}
    for name in ("keda-2000", "hpa-10000"):
        costs = (totals[name], cost_in_the_plant(name, contest))
        assert max(costs) - min(costs) <= error * max(costs), name
