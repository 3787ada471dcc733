"""Known facts about a group's moves and partitions decide its plans: each law here changes a decision."""

from dataclasses import replace

import numpy as np
import pytest

from cost_model.physics.profile import GroupProfile, StreamsProfile
from cost_model.pricing.situation import Situation
from cost_model.search.candidates import Plan
from cost_model.search.evaluation import PlanEvaluation
from cost_model.search.optimise import search
from forecasting.units import Fraction, Replicas, Seconds
from tests.cost_model.weighing import weighed


def _target(situation: Situation) -> int:
    best = weighed(situation).best()
    return situation.replicas if best is None else best.target


def _targets(situation: Situation) -> tuple[int, int]:
    """The targets of both the weighing and the search on one path."""
    best = search(situation).best()
    return _target(situation), situation.replicas if best is None else best.target


@pytest.fixture(name="hot")
def hot_fixture(profile: GroupProfile) -> GroupProfile:
    """Thirty percent of the load on the last of 40 partitions: one replica of 100/s carries at most 333/s of it all."""
    return replace(profile, partition_weights=(*(1.0,) * 39, 39.0 * 3.0 / 7.0))


def test_a_hot_partition_needs_more_replicas_than_its_load(plain: Situation, hot: GroupProfile) -> None:
    """250/s are three even replicas' work; with one hot partition 6 carry 257, and 282 takes 9, one of them slow."""
    ramp = replace(plain, replicas=2, demand_messages_per_second=np.repeat([150.0, 250.0], 30))
    assert _targets(ramp) == (3, 3)
    assert _targets(replace(ramp, profile=hot)) == (9, 6)


def test_no_replica_is_added_that_a_hot_partition_leaves_idle(plain: Situation, hot: GroupProfile) -> None:
    """At 1,000/s nothing carries the hot partition; 21 replicas hold it alone, and none of the plans has more."""
    found = weighed(replace(plain, profile=hot, replicas=21, demand_messages_per_second=np.full(60, 1000.0)))
    assert max(found.choices) == 21
    assert found.best() is None or found.choices[-1] == 21


def test_even_weights_change_nothing(plain: Situation) -> None:
    """Weights that are all alike are priced to the last digit as if none were given."""
    even = replace(plain.profile, partition_weights=(2.0,) * 40)
    bare, weighted = (weighed(replace(plain, profile=profile, replicas=14)) for profile in (plain.profile, even))
    assert weighted.choices == bare.choices
    assert weighted.totals == pytest.approx(bare.totals)


STATEFUL = StreamsProfile(stateful=True, tasks=40)
RAMP = np.repeat([350.0, 700.0], (20, 40))


def _streaming(situation: Situation, streams: StreamsProfile | None) -> Situation:
    """Four replicas of a Streams application with graceful leaves, before its load doubles after 20 minutes."""
    profile = replace(situation.profile, streams=streams, ungraceful_share=Fraction(0.0))
    return replace(situation, profile=profile, replicas=4, demand_messages_per_second=RAMP)


def test_oracle_15_state_that_is_not_warm_within_the_horizon_holds(plain: Situation) -> None:
    """Oracle 15: 4 to 8 replicas move 20 tasks, 2 at each probe of 600 s: 100 minutes; of a horizon of 60, hold."""
    eight_at_least = replace(plain, profile=replace(plain.profile, min_replicas=Replicas(8)))
    assert all(target >= 8 for target in _targets(_streaming(eight_at_least, replace(STATEFUL, stateful=False))))
    assert _targets(_streaming(eight_at_least, STATEFUL)) == (4, 4)


def test_of_the_steps_up_only_those_are_taken_that_are_warm_in_time(plain: Situation) -> None:
    """4 to 5 replicas move 8 tasks, 40 minutes: that helps within the hour, and goes out at once."""
    best = weighed(_streaming(plain, STATEFUL)).best()
    assert best is not None
    assert (best.target, best.effective_step, best.command_step) == (5, 40, 0)


def test_state_that_is_warm_in_time_is_commanded_so_much_earlier(plain: Situation) -> None:
    """Twenty warm-ups at once are one probe: what has to carry the load from minute 20 on is commanded in minute 10."""
    best = weighed(_streaming(plain, replace(STATEFUL, max_warmup_replicas=20))).best()
    assert best is not None
    assert best.effective_step - best.command_step == 10
    assert 8 <= best.command_step <= 10


def test_replicas_that_warm_up_are_paid_for(plain: Situation) -> None:
    """Four more replicas for ten minutes without any work: 4 * 0.05 / 6."""
    found = weighed(_streaming(plain, replace(STATEFUL, max_warmup_replicas=20)))
    best = found.best()
    assert best is not None
    row = next(row for row in found.best_of_each_target() if found.move_of(row).target == best.target)
    assert found.cost(row).start_up == pytest.approx((best.target - 4) * 0.05 / 6.0)


def test_tasks_not_partitions_are_what_replicas_share(plain: Situation) -> None:
    """Two joined topics of 20 partitions are 20 tasks: 15 replicas carry what 10 do, and 20 are the most."""
    joined = replace(STATEFUL, stateful=False, tasks=20)
    ramp = replace(_streaming(plain, joined), replicas=8, demand_messages_per_second=np.full(60, 5000.0))
    found = weighed(ramp)
    assert found.choices == (1, 2, 3, 4, 5, 7, 8, 10, 20)
    assert _targets(ramp) == (20, 20)


def _down_to_eight(found: PlanEvaluation) -> int:
    return next(row for row in found.best_of_each_target() if found.move_of(row).target == 8)


def _valley(situation: Situation) -> Situation:
    """Fourteen replicas at the load of eight for half an hour, then at their own; a late minute costs half a move."""
    prices = replace(situation.prices, price_per_late_message=1e-7)
    return replace(situation, prices=prices, replicas=14, demand_messages_per_second=np.repeat([700.0, 1200.0], 30))


