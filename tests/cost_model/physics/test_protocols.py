"""The pauses of each protocol, client and kind of exit: figures measured on Kafka 4.3, and laws that hold in all."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.backlog import expected_overrun
from cost_model.physics.profile import Assignor, Client, CommitMode, GroupProfile, GroupProtocol, StreamsProfile
from cost_model.physics.rebalance import MoveEffect, move_effect
from cost_model.physics.rounds import rebalance_round, settle_seconds
from forecasting.units import Fraction, Partitions, Replicas, Seconds

# The lab's group: 40 partitions, loopback, a session of 10 s; joins together.
LAB = GroupProfile(
    cluster="east",
    group="orders",
    partitions=Partitions(40),
    capacity=None,
    poll_batch_seconds=Seconds(0.0),
    sync_seconds=Seconds(0.02),
    session_timeout_seconds=Seconds(10.0),
    start_up_seconds=Seconds(0.0),
)
PROTOCOLS: tuple[GroupProtocol, ...] = ("eager", "cooperative", "kip848")
CLIENTS: tuple[Client, ...] = ("java", "librdkafka", "other")
COMMIT_MODES: tuple[CommitMode, ...] = ("interval", "batch", "message")
ASSIGNORS: tuple[Assignor, ...] = ("range", "roundrobin", "sticky")


def _effect(profile: GroupProfile, before: int, after: int, quiet: float | None = None) -> MoveEffect:
    return move_effect(
        profile,
        from_replicas=Replicas(before),
        to_replicas=Replicas(after),
        quiet_seconds=None if quiet is None else Seconds(quiet),
    )


def _lost(profile: GroupProfile, before: int, after: int) -> float:
    """Seconds lost per partition of the group."""
    return _effect(profile, before, after).lost_partition_seconds / profile.partitions


@st.composite
def profiles(draw: st.DrawFn) -> GroupProfile:
    """Any protocol, client, commit mode and assignor, with Streams or without."""
    client: Client = draw(st.sampled_from(CLIENTS))
    commit_mode: CommitMode = draw(st.sampled_from(COMMIT_MODES))
    assignor: Assignor = draw(st.sampled_from(ASSIGNORS))
    stateless, stateful = (StreamsProfile(stateful=stateful, tasks=30) for stateful in (False, True))
    return replace(
        LAB,
        protocol=draw(st.sampled_from(PROTOCOLS)),
        client=client,
        commit_mode=commit_mode,
        assignor=assignor,
        streams=draw(st.sampled_from([None, stateless, stateful])),
        poll_batch_seconds=Seconds(draw(st.floats(0.0, 20.0))),
        heartbeat_interval_seconds=Seconds(draw(st.floats(0.1, 10.0))),
        consumer_heartbeat_seconds=Seconds(draw(st.floats(0.1, 10.0))),
        session_timeout_seconds=Seconds(draw(st.floats(10.0, 300.0))),
    )


@pytest.mark.parametrize(("batch", "up", "down"), [(1.0, 7.6, 8.8), (2.0, 10.5, 16.0), (5.0, 23.7, 36.0)])
def test_kip848_long_batches_are_near_the_measurement(batch: float, up: float, down: float) -> None:
    """Each step waits for a batch: 23.7 s going up and 36 s going down at batches of 5 s, within 10 %."""
    profile = replace(LAB, protocol="kip848", poll_batch_seconds=Seconds(batch))
    assert _effect(profile, 4, 8).rebalance_pause_seconds == pytest.approx(up, rel=0.12)
    assert _effect(profile, 8, 4).rebalance_pause_seconds == pytest.approx(down, rel=0.12)


@pytest.mark.parametrize(("before", "after"), [(8, 10), (4, 8), (12, 20)])
def test_b19_each_protocol_has_a_profile_and_the_newer_ones_stop_only_what_moves(before: int, after: int) -> None:
    """Eager stops all partitions, cooperative and KIP-848 those that change owner, for times of their own."""
    moves = {
        protocol: _effect(replace(LAB, protocol=protocol, assignor="sticky"), before, after) for protocol in PROTOCOLS
    }
    moved = moves["eager"].moved_fraction
    assert 0.0 < moved < 1.0
    stopped = {protocol: sum(pause.share for pause in effect.pauses) for protocol, effect in moves.items()}
    assert stopped == pytest.approx({"eager": 1.0, "cooperative": moved, "kip848": moved})
    assert len({effect.rebalance_pause_seconds for effect in moves.values()}) == 3


def test_kip848_stops_only_what_moves_for_half_the_brokers_heartbeat() -> None:
    """Short batches: half of the partitions stop 2.5 s and a sync, however many replicas join and when."""
    profile = replace(LAB, protocol="kip848", start_up_seconds=Seconds(60.0))
    effect = _effect(profile, 4, 8)
    (pause,) = effect.pauses
    assert (pause.share, pause.mean_seconds, effect.expected_rebalances) == pytest.approx((0.5, 2.52, 1.0))


@pytest.mark.parametrize("protocol", ["cooperative", "kip848"])
def test_librdkafka_answers_while_it_works(protocol: GroupProtocol) -> None:
    """Batches of a second lengthen a Java client's newer-protocol pauses; librdkafka's only to the batch's end."""
    java = replace(LAB, protocol=protocol, poll_batch_seconds=Seconds(1.0))
    beside, short = replace(java, client="librdkafka"), replace(java, poll_batch_seconds=Seconds(0.0))
    assert _lost(beside, 4, 8) == pytest.approx(_lost(short, 4, 8))
    assert _lost(beside, 8, 4) < _lost(java, 8, 4) - 0.5 * 4.0
    assert _lost(replace(java, client="other"), 8, 4) == _lost(java, 8, 4)


