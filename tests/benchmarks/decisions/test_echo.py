"""Equal moves are replayed once, and different moves are never taken for equal."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from benchmarks.decisions.echo import PlayedContest
from replay.contest import Contest, run_policy
from replay.plant.arrivals import draw_arrivals
from replay.plant.plant import Observation
from replay.policies.catalogue import CATALOGUE
from replay.policies.policy import Policy
from replay.trace import Trace
from replay.world import World


@dataclass(frozen=True, slots=True)
class From:
    """A policy of so many replicas from an instant on."""

    second: int
    replicas: int

    def decide(self, seen: Observation) -> int:
        """The present count until that instant."""
        return self.replicas if seen.time_seconds >= self.second else seen.replicas


@pytest.fixture(name="wave")
def wave_fixture(load: Callable[..., Trace], contest: Callable[[World, Trace], Contest]) -> Contest:
    """An hour between 400 and 2,000 messages/s."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=100)
    return contest(world, load(*(1_200 + 800 * np.sin(np.arange(60) / 9.0))))


def test_equal_moves_give_the_entry_that_a_replay_would_give(wave: Contest) -> None:
    """The entry has the policy's own name and note; every figure equals that of a replay of its own."""
    stage = PlayedContest(contest=wave)
    stage.play("first", lambda: From(1_800, 12))
    second = stage.play("second", lambda: From(1_800, 12))
    assert second.note == "moves as first does"
    assert replace(second, note="") == run_policy("second", From(1_800, 12), wave)


@pytest.mark.parametrize("other", [From(1_815, 12), From(1_800, 13), From(3_600, 12), From(0, 12)])
def test_a_policy_with_other_moves_has_a_replay_of_its_own(wave: Contest, other: Policy) -> None:
    """The moves differ by a later decision, by one replica, at the very end or at the very beginning."""
    stage = PlayedContest(contest=wave)
    stage.play("first", lambda: From(1_800, 12))
    assert stage.play("other", lambda: other) == run_policy("other", other, wave)


def test_arms_of_one_target_are_found_to_be_one(wave: Contest) -> None:
    """HPA and KEDA at 10,000 messages are equal below KEDA's cap of 240,000; HPA at 2,000 differs."""
    stage = PlayedContest(contest=wave)
    names = ("hpa-10000", "hpa-2000", "keda-10000")
    entries = [stage.play(name, partial(CATALOGUE[name].make, wave.world, 24)) for name in names]
    assert [entry.note for entry in entries] == ["", "", "moves as hpa-10000 does"]


def test_a_contest_begins_at_the_given_count_and_shares_its_draw(wave: Contest) -> None:
    """It starts with nine replicas instead of enough for the peak; arrivals drawn earlier equal those drawn in it."""
    assert wave.first_replicas == 24
    nine = replace(wave, start_replicas=9)
    assert nine.plant().observation().replicas == 9
    shared = replace(wave, arrivals=draw_arrivals(wave.world, wave.trace, wave.seed))
    assert run_policy("mover", From(900, 12), shared) == run_policy("mover", From(900, 12), wave)
