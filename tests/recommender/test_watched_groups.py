"""What is kept of each group: it is opened in turns, goes on with what comes, and learns from similar groups."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, count, islice
from unittest.mock import Mock

import pytest

from cost_model.physics.detected import ObservedGroup, ObservedWorkload
from cost_model.physics.learned import Learned
from cost_model.physics.pods import PodStart
from cost_model.physics.profile import GroupProfile
from cost_model.physics.similar import GroupKind, SimilarGroups
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from forecasting.units import Replicas
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Decision, GradedMove, Recommendation
from recommender.following.experts import Experts
from recommender.following.grading import MeasuredPause
from recommender.following.session import Session
from recommender.ports import Condensed, UnavailableError
from recommender.run import Recommender
from recommender.steps import Step
from recommender.watched_groups import LOOK_BACK
from tests.recommender.loop import Rows

Row = Callable[..., GroupInterval]


def _opened_slowly(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], *, off: Collection[str] = ()
) -> Recommender:
    """A loop over g0 to g4 that takes ten seconds to open each, and has 25 in a cycle; those that are off too."""
    loop = make_loop(Rows([replace(row, group=f"g{number}") for number in range(5) for row in hour]))
    seconds, profile_of = [0.0], loop.watched.profile_of

    def slowly(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        seconds[0] += 10.0
        return None if group in off else profile_of(cluster, group, observed)

    loop.watched.timer, loop.watched.profile_of = lambda: seconds[0], slowly
    loop.watched.opening_seconds_per_cycle = 25.0
    return loop


def test_groups_that_take_long_to_open_have_their_advice_in_turns(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A thousand groups with weeks of rows take half an hour: the first ones do not wait for the last one."""
    loop, cycles = _opened_slowly(make_loop, hour), []
    for minute in range(3):
        decisions = loop.run_once(now=now + timedelta(minutes=minute))
        cycles.append(([decision.group for decision in decisions], loop.early.is_set()))
        loop.early.clear()
    assert cycles == [(["g0", "g1"], True), (["g0", "g1", "g2", "g3"], True), (["g0", "g1", "g2", "g3", "g4"], False)]


