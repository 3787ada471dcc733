"""The rivals by CPU, by produce rate, by forecast and by Flink's formula, step by step, and the catalogue."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.units import IntArray
from replay.plant import Observation
from replay.policies.catalogue import CATALOGUE, HPA_TARGETS_MESSAGES, KEDA_THRESHOLDS_MESSAGES
from replay.policies.flink import Flink
from replay.policies.hpa import LegacyRules
from replay.policies.hpa_cpu import HpaCpu
from replay.policies.pcc import Pcc
from replay.policies.policy import Policy
from replay.policies.rate import RateBased
from replay.policies.useful_counts import UsefulCounts
from replay.world import World

Worlds = Callable[..., World]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The observation that a policy receives."""

    time_seconds: int
    replicas: int
    ready_members: int
    busy_share: float
    end_offsets: IntArray
    committed_offsets: IntArray
    group_state: str = "STABLE"

    @property
    def at(self) -> datetime:
        """The instant, counted from midnight."""
        return datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=self.time_seconds)

    @property
    def lag_messages(self) -> IntArray:
        """End offset minus committed offset."""
        return self.end_offsets - self.committed_offsets


def seen(
    *, end: float, lag: float = 0.0, at: int = 15, replicas: int = 8, ready: int | None = None, busy: float = 0.5
) -> Observation:
    """A group that has all its offsets in two partitions."""
    ends = np.array([end - end // 2, end // 2], dtype=np.int64)
    committed = ends - np.array([lag - lag // 2, lag // 2], dtype=np.int64)
    ready = replicas if ready is None else ready
    shown = Seen(
        time_seconds=at,
        replicas=replicas,
        ready_members=ready,
        busy_share=busy,
        end_offsets=ends,
        committed_offsets=committed,
    )
    return cast("Observation", shown)


def follow(
    policy: Policy,
    rate_at: Callable[[int], float],
    *,
    seconds: int,
    replicas: int,
    capacity: float = 100.0,
    lag: float = 0.0,
) -> list[tuple[int, int]]:
    """Each change as (second, new count) in a group that obeys at once and shares everything equally."""
    changes, end = [], 0.0
    for now in range(15, seconds + 1, 15):
        arrived = 15.0 * rate_at(now)
        served = min(lag + arrived, 15.0 * capacity * replicas)
        end, lag = end + arrived, lag + arrived - served
        busy = served / (15.0 * capacity * replicas)
        requested = policy.decide(seen(end=10**6 + end, lag=lag, at=now, replicas=replicas, busy=busy))
        if requested != replicas:
            changes.append((now, requested))
            replicas = requested
    return changes


# The HPA on CPU.


def test_a_pod_is_ready_after_a_whole_sample() -> None:
    """Four replicas became eight before this sample: the new ones count as idle here, as ready at the next sample."""
    hpa = HpaCpu(target_percent=50, rules=LegacyRules())
    assert hpa.decide(seen(end=0, at=15, ready=4, busy=0.9)) == 8
    assert hpa.decide(seen(end=0, at=30, ready=8, busy=0.9)) == 8
    assert hpa.decide(seen(end=0, at=45, ready=8, busy=0.9)) == 15


def test_cpu_is_blind_to_lag() -> None:
    """Nothing is consumed and ten million messages wait: the count stays for five minutes, then goes to the least."""
    hpa = HpaCpu(target_percent=80, rules=LegacyRules(least=2))
    requested = [hpa.decide(seen(end=10**7, lag=10**7, at=at, busy=0.0)) for at in range(15, 346, 15)]
    assert requested == [8] * 21 + [2] * 2


# Rate-based, and the useful counts.


def test_the_rate_policy_follows_the_last_minute(calm_world: Worlds) -> None:
    """1.25 x 800/100 is 10 of 8; from 800 to 400 messages/s it falls 5 minutes after the last higher wanted count."""
    policy = RateBased(world=calm_world())
    changes = follow(policy, lambda now: 800.0 if now <= 600 else 400.0, seconds=1_500, replicas=8)
    # The mean of the minute that ends at 615 s is 700: 9 are wanted, at 630 s 8, at 645 s 7, from 660 s on 5. The last
    # wanted count of ten, at 600 s, counts until 900 s, and so on.
    assert changes == [(30, 10), (915, 9), (930, 8), (945, 7), (960, 5)]


@pytest.mark.parametrize(("rate", "expected"), [(1_640.0, 20), (1_800.0, 23), (1_400.0, 20), (1_340.0, 17)])
def test_the_rate_policy_holds_within_a_tenth(calm_world: Worlds, rate: float, expected: int) -> None:
    """Of twenty replicas, 21 and 18 are within the tolerance; 23 and 17 are not."""
    changes = follow(RateBased(world=calm_world()), lambda _: rate, seconds=60, replicas=20)
    assert [replicas for _, replicas in changes] == [expected] * (expected != 20)


@given(rate=st.floats(0.0, 3_000.0), partitions=st.integers(1, 130))
def test_useful_counts_requests_the_smallest_count_that_carries(rate: float, partitions: int) -> None:
    """The requested count is the world's smallest that carries 1.2 times the rate."""
    world = World(partitions=partitions, capacity_messages_per_second_per_replica=100.0)
    policy, sent = UsefulCounts(world=world), int(15 * rate)
    policy.decide(seen(end=0, at=15, replicas=1))
    assert policy.decide(seen(end=sent, at=30, replicas=1)) == world.smallest_carrying(1.2 * sent / 15)


# Production over consumption per consumer.


def test_pcc_requests_the_forecast_over_the_rate_of_one_consumer(calm_world: Worlds) -> None:
    """1,200 messages/s come from 600 s on, eight consume 800: (72,000 + 120,000/5) / 6,000 a minute are sixteen.

    At 1,200 s they have drained the lag at full speed, 6,000 each. By then one season is known, and
    sixteen minutes ago 800 came: 48,000 / 6,000 are eight, too few.
    """
    policy = Pcc(world=calm_world(), capacity_seen=False)
    changes = follow(policy, lambda now: 800.0 if now <= 600 else 1_200.0, seconds=1_200, replicas=8)
    assert changes == [(900, 16), (1_200, 8)]


@pytest.mark.parametrize(("capacity_seen", "after"), [(False, []), (True, [(900, 8)])])
def test_pcc_finds_idle_capacity_only_if_it_remembers(
    calm_world: Worlds, *, capacity_seen: bool, after: list[tuple[int, int]]
) -> None:
    """After a drain nine keep up with 800 messages/s: each consumes 5,333 a minute, but consumed 6,000 before."""
    policy = Pcc(world=calm_world(), capacity_seen=capacity_seen)
    changes = follow(policy, lambda _: 800.0, seconds=3_000, replicas=16, lag=500_000.0)
    assert changes == [(600, 9), *after]


def test_pcc_holds_where_nothing_is_consumed(calm_world: Worlds) -> None:
    """Without consumption there is no measure of what one consumer consumes."""
    policy = Pcc(world=calm_world(), capacity_seen=False)
    shown = [seen(end=at, lag=at, at=at, replicas=5) for at in range(15, 1_201, 15)]
    assert {policy.decide(each) for each in shown} == {5}


# Flink's formula.


def test_flink_goes_up_when_its_window_is_full(calm_world: Worlds) -> None:
    """900 messages/s on eight of 100: five minutes to settle, then fifteen of metrics from the next full minute on.

    150 + 900/0.7 + 90,000/1,800 over 800 is 1.86: fifteen of 24 partitions, aligned 24.
    """
    changes = follow(Flink(world=calm_world()), lambda _: 900.0, seconds=1_500, replicas=8)
    assert changes == [(1_260, 24)]


def test_flink_goes_down_after_an_hour(calm_world: Worlds) -> None:
    """200 messages/s on eight: 33 + 286 over 800 is 0.4, so four; wanted at 1,260 s, done an hour later."""
    changes = follow(Flink(world=calm_world()), lambda _: 200.0, seconds=4_900, replicas=8)
    assert changes == [(4_860, 4)]


def test_flink_goes_down_to_the_most_wanted_in_the_hour(calm_world: Worlds) -> None:
    """At 400 messages/s for half an hour eight of 24 are wanted more than once: 67 + 571 over 2,400 is 0.4."""
    world = calm_world()
    changes = follow(Flink(world=world), lambda now: 600.0 if now < 3_600 else 200.0, seconds=4_900, replicas=24)
    assert changes == [(4_860, 12)]


def test_flink_forgets_a_lower_wanted_count_when_more_is_wanted(calm_world: Worlds) -> None:
    """15 minutes at 500 messages/s want all eight: the hour restarts when a window wants fewer again.

    That is some minutes after 3,900 s, an hour before the only move.
    """
    policy = Flink(world=calm_world())
    changes = follow(policy, lambda now: 500.0 if 3_000 < now <= 3_900 else 200.0, seconds=9_000, replicas=8)
    assert len(changes) == 1
    assert 3_900 + 3_600 < changes[0][0] < 3_900 + 900 + 3_600


def test_flink_measures_anew_after_a_rescale(calm_world: Worlds) -> None:
    """While a pod starts nothing is measured: the window is full 20 minutes after the last pod is ready."""
    policy = Flink(world=calm_world())
    requested = [
        policy.decide(seen(end=900 * at, lag=100 * at, at=at, ready=7 if at <= 600 else 8, busy=1.0))
        for at in range(15, 2_001, 15)
    ]
    # The last sample without it is at 600 s; 900 s is the first full minute, and fifteen minutes later it is 1,800 s.
    assert next(15 * place for place, replicas in enumerate(requested, start=1) if replicas != 8) == 1_800


# The catalogue of policies.


def test_every_policy_of_the_comparison_is_there() -> None:
    """The catalogue has fixed, HPA on lag and CPU, KEDA, pcc, Flink, rate and useful-counts, with swept settings."""
    singles = {"fixed", "fixed-ceiling", "hpa-2019", "pcc", "pcc-max", "flink", "rate-1.25", "useful-counts"}
    cpu = {f"hpa-cpu-{percent}" for percent in (20, 80)} | {f"hpa-cpu-behavior-{percent}" for percent in (20, 80)}
    hpa = {f"{kind}-{target}" for kind in ("hpa", "hpa-behavior") for target in HPA_TARGETS_MESSAGES}
    keda = {f"{kind}-{threshold}" for kind in ("keda", "keda-even") for threshold in KEDA_THRESHOLDS_MESSAGES}
    assert set(CATALOGUE) == singles | cpu | hpa | keda
    published = {name for name, entry in CATALOGUE.items() if entry.published}
    assert published == {"fixed-ceiling", "hpa-2019", "hpa-10000", "hpa-cpu-20", "pcc", "flink"}


def test_policies_of_a_family_are_made_for_the_world(calm_world: Worlds) -> None:
    """Fixed policies keep the first count or take the maximum; the HPA of 2019 compares as it did in 2019."""
    world, shown = calm_world(max_replicas=20), seen(end=0, replicas=7)
    assert CATALOGUE["fixed"].make(world, 7).decide(shown) == 7
    assert CATALOGUE["fixed-ceiling"].make(world, 7).decide(shown) == 20
    near_enough = seen(end=110_000, lag=110_000, replicas=10)
    assert CATALOGUE["hpa-2019"].make(world, 10).decide(near_enough) == 11
    assert CATALOGUE["hpa-10000"].make(world, 10).decide(near_enough) == 10


@given(
    name=st.sampled_from(sorted(CATALOGUE)),
    rates=st.lists(st.floats(0.0, 50_000.0), min_size=1, max_size=40),
    first=st.integers(2, 30),
)
def test_no_policy_leaves_the_bounds(name: str, rates: list[float], first: int) -> None:
    """Counts stay between 2 and 30 on 24 partitions, at any load and first count; each rate lasts two minutes."""
    world = World(partitions=24, capacity_messages_per_second_per_replica=100.0, min_replicas=2, max_replicas=30)
    policy = CATALOGUE[name].make(world, first)
    changes = follow(policy, lambda now: rates[(now - 1) // 120], seconds=120 * len(rates), replicas=first)
    assert all(2 <= replicas <= 30 for _, replicas in changes)


def test_two_policies_of_one_name_share_no_memory(calm_world: Worlds) -> None:
    """Each run has its own policy object: a spike in one run is unknown to the other."""
    one, other = (CATALOGUE["hpa-1000"].make(calm_world(), 4) for _ in range(2))
    assert one.decide(seen(end=24_000, lag=24_000, replicas=4)) == 8
    assert one.decide(seen(end=24_000, at=30, replicas=8)) == 16
    assert other.decide(seen(end=24_000, at=30, replicas=8)) == 8