def test_a_commit_after_each_batch_shortens_a_cooperative_scale_in() -> None:
    """The stop of 5.6 batches becomes one of 4.5."""
    interval = replace(LAB, protocol="cooperative", poll_batch_seconds=Seconds(2.0))
    batch = replace(interval, commit_mode="batch")
    assert _effect(interval, 8, 4).rebalance_pause_seconds - _effect(
        batch, 8, 4
    ).rebalance_pause_seconds == pytest.approx(1.1 * 2.0)


def test_measured_losses_of_a_big_scale_in_at_batches_of_two_seconds() -> None:
    """8 to 4 replicas lost 2.4, 7.3 and 8.4 s per partition under eager, cooperative and KIP-848; within 12 %."""
    profile = replace(LAB, poll_batch_seconds=Seconds(2.0))
    lost = [_lost(replace(profile, protocol=protocol), 8, 4) for protocol in PROTOCOLS]
    assert lost == pytest.approx([2.4, 7.3, 8.4], rel=0.12)


@pytest.mark.parametrize(("members", "deviations"), [(4, 1.0), (10, 1.5), (40, 2.2)])
def test_heartbeats_stay_in_step_for_hours(members: int, deviations: float) -> None:
    """Right after a rebalance the next costs a sync; 5 min later c_N times 0.08 s more; in the end what phases do."""
    at_once, later, quiet, forever = (
        rebalance_round(LAB, members=members, quiet_seconds=None if quiet is None else Seconds(quiet))
        for quiet in (0.0, 300.0, 1e9, None)
    )
    assert at_once.mean_pause_seconds == pytest.approx(0.02)
    assert later.mean_pause_seconds == pytest.approx(0.02 + deviations * 0.0045 * 300.0**0.5, rel=0.05)
    assert quiet == forever
    assert at_once.whole_seconds == pytest.approx(1.5 + 0.02)  # leavers' partitions wait for the common heartbeat