def test_groups_are_opened_for_as_long_as_the_rest_of_a_cycle_takes(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """Where decisions take most of a cycle, few would be opened in each of many long ones; twice the time at most."""
    groups = [f"g{number}" for number in range(9)]
    loop = make_loop(Rows([replace(row, group=group) for group in groups for row in hour]))
    seconds, profile_of, told = [0.0], loop.watched.profile_of, Mock()

    def slowly(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        seconds[0] += 10.0
        return profile_of(cluster, group, observed)

    def publish(_: Decision) -> None:
        seconds[0] += 20.0

    told.publish.side_effect = publish
    loop.watched.timer, loop.watched.profile_of = lambda: seconds[0], slowly
    loop.watched.opening_seconds_per_cycle = 10.0
    loop.publishers = [told]
    cycles = [len(loop.run_once(now=now + timedelta(minutes=2 * cycle))) for cycle in range(3)]
    # One in 10 s, whose advice takes 20 s: two in the next cycle. The advice of three takes a minute: two again.
    assert cycles == [1, 3, 5]


def test_groups_that_are_read_together_are_opened_together(
    make_loop: Callable[..., Recommender],
    hour: list[GroupInterval],
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading takes as long as opening: a cycle that stopped after two of three would read the third one again."""
    loop, read = _opened_slowly(make_loop, hour), []

    class ReadTogether(Rows):
        def condensed_in_turns(
            self, groups: Sequence[tuple[str, str]], *, newest: timedelta, since: datetime, until: datetime
        ) -> Iterator[Sequence[tuple[tuple[str, str], Condensed]]]:
            of_each = chain.from_iterable(super().condensed_in_turns(groups, newest=newest, since=since, until=until))
            for first in range(0, len(groups), 3):
                read.append([name for _, name in groups[first : first + 3]])
                yield list(islice(of_each, 3))

    loop.watched.histories, loop.watched.opening_seconds_per_cycle = ReadTogether(loop.watched.histories.rows), 15.0  # type: ignore[attr-defined]  # rows in memory
    monkeypatch.setattr(
        loop.watched.store, "groups_with_account", lambda **_: {("c", f"g{number}") for number in range(5)}
    )
    cycles = [len(loop.run_once(now=now + timedelta(minutes=minute))) for minute in range(2)]
    # Two are decided by their newest hour in the first cycle.
    assert (cycles, read) == ([5, 5], [["g0", "g1", "g2"], ["g3", "g4"]])


FLEET = tuple(f"g{number}" for number in range(4))


UNREAD = "of this group's past; the rest follows."


@pytest.fixture
def started_again(make_loop: Callable[..., Recommender], row: Row, now: datetime) -> tuple[Recommender, datetime]:
    """A loop over four groups that were followed before, and the instant of its start; it opens one in each cycle.

    Each has three hours of rows, and takes 10 replicas instead of 8 between the last decision and the start.
    """
    ends = [now + timedelta(seconds=15 * step) for step in range(-720, 81)]
    rows = [
        replace(row(end, 2500.0, members=8 if end < now + timedelta(minutes=5) else 10), group=group)
        for group in FLEET
        for end in ends
    ]
    loop = make_loop(Rows(rows))
    # An account is kept with the decision on the first rows after the first decision.
    for seconds in (0, 15):
        loop.run_once(now=now + timedelta(seconds=seconds))
    loop.start_anew()
    loop.watched.timer, loop.watched.opening_seconds_per_cycle = lambda: 0.0, 0.0
    return loop, ends[-1]


def unread_of(decisions: Sequence[Decision]) -> list[str]:
    """The groups whose advice says that their past is not read."""
    return [
        each.group
        for each in decisions
        if isinstance(each, Recommendation) and any(sentence.endswith(UNREAD) for sentence in each.sentences)
    ]


def test_after_a_restart_each_group_of_a_fleet_has_advice_in_the_first_cycle(
    started_again: tuple[Recommender, datetime],
) -> None:
    """Reading weeks takes seconds a group: until its turn comes, each is decided by its newest hour, and says so."""
    loop, at = started_again
    cycles = [loop.run_once(now=at + timedelta(seconds=15 * cycle)) for cycle in range(5)]
    assert [[each.group for each in decisions] for decisions in cycles] == [list(FLEET)] * 5
    assert all(isinstance(each, Recommendation) for decisions in cycles for each in decisions)
    assert [unread_of(decisions) for decisions in cycles] == [list(FLEET[1:]), list(FLEET[2:]), ["g3"], [], []]
    assert not loop.early.is_set()
    # 10 replicas where 3 carry the load: nothing is removed before the past is known.
    unread = [each for decisions in cycles for each in decisions if unread_of([each])]
    assert {each.action for each in unread if isinstance(each, Recommendation)} == {"hold"}


def test_once_its_past_is_read_a_group_is_decided_as_if_it_had_been_read_at_once(
    started_again: tuple[Recommender, datetime],
) -> None:
    """The same count, beliefs and forecast, and one graded move: the hour alone has taught it nothing."""
    loop, at = started_again
    moves = [len(loop.watched.store.outcomes("c", group, limit=9)) for group in FLEET]
    loop.run_once(now=at)
    assert [len(loop.watched.store.outcomes("c", group, limit=9)) for group in FLEET] == [moves[0] + 1, *moves[1:]]
    decisions: Sequence[Decision] = ()
    for cycle in range(1, 6):
        decisions = loop.run_once(now=at + timedelta(seconds=15 * cycle))
    assert [len(loop.watched.store.outcomes("c", group, limit=9)) for group in FLEET] == [each + 1 for each in moves]
    first, *others = (replace(each, group="", sentences=()) for each in decisions if isinstance(each, Recommendation))
    for other in others:
        assert (other.desired_replicas, other.learned, other.forecast) == (
            first.desired_replicas,
            first.learned,
            first.forecast,
        )


def test_a_group_of_which_nothing_was_kept_is_opened_before_those_that_have_a_first_look(
    started_again: tuple[Recommender, datetime],
) -> None:
    """It came while the recommender was away, and would have no advice until all others are read."""
    loop, at = started_again
    rows = loop.watched.histories
    assert isinstance(rows, Rows)
    rows.rows += [replace(row, group="zz-new") for row in rows.rows if row.group == "g0"]
    decisions = loop.run_once(now=at)
    assert [each.group for each in decisions] == [*FLEET, "zz-new"]
    assert unread_of(decisions) == list(FLEET)


def test_a_group_that_is_silent_or_whose_past_cannot_be_read_is_told_as_without_a_first_look(
    started_again: tuple[Recommender, datetime],
) -> None:
    """A silent one waits for its turn; one that fails in its turn is refused with the reason."""
    loop, at = started_again
    rows = loop.watched.histories
    assert isinstance(rows, Rows)
    rows.rows = [row for row in rows.rows if row.group != "g3" or row.interval_end_at < at - timedelta(hours=2)]
    assert [each.group for each in loop.run_once(now=at)] == ["g0", "g1", "g2"]
    profile_of = loop.watched.profile_of

    def failing(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        if group == "g1":
            message = "odd"
            raise KeyError(message)
        return profile_of(cluster, group, observed)

    loop.watched.profile_of = failing
    by_group = {each.group: each for each in loop.run_once(now=at + timedelta(seconds=15))}
    assert isinstance(by_group["g1"], Refusal)
    for cycle in range(2, 5):
        by_group = {each.group: each for each in loop.run_once(now=at + timedelta(seconds=15 * cycle))}
    silent = by_group["g3"]
    assert isinstance(silent, Refusal)
    assert silent.reason == "history_stale"


def test_groups_that_are_left_out_do_not_keep_others_waiting(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """They are looked at again in each cycle, after those that were never looked at."""
    loop = _opened_slowly(make_loop, hour, off=("g0", "g1"))
    cycles = []
    for minute in range(3):
        decisions = loop.run_once(now=now + timedelta(minutes=minute))
        cycles.append(([decision.group for decision in decisions], loop.early.is_set()))
        loop.early.clear()
    # One of the two waits again in the third, and no cycle begins early for it.
    assert cycles == [([], True), (["g2", "g3"], True), (["g2", "g3", "g4"], False)]


def test_groups_that_wait_are_refused_in_an_outage(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As all others are."""
    loop = _opened_slowly(make_loop, hour)
    assert len(loop.run_once(now=now)) == 2
    monkeypatch.setattr(SqlDecisionStore, "holds", Mock(side_effect=UnavailableError("disk gone")))
    decisions = loop.run_once(now=now + timedelta(minutes=1))
    assert [type(decision) for decision in decisions] == [Refusal] * 5


def test_the_settings_of_a_group_may_change_between_two_cycles(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, profile: GroupProfile
) -> None:
    """The next cycle uses the new settings; while nothing changes, the group's rows are not read again."""
    rows = Rows(hour)
    loop = make_loop(rows)
    profiles, settings = [profile], [loop.watched.settings]
    loop.watched.profile_of = lambda *_: profiles[-1]
    loop.watched.settings_of = lambda *_: settings[-1]
    first, again = (loop.run_once(now=now + timedelta(seconds=minute * 60))[0] for minute in range(2))
    assert rows.asked_since == [now - timedelta(days=28), now]
    profiles.append(replace(profile, max_replicas=Replicas(8)))
    settings.append(replace(loop.watched.settings, currency="EUR", price_per_replica_hour=0.04))
    (changed,) = loop.run_once(now=now + timedelta(seconds=120))
    assert [(d.useful_replicas[-1], d.currency) for d in (first, again, changed) if isinstance(d, Recommendation)] == [
        (24, "pod-hours"),
        (24, "pod-hours"),
        (8, "EUR"),
    ]


def test_a_group_that_is_switched_off_is_left_out_from_then_on(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, profile: GroupProfile
) -> None:
    """It gets no decision and no refusal; switched on again, it is decided as before."""
    loop = make_loop(Rows(hour))
    profiles: list[GroupProfile | None] = [profile]
    loop.watched.profile_of = lambda *_: profiles[-1]
    decided = []
    for cycle, known in enumerate([profile, None, None, profile]):
        profiles.append(known)
        decided.append(len(loop.run_once(now=now + timedelta(seconds=60 * cycle))))
    assert decided == [1, 0, 0, 1]


def test_measured_stops_are_requested_once_a_cycle_and_reach_the_session(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """Stops measured before the first cycle and between two are given to the group's session, and to no other."""
    loop = make_loop(Rows(hour))
    requests: list[tuple[str, str]] = []
    stop = MeasuredPause(began_at=now, ended_at=now, lost_seconds=2.0, resolution_seconds=0.8)

    def stops(group: tuple[str, str]) -> tuple[MeasuredPause, ...]:
        requests.append(group)
        return (stop,)

    loop.watched.stops = stops
    loop.run_once(now=now)
    loop.run_once(now=now + timedelta(seconds=120))
    (watched,) = loop.watched._watched.items()
    assert requests == [watched[0]] * 2
    assert list(watched[1].session._moves._grader._measured) == [stop, stop]


def test_a_stop_that_was_measured_during_a_first_look_reaches_the_session_after_it(
    started_again: tuple[Recommender, datetime],
) -> None:
    """It is told once, while the group is decided by its newest hour, and its move is graded once its past is read."""
    loop, at = started_again
    stop = MeasuredPause(began_at=at, ended_at=at, lost_seconds=2.0, resolution_seconds=0.8)
    coming = {("c", "g3"): [stop]}
    loop.run_once(now=at)
    loop.watched.stops = lambda group: coming.pop(group, [])
    for cycle in range(1, 5):
        loop.run_once(now=at + timedelta(seconds=15 * cycle))
    watched = loop.watched._watched["c", "g3"]
    assert not watched.past_unread
    assert list(watched.session._moves._grader._measured) == [stop]


def test_the_pods_of_a_workload_are_matched_with_the_growth_of_the_group(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], row: Row, now: datetime
) -> None:
    """Two pods are ready after 20 s, and the group grows by them only after 60 s and 75 s: plans expect 75 s.

    What the cluster shows is asked for again in each cycle, and no session begins anew because of it.
    """
    members = 6
    rows = Rows([replace(each, members=members) for each in hour])
    loop = make_loop(rows)
    (before,) = loop.run_once(now=now)
    created_at = now + timedelta(seconds=1)
    starts = tuple(
        PodStart(
            created_at=created_at,
            scheduled_at=created_at,
            started_at=created_at,
            ready_at=created_at + timedelta(seconds=20),
        )
        for _ in range(2)
    )
    rows.rows += [row(now + timedelta(seconds=15 * step), 5000.0, members=members) for step in range(1, 4)]
    rows.rows.append(row(now + timedelta(seconds=61), 5000.0, members=members + 1))
    rows.rows.append(row(now + timedelta(seconds=76), 5000.0, members=members + 2))
    later = now + timedelta(seconds=76)
    loop.watched.workload_of = lambda *_: ObservedWorkload(seen_at=later, starts=starts)
    (after,) = loop.run_once(now=later)
    assert rows.asked_since[-1] == now
    assert isinstance(before, Recommendation)
    assert isinstance(after, Recommendation)
    assert before.learned is not None
    assert after.learned is not None
    assert before.learned.pod_start_up is None
    assert (after.learned.start_up_seconds, after.learned.start_up_source) == (75.0, "detected")


def _taught(loop: Recommender, names: Sequence[str], at: datetime, graded_move: Callable[..., GradedMove]) -> None:
    """Store four moves of a second each, with a start-up of 90 s, of each of these groups."""
    for name in names:
        move = graded_move()
        outcome = replace(move.outcome, rebalance_pause_seconds=1.0, late_messages=0.0, start_up_seconds=90.0)
        moves = [
            replace(move, cluster="c", group=name, graded_at=at + timedelta(minutes=minute), outcome=outcome)
            for minute in range(4)
        ]
        loop.watched.store.keep_outcomes(moves)


@pytest.mark.parametrize("order", [1, -1])
def test_a_group_without_a_move_of_its_own_starts_from_similar_groups(
    make_loop: Callable[..., Recommender],
    hour: list[GroupInterval],
    now: datetime,
    graded_move: Callable[..., GradedMove],
    order: int,
) -> None:
    """From the first cycle of a process on, wherever its name stands in the order: moves of 1 s, ready after 90 s."""
    teachers = [f"m-{index}" for index in range(3)][::order]
    names = ["a-new", *teachers, "z-new"]
    loop = make_loop(Rows([replace(row, group=name) for name in names for row in hour]))
    _taught(loop, teachers, now - timedelta(minutes=30), graded_move)
    advice = {each.group: each for each in loop.run_once(now=now) if isinstance(each, Recommendation)}
    for name in ("a-new", "z-new"):
        learned = advice[name].learned
        assert learned is not None
        assert (learned.source, learned.start_up_source, learned.similar_groups) == (
            "similar_groups",
            "similar_groups",
            3,
        )
        assert learned.rebalance_pause_scale_out_seconds == pytest.approx(1.0)
        assert learned.start_up_seconds == 90.0
        assert learned.start_up_seen_seconds is None
        assert any("as in 3 similar groups" in sentence for sentence in advice[name].sentences)
    taught = advice["m-1"].learned
    assert taught is not None
    assert taught.source == "measured"


def test_a_group_that_becomes_cooperative_is_priced_as_such_from_the_next_cycle_on(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """What new rows tell of a group gives it another profile, and with it another session from all of its rows."""
    eager = [replace(row, group_protocol="classic", group_assignor="range", static_members=0) for row in hour]
    rows = Rows(eager)
    loop = make_loop(rows)
    priced, seen = loop.watched.profile_of, []

    def profile_of(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        seen.append(observed.protocol)
        profile = priced(cluster, group, observed)
        return None if profile is None else replace(profile, protocol=observed.protocol or profile.protocol)

    loop.watched.profile_of = profile_of
    later = now + timedelta(seconds=15)
    rows.rows.append(replace(eager[-1], interval_end_at=later, group_assignor="cooperative-sticky"))
    for at in (now, later, later + timedelta(seconds=1)):
        assert isinstance(loop.run_once(now=at)[0], Recommendation)
    assert (seen[0], seen[-1]) == ("eager", "cooperative")
    assert rows.asked_since[1:] == [now, later + timedelta(seconds=1) - LOOK_BACK]


@pytest.fixture
def trio(
    make_loop: Callable[..., Recommender],
    hour: list[GroupInterval],
    row: Row,
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
) -> Recommender:
    """A loop over three groups with the same rows, in a cycle of which there is time for one that is behind."""
    monkeypatch.setattr("recommender.watched_groups.LATER_SHARE", 1e-9)
    later = [row(now + timedelta(minutes=minute), 4000.0) for minute in range(1, 200)]
    return make_loop(Rows([replace(each, group=group) for each in [*hour, *later] for group in ("a", "b", "c")]))


def _groups_of_calls(monkeypatch: pytest.MonkeyPatch, of: type[Session | Experts], method: str) -> list[str]:
    """The groups for which the method without arguments is called from now on, as the calls come."""
    groups: list[str] = []
    called = getattr(of, method)

    def noted(each: Session | Experts) -> None:
        groups.append(each._profile.group)
        called(each)

    monkeypatch.setattr(of, method, noted)
    return groups


def test_forecasters_that_are_due_together_are_fitted_in_turns(
    trio: Recommender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their share of a cycle is enough for one here: those that have waited longest come first, and nobody starves.

    It is timed as a step of its own; the first fits are a part of reading a group for the first time.
    """
    fitted = _groups_of_calls(monkeypatch, Session, "catch_up")
    steps: list[Mapping[Step, float]] = []
    trio.observe_steps = steps.append
    in_cycles = []
    for minute in (0, 30, 60, 61, 62, 63, 120, 121, 122, 123):
        fitted.clear()
        trio.run_once(now=now + timedelta(minutes=minute))
        in_cycles.append("".join(fitted))
    assert in_cycles == ["abc", "", "a", "b", "c", "", "a", "b", "c", ""]
    timed = [seconds["catch_up"] > 0.0 for seconds in steps]
    assert timed == [False, False, True, True, True, False, True, True, True, False]


def test_rows_that_have_come_are_decided_before_what_is_put_off(
    trio: Recommender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come while each cycle runs: the hourly fits wait for ten minutes, and then have their turns all the same."""
    fitted = _groups_of_calls(monkeypatch, Session, "catch_up")
    trio.run_once(now=now)
    in_cycles = []
    for minute, come in ((60, True), (61, False), (62, True), (69, True), (70, True), (71, True), (72, True)):
        fitted.clear()
        trio.watched.row_count = count(1).__next__ if come else lambda: 0
        trio.run_once(now=now + timedelta(minutes=minute))
        in_cycles.append("".join(fitted))
    assert in_cycles == ["", "a", "", "", "b", "c", ""]


def test_where_a_group_waits_for_its_turn_nobody_replays_before_it(
    trio: Recommender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are observed with replays while there is time for them; with none as long as somebody waits for a turn."""
    trio.run_once(now=now)
    replaying: list[str] = []
    observe = Session.observe

    def seen(session: Session, row: GroupInterval, *, may_replay: bool = True) -> None:
        if may_replay:
            replaying.append(row.group)
        observe(session, row, may_replay=may_replay)

    monkeypatch.setattr(Session, "observe", seen)
    in_cycles = []
    for minute in (1, 60, 61, 62, 63, 64):
        replaying.clear()
        trio.run_once(now=now + timedelta(minutes=minute))
        in_cycles.append("".join(sorted(set(replaying))))
    # After an hour all three are fitted again, one in each cycle.
    assert in_cycles == ["a", "a", "", "", "a", "a"]


def _taught_the_same(
    lessons: Iterable[tuple[GroupKind, Learned]], *, similar: SimilarGroups
) -> Mapping[GroupKind, SimilarGroups | None]:
    return {kind: similar for kind, _ in lessons}


def test_what_similar_groups_have_learned_replays_a_fleet_only_where_it_has_changed(
    trio: Recommender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start-up time of 40 s stays in use while the median is 37 s; from 30 s on every group plays its day again."""
    monkeypatch.setattr("recommender.watched_groups.LATER_SHARE", 1.0)
    replays = _groups_of_calls(monkeypatch, Experts, "replay")
    in_cycles, used = [], []
    # The shadows know of it from the first row after the first decision on.
    for minute, median_seconds in enumerate((40.0, 40.0, 37.0, 43.0, 30.0, 30.0), start=1):
        similar = SimilarGroups(
            groups=3,
            pause_scale_out_seconds=5.0,
            pause_scale_in_seconds=5.0,
            risk_share=1.0,
            start_up_seconds=median_seconds,
        )
        monkeypatch.setattr(trio.watched, "pooling", partial(_taught_the_same, similar=similar))
        replays.clear()
        trio.run_once(now=now + timedelta(minutes=minute))
        in_cycles.append("".join(sorted(set(replays))))
        start_up = trio.watched._watched["c", "a"].session.learned.start_up
        used.append(None if start_up is None else round(start_up.value, 6))
    assert in_cycles[1:] == ["abc", "", "", "abc", ""]
    assert used == [40.0, 40.0, 40.0, 40.0, 30.0, 30.0]


def test_a_group_that_fails_to_catch_up_is_read_again(
    trio: Recommender, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure that nobody has foreseen ends neither the cycle nor the advice of the group, or of any other one."""
    monkeypatch.setattr("recommender.watched_groups.LATER_SHARE", 1.0)
    trio.run_once(now=now)
    catch_up = Session.catch_up

    def fails(session: Session) -> None:
        if session._profile.group == "a":
            message = "no memory"
            raise MemoryError(message)
        catch_up(session)

    with monkeypatch.context() as patched:
        patched.setattr(Session, "catch_up", fails)
        assert all(isinstance(each, Recommendation) for each in trio.run_once(now=now + timedelta(minutes=61)))
    assert set(trio.watched._watched) == {("c", "b"), ("c", "c")}
    assert all(isinstance(each, Recommendation) for each in trio.run_once(now=now + timedelta(minutes=62)))
    assert set(trio.watched._watched) == {("c", "a"), ("c", "b"), ("c", "c")}


def test_partitions_that_come_later_are_planned_with(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A topic that grows from 24 to 48 partitions has other useful counts from the cycle on that follows."""
    rows = Rows(hour)
    loop = make_loop(rows)
    known = loop.watched.profile_of

    def profile_of(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        profile = known(cluster, group, observed)
        return None if profile is None else replace(profile, partitions=observed.partitions)

    loop.watched.profile_of = profile_of
    later = now + timedelta(seconds=15)
    rows.rows.append(replace(hour[-1], interval_end_at=later, partitions=48, sampled_partitions=48))
    first, _, third = (loop.run_once(now=at)[0] for at in (now, later, later + timedelta(minutes=10)))
    assert isinstance(first, Recommendation)
    assert isinstance(third, Recommendation)
    assert (max(first.useful_replicas), max(third.useful_replicas)) == (24, 48)


def test_groups_of_another_kind_teach_nothing(
    make_loop: Callable[..., Recommender],
    hour: list[GroupInterval],
    now: datetime,
    graded_move: Callable[..., GradedMove],
) -> None:
    """Three eager groups say nothing of a cooperative one: it starts from what is assumed."""
    teachers = ["m-0", "m-1", "m-2"]
    loop = make_loop(Rows([replace(row, group=name) for name in (*teachers, "other") for row in hour]))
    eager = loop.watched.profile_of

    def profile_of(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        known = eager(cluster, group, observed)
        return replace(known, protocol="cooperative") if known is not None and group == "other" else known

    loop.watched.profile_of = profile_of
    _taught(loop, teachers, now - timedelta(minutes=30), graded_move)
    (other,) = [each for each in loop.run_once(now=now) if each.group == "other"]
    assert isinstance(other, Recommendation)
    learned = other.learned
    assert learned is not None
    assert (learned.source, learned.similar_groups) == ("assumed", None)
