"""What similar groups have taught: a prior that no outlier decides, and that a group's own moves soon outweigh."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.learned import Learned, MoveOutcome
from cost_model.physics.pooling import pooled, steadied
from cost_model.physics.profile import GroupProfile, StreamsProfile
from cost_model.physics.similar import GroupKind, SimilarGroups, kind_of
from forecasting.units import Partitions, Seconds

PROFILE = GroupProfile(cluster="c", group="g", partitions=Partitions(24), capacity=None)
PAUSES = st.floats(0.5, 120.0)


def _outcome(pause: float, *, up: bool = True, start_up: float | None = None, late: float = 0.0) -> MoveOutcome:
    return MoveOutcome(
        from_replicas=8,
        to_replicas=10 if up else 6,
        expected_rebalance_pause_seconds=12.0,
        rebalance_pause_seconds=pause,
        expected_late_messages=0.0,
        late_messages=late,
        ungraceful=None if up else False,
        start_up_seconds=start_up if up else None,
    )


def _learned(pause: float, *, moves: int = 4, start_up: float | None = 60.0, late: float = 0.0) -> Learned:
    learned = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    for move in range(moves):
        learned = learned.after(_outcome(pause, up=move % 2 == 0, start_up=start_up, late=late), late_price=1e-6)
    return learned


@given(st.lists(PAUSES, min_size=3, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_the_groups_does_not_matter(pauses: list[float], random: object) -> None:
    """The same groups in any order have taught the same."""
    groups = [_learned(pause) for pause in pauses]
    shuffled = list(groups)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert pooled(shuffled) == pooled(groups)


@given(st.lists(st.tuples(PAUSES, st.floats(5.0, 600.0)), min_size=3, max_size=8))
def test_a_prior_lies_between_the_values_of_the_groups(values: list[tuple[float, float]]) -> None:
    """No pause and no start-up time is beyond what some group has measured, and no risk is above the assumed one."""
    found = pooled([_learned(pause, start_up=start_up) for pause, start_up in values])
    assert found is not None
    pauses, start_ups = zip(*values, strict=True)
    for pause in (found.pause_scale_out_seconds, found.pause_scale_in_seconds):
        assert min(pauses) * (1.0 - 1e-9) <= pause <= max(pauses) * (1.0 + 1e-9)
    assert found.start_up_seconds is not None
    assert min(start_ups) * (1.0 - 1e-9) <= found.start_up_seconds <= max(start_ups) * (1.0 + 1e-9)
    assert 0.1 <= found.risk_share <= 1.0


@given(PAUSES, PAUSES, st.floats(0.5, 10_000.0))
def test_one_outlier_does_not_decide(first: float, second: float, outlier: float) -> None:
    """Whatever a third group has measured, the prior lies between those of the other two."""
    found = pooled([_learned(first), _learned(outlier, start_up=9_000.0, late=1e9), _learned(second)])
    assert found is not None
    low, high = sorted((first, second))
    assert low * (1.0 - 1e-9) <= found.pause_scale_out_seconds <= high * (1.0 + 1e-9)
    assert found.start_up_seconds == pytest.approx(60.0)
    assert found.risk_share <= 1.0


@given(PAUSES, PAUSES)
def test_own_moves_outweigh_similar_groups(shared: float, own: float) -> None:
    """After two moves in one direction the pause is no further from the group's own than from the others'."""
    found = pooled([_learned(shared)] * 3)
    assert found is not None
    learned = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    before = learned.starting_from(found)
    assert before.pause_scale_out.value == pytest.approx(shared)
    for _ in range(2):
        learned = learned.after(_outcome(own), late_price=1e-6)
    value = learned.starting_from(found).pause_scale_out.value
    assert max(value / own, own / value) <= max(value / shared, shared / value) * (1.0 + 1e-9)


def test_two_groups_are_too_few() -> None:
    """With two the median would be a mean, that one outlier moves; groups with two moves have not measured enough."""
    assert pooled([_learned(1.0), _learned(2.0)]) is None
    assert pooled([_learned(1.0), _learned(2.0), _learned(3.0, moves=2)]) is None
    assert pooled([_learned(1.0), _learned(2.0), _learned(3.0)]) is not None


def _taught(pause: float, start_up: float | None) -> SimilarGroups:
    return SimilarGroups(
        groups=10,
        pause_scale_out_seconds=pause,
        pause_scale_in_seconds=pause,
        risk_share=1.0,
        start_up_seconds=start_up,
    )


@given(st.lists(st.tuples(PAUSES, st.none() | st.floats(5.0, 600.0)), min_size=2, max_size=8))
def test_times_that_hardly_change_stay_and_are_never_a_tenth_off(values: list[tuple[float, float | None]]) -> None:
    """One after the other: each time is that of before, or the new one where it differs by a tenth."""
    kind = kind_of(PROFILE)
    told: dict[GroupKind, SimilarGroups | None] = {}
    for pause, start_up in values:
        before, found = told.get(kind), _taught(pause, start_up)
        told = steadied({kind: found}, before=told)
        now = told[kind]
        assert now is not None
        for name in ("pause_scale_out_seconds", "pause_scale_in_seconds", "start_up_seconds"):
            is_told, is_found, was = getattr(now, name), getattr(found, name), getattr(before, name, None)
            near = is_found is not None and was is not None and abs(is_found - was) < 0.1 * was
            assert is_told == (was if near else is_found)


def test_a_kind_that_has_taught_too_little_by_now_teaches_nothing() -> None:
    """The lessons of groups that are gone are gone; those of one kind are not told to another one."""
    kind, other = kind_of(PROFILE), kind_of(replace(PROFILE, static_membership=True))
    before = {kind: _taught(5.0, 30.0)}
    assert steadied({kind: None, other: _taught(5.1, None)}, before=before) == {kind: None, other: _taught(5.1, None)}


def test_a_group_does_not_hand_back_what_it_was_given() -> None:
    """Pauses are those of the own moves alone: 1 s, without a part of the 12 s that were assumed."""
    found = pooled([_learned(1.0)] * 3)
    assert found is not None
    assert found.pause_scale_out_seconds == pytest.approx(1.0)
    assert pooled([_learned(1.0).starting_from(found)] * 3) is None


def test_the_source_says_that_a_belief_comes_from_similar_groups() -> None:
    """It is assumed before, measured after three moves of the group's own; a start-up time after the first."""
    found = pooled([_learned(1.0)] * 3)
    assert found is not None
    fresh = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    assert (fresh.source, fresh.start_up_source) == ("assumed", "assumed")
    started = fresh.starting_from(found)
    assert (started.source, started.start_up_source) == ("similar_groups", "similar_groups")
    assert started.risk == pytest.approx(found.risk_share * 0.1)
    assert started.risk_prior == 0.1
    assert started.ungraceful_share == pytest.approx(found.ungraceful_share)
    once = fresh.after(_outcome(3.0, start_up=45.0), late_price=1e-6).starting_from(found)
    assert (once.source, once.start_up_source) == ("similar_groups", "measured")
    assert once.start_up is not None
    assert once.start_up.value == pytest.approx(45.0)
    assert _learned(3.0).starting_from(found).source == "measured"


def test_what_too_few_groups_have_seen_is_left_as_assumed() -> None:
    """Pauses of three groups that only ever removed replicas are known, their start-up time is not."""
    found = pooled([_learned(1.0, start_up=None)] * 3)
    assert found is not None
    assert found.start_up_seconds is None
    started = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1).starting_from(found)
    assert (started.start_up, started.start_up_source) == (None, "assumed")


def test_groups_are_similar_by_what_their_pause_depends_on() -> None:
    """Client, protocol that runs, static membership and the octave of a batch; not names, sizes or capacity."""
    kind = kind_of(PROFILE)
    assert kind_of(replace(PROFILE, group="other", partitions=Partitions(3), start_up_seconds=Seconds(9.0))) == kind
    streams = StreamsProfile(stateful=False, tasks=24)
    others = (
        replace(PROFILE, client="librdkafka"),
        replace(PROFILE, protocol="kip848"),
        replace(PROFILE, static_membership=True),
        replace(PROFILE, poll_batch_seconds=Seconds(2.0)),
        replace(PROFILE, streams=streams),
    )
    assert all(kind_of(other) != kind for other in others)
    assert kind_of(replace(PROFILE, streams=streams)) == kind_of(replace(PROFILE, protocol="cooperative"))