def test_state_that_is_read_again_has_a_price(plain: Situation) -> None:
    """Half an hour without six replicas saves 0.15: not worth 36 GB read again on the way down at 0.05 each."""
    warm = replace(STATEFUL, max_warmup_replicas=40, probing_seconds=Seconds(0.0))
    read_again = replace(warm, restore_bytes=8e10, restore_bytes_per_second=1e11)
    profile = replace(plain.profile, streams=read_again, ungraceful_share=Fraction(0.0))
    free = _valley(replace(plain, profile=profile))
    assert _target(free) == 8
    expensive = replace(free, prices=replace(free.prices, price_per_restored_gigabyte=0.05))
    found = weighed(expensive)
    assert found.best() is None
    assert found.move_price(found.move_of(_down_to_eight(found))) == pytest.approx(0.02 + 0.05 * 36.0)


def _leaving(situation: Situation, **changes: object) -> PlanEvaluation:
    """Fourteen replicas at a load for eight, of which every one that leaves is killed."""
    profile = replace(situation.profile, ungraceful_share=Fraction(1.0), session_timeout_seconds=Seconds(0.0))
    changed = replace(profile, **changes)  # type: ignore[arg-type]  # the fields' types are the tests' concern
    return weighed(replace(situation, profile=changed, replicas=14, demand_messages_per_second=np.full(60, 700.0)))


def test_lost_messages_count_as_late(plain: Situation) -> None:
    """A librdkafka group with batches and commits of 5 s: a kill loses 5/6 s of what six of 14 replicas consume."""
    five, late = Seconds(5.0), plain.prices.price_per_late_message
    batches = {"poll_batch_seconds": five, "commit_interval_seconds": five, "termination_grace_seconds": Seconds(1.0)}
    java, other = (_leaving(plain, client=client, **batches) for client in ("java", "librdkafka"))
    lost = late * 700.0 * (6.0 / 14.0) * 5.0 / 6.0
    row = _down_to_eight(other)
    assert other.cost(row).pause_late - java.cost(_down_to_eight(java)).pause_late == pytest.approx(lost, rel=1e-6)
    assert other.move_price(other.move_of(row)) > java.move_price(java.move_of(_down_to_eight(java)))


def test_messages_in_work_at_a_kill_are_repeated(plain: Situation) -> None:
    """With a commit for each message and 50 in work in each of six killed replicas, 150 are done twice.

    At 0.001 each that eats up what half an hour without six replicas saves, 0.15; with one in work it does not.
    """
    expensive = replace(plain, prices=replace(plain.prices, price_per_duplicate_message=1e-3))
    found = _leaving(expensive, commit_mode="message", concurrency=50, poll_batch_seconds=Seconds(1.0))
    row = _down_to_eight(found)
    assert found.cost(row).duplicates == pytest.approx(0.15)
    assert found.duplicates_price(found.move_of(row)) == pytest.approx(0.15)
    killed = replace(plain.profile, ungraceful_share=Fraction(1.0), session_timeout_seconds=Seconds(0.0))
    targets = [
        _targets(_valley(replace(expensive, profile=replace(killed, commit_mode="message", concurrency=at_once))))
        for at_once in (1, 50)
    ]
    assert targets == [(8, 8), (14, 14)]


def test_a_move_that_answers_a_backlog_meets_full_batches(plain: Situation) -> None:
    """500 records at 100/s are 5 s: a cooperative move up stops what it moves 12 s; ahead of the backlog, nothing."""
    profile = replace(plain.profile, protocol="cooperative")
    ahead = replace(plain, profile=profile, replicas=8, demand_messages_per_second=np.full(60, 790.0))
    behind = replace(ahead, lag_messages=3_000.0)
    calm, late = weighed(ahead), weighed(behind)
    row = next(row for row in late.best_of_each_target() if late.move_of(row).target == 10)
    assert calm.move_price(late.move_of(row)) == pytest.approx(0.02)
    assert late.move_price(late.move_of(row)) > 0.02 + 1e-5 * 790.0 * 0.2 * (12.0 - 5.0)


def test_a_stop_soon_after_another_is_short(plain: Situation) -> None:
    """Heartbeats of 9 s that beat apart stop a group over 3 s, too long for a promise of 2 s; in step, not at all."""
    profile = replace(plain.profile, heartbeat_interval_seconds=Seconds(9.0))
    waiting = replace(plain, profile=profile, replicas=8, max_lag_seconds=2.0, demand_messages_per_second=RAMP + 350.0)
    long_quiet, just_moved = weighed(waiting), weighed(replace(waiting, quiet_seconds=60.0))
    row = next(row for row in long_quiet.best_of_each_target() if long_quiet.move_of(row).target == 14)
    move = long_quiet.move_of(row)
    assert long_quiet.move_price(move) > 0.02
    assert just_moved.move_price(move) == pytest.approx(0.02)


def test_the_window_holds_the_times_that_are_as_good(plain: Situation) -> None:
    """Every step in the window costs at most the tolerance more than the best one; the next one outside costs more."""
    found = weighed(replace(plain, replicas=14, demand_messages_per_second=np.repeat([1200.0, 300.0], (20, 40))))
    move = found.best()
    assert move is not None
    first, last = found.window(move, 0.05)
    assert first <= move.effective_step <= last
    prices = {step: found.totals_of(Plan(moves=((step, move.target), (60, move.target)))).mean() for step in range(60)}
    least = prices[move.effective_step]
    assert all(prices[step] <= least + 0.05 + 1e-9 for step in range(first, last + 1))
    assert last == 59 or prices[last + 1] > least + 0.05