@given(profiles(), st.integers(1, 45), st.integers(1, 45), st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_a_longer_quiet_never_makes_a_move_cheaper(
    profile: GroupProfile, before: int, after: int, one: float, other: float
) -> None:
    """Drift only adds, up to the value that a plan uses when it does not know; at an equal number of rebalances."""
    sooner, later = sorted((one, other))
    after = min(max(after, before - 1), before + 1)
    lost = [_effect(profile, before, after, quiet).lost_partition_seconds for quiet in (sooner, later, None)]
    assert lost == pytest.approx(sorted(lost))


def test_static_members_are_missed_only_when_their_session_ends() -> None:
    """A close without LeaveGroup re-arms the session of 10 s: measured 12.0 s until its partitions move on."""
    static = replace(LAB, static_membership=True)
    whole = rebalance_round(static, members=8).whole_seconds
    assert _effect(static, 10, 8).pauses[-1].mean_seconds == pytest.approx(10.0 + whole)
    assert _effect(static, 10, 8).pauses[-1].mean_seconds == pytest.approx(12.0, rel=0.06)
    kip848 = replace(static, protocol="kip848")
    assert _effect(kip848, 10, 8).rebalance_pause_seconds == pytest.approx(10.0 + 2.5 + 0.02)


def test_a_learned_share_of_silent_exits_mixes_both_columns() -> None:
    """A quarter of ungraceful leaves loses a quarter of the way from the graceful loss to the ungraceful one."""
    graceful, quarter, ungraceful = (
        _lost(replace(LAB, ungraceful_share=Fraction(share)), 10, 8) for share in (0.0, 0.25, 1.0)
    )
    assert quarter == pytest.approx(0.75 * graceful + 0.25 * ungraceful)
    assert [
        pause.share for pause in _effect(replace(LAB, ungraceful_share=Fraction(0.25)), 10, 8).pauses
    ] == pytest.approx([0.8, 0.15, 0.05])
    assert graceful == _lost(LAB, 10, 8)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_oracle_11_a_kill_orphans_partitions_for_the_session_in_every_protocol(protocol: GroupProtocol) -> None:
    """Of 10 replicas 2 are killed: a fifth of the partitions waits the session out, less half a heartbeat."""
    graceful = replace(LAB, protocol=protocol)
    killed = replace(graceful, termination_grace_seconds=Seconds(0.5))
    heartbeat = 5.0 if protocol == "kip848" else 3.0
    assert _lost(killed, 10, 8) - _lost(graceful, 10, 8) == pytest.approx(0.2 * (10.0 - heartbeat / 2.0))


@given(st.integers(1, 40), st.integers(1, 40))
def test_oracle_12_pauses_within_the_promise_make_nothing_late(before: int, after: int) -> None:
    """Short batches and a promise of 10 s: no class of partitions outlasts it, under eager as under KIP-848."""
    for protocol in ("eager", "kip848"):
        for pause in _effect(replace(LAB, protocol=protocol), before, after).pauses:
            assert expected_overrun(mean=pause.mean_seconds, spread=0.0, limit=Seconds(10.0)) == 0.0


@given(profiles(), st.integers(1, 45), st.integers(1, 45), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_graceful_loses_no_more_than_silent_in_every_profile(
    profile: GroupProfile, before: int, after: int, one: float, other: float
) -> None:
    """The more exits are ungraceful, the more is lost; a bigger group has no exits."""
    fewer, more = (
        _lost(replace(profile, ungraceful_share=Fraction(share)), before, after) for share in sorted((one, other))
    )
    assert fewer <= more + 1e-9
    if after > before:
        assert fewer == more


@given(
    profiles(),
    st.integers(1, 40),
    st.integers(-1, 1),
    st.sampled_from(["session_timeout_seconds", "heartbeat_interval_seconds", "consumer_heartbeat_seconds"]),
    st.floats(1.0, 5.0),
)
def test_pauses_do_not_shrink_with_session_or_heartbeat(
    profile: GroupProfile, before: int, step: int, name: str, factor: float
) -> None:
    """One replica more or less, so that the number of rebalances is the same: longer times never lose less.

    Sessions are at least twice the longest heartbeat here: Kafka refuses others.
    """
    profile = replace(profile, session_timeout_seconds=Seconds(profile.session_timeout_seconds + 90.0))
    longer = replace(profile, **{name: factor * getattr(profile, name)})
    for ungraceful in (0.0, 1.0):
        lost = [
            _lost(replace(p, ungraceful_share=Fraction(ungraceful)), before, before + step) for p in (profile, longer)
        ]
        assert lost[0] <= lost[1] + 1e-4  # the integral's grid


@given(profiles(), st.integers(1, 40), st.integers(-1, 1), st.floats(0.0, 20.0))
def test_pauses_do_not_shrink_with_batches(profile: GroupProfile, before: int, step: int, more: float) -> None:
    """One replica more or less: longer batches never lose less, for any kind of leave."""
    longer = replace(profile, poll_batch_seconds=Seconds(profile.poll_batch_seconds + more))
    for ungraceful in (0.0, 1.0):
        lost = [
            _lost(replace(p, ungraceful_share=Fraction(ungraceful)), before, before + step) for p in (profile, longer)
        ]
        assert lost[0] <= lost[1] + 1e-4


@given(profiles(), st.integers(1, 45), st.integers(1, 45))
def test_under_eager_the_assignor_changes_no_pause(profile: GroupProfile, before: int, after: int) -> None:
    """The set of moved partitions decides which members stop only under protocols where the others go on."""
    eager = replace(profile, protocol="eager", streams=None)
    ranges, sticky = (_effect(replace(eager, assignor=assignor), before, after) for assignor in ("range", "sticky"))
    assert ranges.pauses == sticky.pauses
    assert sticky.moved_fraction <= ranges.moved_fraction + 1e-9


def test_the_next_move_waits_until_the_group_has_settled() -> None:
    """At batches of 5 s: 46 s under cooperative and 70 s under KIP-848, as measured; 16 s under eager."""
    profile = replace(LAB, poll_batch_seconds=Seconds(5.0))
    assert [settle_seconds(replace(profile, protocol=p)) for p in PROTOCOLS] == pytest.approx([16.0, 46.0, 70.0])
