"""How long replicas take to start, as pods and the growth of their group show."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_model.physics.learned import Learned, MoveOutcome
from cost_model.physics.pods import CHANGES_KEPT, STARTS_KEPT, MembersChange, PodStart, changes_in, start_up_of
from cost_model.physics.similar import SimilarGroups
from tests.cost_model.physics.test_detected import BEGAN_AT, a_row

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SIMILAR = SimilarGroups(
    groups=3, pause_scale_out_seconds=2.0, pause_scale_in_seconds=2.0, risk_share=1.0, start_up_seconds=70.0
)


def at(seconds: float) -> datetime:
    """So many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def a_start(took: float, *, created: float = 0.0, node: float = 1.0, image: float = 2.0) -> PodStart:
    """A pod that was ready so many seconds after it was created."""
    return PodStart(
        created_at=at(created),
        scheduled_at=at(created + node),
        started_at=at(created + node + image),
        ready_at=at(created + took),
    )


def test_without_pods_nothing_is_known() -> None:
    """No pod, no figure."""
    assert start_up_of([]) is None


def test_one_slow_start_in_five_does_not_decide_and_two_do() -> None:
    """Four starts of 40 s and one of 400 s give 40 s; with a second slow one plans expect it."""
    starts = [a_start(40.0, created=60.0 * number) for number in range(4)]
    slow = [a_start(400.0, created=1000.0), a_start(380.0, created=2000.0)]
    for pods, seconds in ((starts + slow[:1], 40.0), (starts + slow, 380.0)):
        found = start_up_of(pods)
        assert found is not None
        assert (found.start_up_seconds, found.pods) == (seconds, len(pods))


def test_the_parts_are_those_of_the_pod_whose_time_it_is() -> None:
    """3 s for a node, 95 s until the containers ran, the rest until it was ready; they add up."""
    found = start_up_of([a_start(150.0, node=3.0, image=95.0)])
    assert found is not None
    parts = (found.node_wait_seconds, found.container_start_seconds, found.joining_seconds)
    assert parts == (3.0, 95.0, 52.0)
    assert sum(parts) == found.start_up_seconds
    assert found.newest_at == at(150.0)


def test_starts_of_an_older_version_fade() -> None:
    """After as many fast starts as are kept, the slow ones before them are forgotten."""
    slow = [a_start(300.0, created=float(number)) for number in range(STARTS_KEPT)]
    fast = [a_start(20.0, created=10_000.0 + number) for number in range(STARTS_KEPT)]
    found = start_up_of(slow + fast)
    assert found is not None
    assert (found.start_up_seconds, found.pods) == (20.0, STARTS_KEPT)


def test_a_pod_is_up_when_the_group_has_grown_by_it() -> None:
    """Two pods are ready after 20 s, but the group has a third member at 60 s and a fourth at 75 s."""
    changes = [MembersChange(at(-600), 2), MembersChange(at(60), 3), MembersChange(at(75), 4)]
    found = start_up_of([a_start(20.0), a_start(21.0)], changes)
    assert found is not None
    assert (found.start_up_seconds, found.newest_at) == (75.0, at(75))


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [MembersChange(at(60), 9)],
        [MembersChange(at(-600), 2), MembersChange(at(10), 3)],
        [MembersChange(at(-600), 2), MembersChange(at(60), 1), MembersChange(at(75), 2)],
        [MembersChange(at(-600), 2), MembersChange(at(3600), 3)],
    ],
    ids=["no rows", "none before", "before it was ready", "a restart", "an hour later"],
)
def test_where_no_growth_can_be_matched_a_pod_is_up_when_it_is_ready(changes: list[MembersChange]) -> None:
    """Rows that do not show by how much the group grew after the pod's creation tell nothing about it."""
    found = start_up_of([a_start(20.0)], changes)
    assert found is not None
    assert found.start_up_seconds == 20.0


def test_changes_are_counted_from_settled_rows_that_show_members() -> None:
    """A row within a rebalance, or without a member count, is none; only the newest changes are kept."""
    rows = [
        a_row(minute=0, members=2),
        a_row(minute=1, members=2),
        a_row(minute=2, members=1, in_rebalance=True),
        a_row(minute=3, members=None),
        a_row(minute=4, members=3),
    ]
    first = changes_in(rows)
    assert first == (MembersChange(BEGAN_AT, 2), MembersChange(BEGAN_AT + timedelta(minutes=4), 3))
    assert changes_in([a_row(minute=5, members=3)], before=first) == first
    many = changes_in([a_row(minute=minute, members=1 + minute % 2) for minute in range(2 * CHANGES_KEPT)])
    assert len(many) == CHANGES_KEPT
    assert many[-1].at == BEGAN_AT + timedelta(minutes=2 * CHANGES_KEPT - 1)


@given(st.lists(st.floats(1.0, 600.0), min_size=1, max_size=STARTS_KEPT))
def test_the_figure_is_the_time_of_a_pod_that_four_of_five_do_not_exceed(took: list[float]) -> None:
    """Never an invented time, never below what most pods took, whatever their order."""
    starts = [a_start(max(3.0, round(seconds)), created=1000.0 * number) for number, seconds in enumerate(took)]
    found = start_up_of(starts)
    assert found is not None
    times = [(start.ready_at - start.created_at).total_seconds() for start in starts]
    assert found.start_up_seconds in times
    assert sum(each <= found.start_up_seconds for each in times) >= 0.8 * len(times)
    other_way = start_up_of(starts[::-1])
    assert other_way is not None
    assert other_way.start_up_seconds == found.start_up_seconds


def test_pods_with_the_same_instants_are_several() -> None:
    """Kubernetes notes whole seconds: ten pods of one scale-out may be alike, and one slow pod is the eleventh."""
    found = start_up_of([a_start(40.0)] * 10 + [a_start(400.0)])
    assert found is not None
    assert (found.start_up_seconds, found.pods) == (40.0, 11)


def test_what_is_set_wins_over_moves_and_they_over_pods_and_those_over_similar_groups() -> None:
    """Each source is left out in turn, the strongest first."""
    pods = start_up_of([a_start(150.0)])
    assert pods is not None
    assumed = Learned.assumed(rebalance_pause_seconds=12.0, risk=0.1)
    moved = assumed.after(
        MoveOutcome(
            from_replicas=2,
            to_replicas=3,
            expected_rebalance_pause_seconds=1.0,
            rebalance_pause_seconds=1.0,
            expected_late_messages=0.0,
            late_messages=0.0,
            start_up_seconds=90.0,
        ),
        late_price=1e-6,
    )

    def known(learned: Learned, *, of_pods: bool = True, owner: bool = False) -> tuple[str, float | None]:
        whole = Learned(
            pause_scale_out=learned.pause_scale_out,
            pause_scale_in=learned.pause_scale_in,
            risk_prior=learned.risk_prior,
            start_up_seen=learned.start_up_seen,
            pod_start_up=pods if of_pods else None,
            start_up_set=owner,
            similar=SIMILAR,
        )
        belief = whole.start_up
        return whole.start_up_source, None if belief is None else round(belief.value, 6)

    assert known(moved, owner=True) == ("assumed", None)
    assert known(moved) == ("measured", 90.0)
    assert known(assumed) == ("detected", 150.0)
    assert known(assumed, of_pods=False) == ("similar_groups", 70.0)
