"""The loop: every group gets its decision, one group's errors do not affect others, and later data teach nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from threading import Event
from unittest.mock import Mock

import pytest
import structlog.testing
from structlog.testing import CapturingLogger

from cost_model.physics.detected import ObservedGroup
from cost_model.physics.profile import GroupProfile
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from recommender.adapters.metrics import Metrics
from recommender.borders import Borders
from recommender.deciding.hold import Hold, HoldScope
from recommender.deciding.recommendation import Decision, Recommendation
from recommender.ports import AccountPart, Obstacle, UnavailableError
from recommender.resting import LongDecisions
from recommender.run import Recommender, run_forever
from recommender.steps import Step
from tests.recommender.loop import RecordingPublisher, Rows, store_of

Row = Callable[..., GroupInterval]


def test_a_decision_is_kept_and_published(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A cycle's decision is the one that the store keeps and that every publisher receives."""
    received = RecordingPublisher()
    loop = make_loop(Rows(hour), [received])
    (decision,) = loop.run_once(now=now)
    assert isinstance(decision, Recommendation)
    assert store_of(loop).latest("c", "orders") == decision
    assert received.decisions == [decision]


def test_a_cycle_ends_after_the_group_in_which_it_is_stopped(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """What was decided until then is stored and published; nothing is reported or tidied, and no other group opened."""
    groups = [f"g{number}" for number in range(9)]
    received, reports = RecordingPublisher(), list[Sequence[Decision]]()
    loop = make_loop(Rows([replace(row, group=group) for group in groups for row in hour]), [received])
    stopped, profile_of, asked = Event(), loop.watched.profile_of, list[str]()

    def stopping(cluster: str, group: str, observed: ObservedGroup) -> GroupProfile | None:
        asked.append(group)
        if group == "g3":
            stopped.set()
        return profile_of(cluster, group, observed)

    run_forever(loop, instants=iter([now]))
    loop.watched.is_stopped, loop.watched.profile_of = stopped.is_set, stopping
    assert len(received.decisions) == 9
    later = now + timedelta(minutes=2)
    run_forever(loop, instants=iter([later]), report=lambda decisions, **_: reports.append(decisions))
    told = [decision.group for decision in received.decisions]
    assert told == [*groups, *groups[:4]]
    newest = [store_of(loop).latest("c", group) for group in groups]
    assert [isinstance(each, Recommendation) and each.issued_at for each in newest] == [later] * 4 + [now] * 5
    assert reports == []
    loop.start_anew()
    asked.clear()
    run_forever(loop, instants=iter([later + timedelta(minutes=1)]))
    assert asked == []
    assert [decision.group for decision in received.decisions] == told


@pytest.mark.parametrize(
    ("error", "reason"), [(UnavailableError("disk gone"), "source_unreachable"), (KeyError("odd"), "unsupported")]
)
def test_one_poisoned_group_does_not_stop_the_others(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, error: Exception, reason: str
) -> None:
    """A group that cannot be decided gets a refusal that names its error; the other groups get their advice."""
    others = [replace(row, group=f"group-{index}") for index in range(3) for row in hour]
    decisions = make_loop(Rows(others, poisoned={"bad": error})).run_once(now=now)
    refused = [decision for decision in decisions if isinstance(decision, Refusal)]
    assert [(refusal.group, refusal.reason) for refusal in refused] == [("bad", reason)]
    assert str(error) in refused[0].sentence
    assert len(decisions) == 4


def test_groups_of_another_shard_are_as_if_they_were_not_there(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """No advice, no refusal, nothing stored, though the table has their rows, and others of them cannot be read."""
    loop = make_loop(Rows([replace(row, group=name) for name in ("ours", "theirs") for row in hour]))
    loop.owns = lambda _cluster, group: group.startswith("ours")
    loop.obstacles = lambda: {("c", name): Obstacle("no_data", "gone", "look") for name in ("ours-2", "theirs-2")}
    decisions = loop.run_once(now=now)
    assert [(each.group, isinstance(each, Refusal)) for each in decisions] == [("ours", False), ("ours-2", True)]
    assert store_of(loop).groups() == (("c", "ours"), ("c", "ours-2"))


def test_a_group_that_is_off_is_left_out(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A group without a profile gets neither advice nor a refusal."""
    assert make_loop(Rows([replace(row, group="off") for row in hour])).run_once(now=now) == ()


def test_rows_after_now_are_not_seen(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A decision as of an earlier instant is the same as a decision at that instant."""
    earlier = now - timedelta(minutes=10)
    known_then = [row for row in hour if row.interval_end_at <= earlier]
    assert make_loop(Rows(hour)).run_once(now=earlier) == make_loop(Rows(known_then)).run_once(now=earlier)


def test_a_second_cycle_reads_only_new_rows(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], row: Row, now: datetime
) -> None:
    """The loop keeps the rows that it has read: the next cycle requests only the rows after the last one."""
    rows = Rows(hour)
    loop = make_loop(rows)
    loop.run_once(now=now)
    rows.rows = [*hour, *(row(now + timedelta(seconds=15 * step), 5000.0) for step in range(1, 5))]
    (decision,) = loop.run_once(now=now + timedelta(minutes=1))
    assert rows.asked_since[-1] == now
    assert isinstance(decision, Recommendation)
    assert decision.observed.as_of == now + timedelta(minutes=1)


def test_p20_a_hold_is_in_force_from_the_next_cycle_on_and_costs_no_state(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], row: Row, now: datetime
) -> None:
    """The session goes on: only new rows are read when a hold begins and when it ends."""
    rows = Rows([*hour, *(row(now + timedelta(seconds=15 * step), 4000.0) for step in range(1, 13))])
    loop = make_loop(rows)
    loop.namespace_of = lambda _cluster, group: "shop" if group == "orders" else None
    scope = HoldScope(namespace="shop")
    store_of(loop).place_hold(Hold(scope=scope, reason="sale", placed_at=now, until=now + timedelta(minutes=2)))
    reasons = []
    for minute in range(3):
        (decision,) = loop.run_once(now=now + timedelta(minutes=minute))
        reasons.append(decision.reason)
    assert (reasons[:2], reasons[2] != "held") == (["held", "held"], True)
    assert rows.asked_since[1:] == [now, now + timedelta(minutes=1)]


@pytest.mark.parametrize("method", ["holds", "save_all", "keep_outcomes"])
def test_p17_while_the_store_does_not_answer_groups_are_refused_and_the_next_cycle_decides_again(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, method: str
) -> None:
    """Nothing is advised that is not stored, nothing moves that somebody has stopped, and no state is lost."""
    publisher, rows = RecordingPublisher(), [replace(each, group=group) for group in ("a", "b", "c") for each in hour]
    loop = make_loop(Rows(rows), [publisher])
    store_of(loop).place_hold(Hold(scope=HoldScope(group="a"), reason="sale", placed_at=now))
    loop.run_once(now=now)
    with pytest.MonkeyPatch.context() as away:
        calls = Mock(side_effect=UnavailableError("the database is away"))
        away.setattr(loop.watched.store, method, calls)
        refused = loop.run_once(now=now + timedelta(minutes=2))
    assert [each.reason for each in refused] == ["source_unreachable"] * 3
    assert publisher.decisions[-3:] == list(refused)
    assert calls.call_count == 1  # a store that does not answer is waited for once a cycle
    # No group is read anew, which takes seconds for each one that has weeks of rows: all are decided at once.
    loop.watched.opening_seconds_per_cycle = 0.0
    loop.watched.timer = count().__next__
    again = loop.run_once(now=now + timedelta(minutes=4))
    assert again[0].reason == "held"
    assert len(again) == 3
    assert all(isinstance(each, Recommendation) for each in again)


def test_p17_after_an_outage_of_a_few_seconds_the_refusal_does_not_stay_until_rows_come(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """What was decided before it does not stand: nobody would be told that it is in force again."""
    publisher = RecordingPublisher()
    loop = make_loop(Rows(hour), [publisher])
    loop.run_once(now=now)
    with pytest.MonkeyPatch.context() as away:
        away.setattr(loop.watched.store, "holds", Mock(side_effect=UnavailableError("the database is away")))
        loop.run_once(now=now + timedelta(seconds=15))
    loop.run_once(now=now + timedelta(seconds=25))
    assert [isinstance(each, Recommendation) for each in publisher.decisions] == [True, False, True]


def test_p17_while_the_table_cannot_be_read_known_groups_are_refused_and_stored(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """The reason is on the REST service too; afterwards the loop goes on with its sessions."""
    loop, later = make_loop(Rows(hour)), now + timedelta(minutes=1)
    loop.run_once(now=now)
    with pytest.MonkeyPatch.context() as away:
        away.setattr(Rows, "groups", Mock(side_effect=OSError("the folder is away")))
        (refusal,) = loop.run_once(now=later)
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.sentence) == ("source_unreachable", "the folder is away")
    assert store_of(loop).latest("c", "orders") == refusal
    (decision,) = loop.run_once(now=later + timedelta(minutes=1))
    assert isinstance(decision, Recommendation)


def test_a_group_whose_decisions_take_long_rests_and_a_hold_is_in_force_all_the_same(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """By a timer on which each look takes two seconds: the second long decision in a row is followed by a rest."""
    publisher = RecordingPublisher()
    loop = make_loop(Rows(hour), [publisher])
    loop.watched.timer = (2.0 * number for number in count()).__next__
    first, second, resting = (loop.run_once(now=now + timedelta(seconds=90 * step))[0] for step in range(3))
    assert publisher.decisions == [first, second]
    assert resting is second
    store_of(loop).place_hold(Hold(scope=HoldScope(group="orders"), reason="sale", placed_at=now))
    (held,) = loop.run_once(now=now + timedelta(seconds=195))
    assert isinstance(held, Recommendation)
    assert held.binding_rule == "hold"
    store_of(loop).release_hold(HoldScope(group="orders"))
    (after,) = loop.run_once(now=now + timedelta(hours=1))
    assert after is publisher.decisions[-1]
    assert len(publisher.decisions) == 4


def test_what_was_decided_stands_until_rows_come_or_a_cycle_has_none(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A thousand groups are not decided again because a row of another one came; nor stored or published again."""
    quiet = [replace(row, group="quiet") for row in hour]
    busy = [replace(hour[-1], group="busy", interval_end_at=now + timedelta(seconds=each)) for each in range(-3600, 99)]
    received = RecordingPublisher()
    loop = make_loop(Rows([*quiet, *busy]), [received])
    assert loop.watched.settings.cycle_seconds == 60.0
    told: list[list[str]] = []
    for seconds in (0, 30, 45, 53, 54, 55):
        decided = loop.run_once(now=now + timedelta(seconds=seconds))
        assert [each.group for each in decided] == ["busy", "quiet"]
        told.append([each.group for each in received.decisions])
        received.decisions.clear()
    assert told == [["busy", "quiet"], ["busy"], ["busy"], ["busy"], ["busy", "quiet"], ["busy", "quiet"]]


def test_what_was_decided_does_not_stand_where_a_hold_or_a_setting_has_changed(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A hold that is placed or released, and a price that is another one, are in force in the next cycle."""
    received = RecordingPublisher()
    loop = make_loop(Rows(hour), [received])
    scope = HoldScope(group="orders")
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: store_of(loop).place_hold(Hold(scope=scope, reason="sale", placed_at=now)),
        lambda: store_of(loop).release_hold(scope),
        lambda: setattr(
            loop.watched, "settings", replace(loop.watched.settings, currency="EUR", price_per_replica_hour=0.04)
        ),
        lambda: None,
    ]
    loop.run_once(now=now)
    counts = [len(received.decisions)]
    for second, change in enumerate(changes, start=1):
        change()
        loop.run_once(now=now + timedelta(seconds=second))
        counts.append(len(received.decisions))
    assert counts == [1, 1, 2, 3, 4, 4]


def test_a_group_rests_no_longer_than_its_time_by_a_clock_that_was_set_back(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """Nor does one short decision in between leave a rest."""
    loop = make_loop(Rows(hour))
    (decision,) = loop.run_once(now=now)
    rests = LongDecisions()
    for seconds in (6.0, 1.0, 6.0):
        rests.note(decision, seconds=seconds, now=now)
    assert rests.resting(("c", "orders"), now=now) is None
    rests.note(decision, seconds=6.0, now=now)
    assert rests.resting(("c", "orders"), now=now + timedelta(seconds=119)) is decision
    assert rests.resting(("c", "orders"), now=now - timedelta(days=1)) is None
    assert rests.resting(("c", "orders"), now=now) is None


def test_a_group_that_is_gone_is_not_kept_in_memory_and_returns_as_after_a_restart(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """Four weeks of its rows are: a group whose name has a date is another one each day."""
    rows = Rows([replace(each, group=group) for group in ("a", "b") for each in hour])
    loop, alive = make_loop(rows), list(rows.rows)
    loop.run_once(now=now)
    rows.rows = [each for each in alive if each.group == "b"]
    (kept,) = loop.run_once(now=now + timedelta(minutes=1))
    assert kept.group == "b"
    assert list(loop.watched._watched) == [("c", "b")]
    assert loop.known_groups.of(("c", "a")) is None
    rows.rows = alive
    assert [each.group for each in loop.run_once(now=now + timedelta(minutes=2))] == ["a", "b"]


def test_p17_a_decision_that_cannot_be_stored_is_its_own_groups_refusal(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For instance one with a value that is no number."""
    loop = make_loop(Rows([replace(each, group=group) for group in ("a", "b") for each in hour]))
    save_all = loop.watched.store.save_all

    def fail(decided: Sequence[tuple[Decision, Sequence[AccountPart]]]) -> None:
        if any(decision.group == "a" for decision, _ in decided):
            message = "Out of range float values are not JSON compliant"
            raise ValueError(message)
        save_all(decided)

    monkeypatch.setattr(loop.watched.store, "save_all", fail)
    first, second = loop.run_once(now=now)
    assert (first.reason, first.sentence[:10]) == ("unsupported", "ValueError")  # type: ignore[union-attr]
    assert isinstance(second, Recommendation)


def test_p17_no_error_of_a_cycle_ends_the_loop(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """Objects, publishers and reports may fail in any way: each is logged when it begins and when it is over."""
    counted: list[str] = []
    loop = make_loop(Rows(hour))
    loop.watched.borders = Borders(counted.append)
    cycles: list[Sequence[Decision]] = []
    no_spec, no_cluster = KeyError("spec"), RuntimeError("no cluster")
    to_look = iter([no_spec, None, None, None, None])
    to_report = iter([None, no_cluster, no_cluster, None, None])

    def obstacles() -> Mapping[tuple[str, str], Obstacle]:
        if error := next(to_look):
            raise error
        return {}

    def report(decisions: Sequence[Decision], *, now: datetime) -> None:  # noqa: ARG001  # the port's
        cycles.append(decisions)
        if error := next(to_report):
            raise error

    loop.obstacles = obstacles
    with structlog.testing.capture_logs() as logged:
        run_forever(loop, instants=iter([now + timedelta(minutes=each) for each in range(5)]), report=report)
    assert len(cycles) == 5
    assert [isinstance(each[0], Recommendation) for each in cycles] == [False, True, True, True, True]
    assert counted == ["step", "step", "step"]
    events = [(line["event"], line["name"]) for line in logged if line["event"].startswith("step_")]
    assert events == [
        (event, name) for name in ("obstacles", "report") for event in ("step_failed", "step_works_again")
    ]


def test_a_failing_publisher_does_not_stop_the_cycle(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """A decision that one publisher failed to publish is stored, and the next publisher receives it."""
    failing, received = RecordingPublisher(failing=True), RecordingPublisher()
    loop = make_loop(Rows(hour), [failing, received])
    (decision,) = loop.run_once(now=now)
    assert received.decisions == [decision]
    assert store_of(loop).latest("c", "orders") == decision


def test_the_loop_decides_at_each_instant_and_ends_with_them(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """One cycle runs for each given instant, and no more."""
    received = RecordingPublisher()
    run_forever(make_loop(Rows(hour), [received]), instants=iter([now - timedelta(minutes=1), now]))
    assert [decision.issued_at for decision in received.decisions if isinstance(decision, Recommendation)] == [
        now - timedelta(minutes=1),
        now,
    ]


def test_the_store_is_tidied_once_an_hour(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cycle each minute it runs at once and after one and two hours; its errors do not end the loop."""
    loop = make_loop(Rows(hour[-4:]))
    requests: list[datetime] = []

    def thin(*, now: datetime) -> int:
        requests.append(now)
        message = "the disk is full"
        raise UnavailableError(message)

    monkeypatch.setattr(loop.watched.store, "thin", thin)
    run_forever(loop, instants=iter([now + timedelta(minutes=minute) for minute in range(121)]))
    assert requests == [now, now + timedelta(hours=1), now + timedelta(hours=2)]


def test_a_group_that_cannot_be_read_is_refused_rows_or_not(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """The refusal has the source's sentence; once the source reports no obstacle there is advice again."""
    loop = make_loop(Rows(hour))
    obstacle = Obstacle("unsupported", "a share group is not supported", "Leave it out.")
    loop.obstacles = lambda: {("c", "clicks"): obstacle, ("c", "orders"): obstacle}
    refusals = loop.run_once(now=now)
    assert [(refusal.group, type(refusal)) for refusal in refusals] == [("clicks", Refusal), ("orders", Refusal)]
    assert {refusal.sentence for refusal in refusals if isinstance(refusal, Refusal)} == {obstacle.sentence}
    loop.obstacles = dict
    (decision,) = loop.run_once(now=now + timedelta(seconds=15))
    assert isinstance(decision, Recommendation)


def test_a_repeated_decision_is_logged_once(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move, then three times that it is under way: two lines at level info, and all decisions are published."""
    received, logged = RecordingPublisher(), CapturingLogger()
    monkeypatch.setattr("recommender.run._log", logged)
    newer = [replace(hour[-1], interval_end_at=now + timedelta(seconds=seconds)) for seconds in (15, 30, 45)]
    loop = make_loop(Rows([*hour, *newer]), [received])
    for seconds in (0, 15, 30, 45):
        loop.run_once(now=now + timedelta(seconds=seconds))
    levels = [call.method_name for call in logged.calls if call.args == ("decided",)]
    assert levels == ["info", "info", "debug", "debug"]
    assert len(received.decisions) == 4


def test_a_report_receives_each_cycle_as_a_whole(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """It receives all decisions of one cycle at once, with the cycle's instant."""
    received: list[tuple[int, datetime]] = []
    others = [replace(row, group=f"group-{index}") for index in range(2) for row in hour]
    run_forever(
        make_loop(Rows(others)),
        instants=iter([now]),
        report=lambda decisions, *, now: received.append((len(decisions), now)),
    )
    assert received == [(2, now)]


def test_each_step_of_a_cycle_is_timed(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a timer that advances by a second at each call, reads are three blocks, writes two, the others one.

    They are in the log line of the cycle and on the page of metrics, under the same names.
    """
    logged = CapturingLogger()
    monkeypatch.setattr("recommender.run._log", logged)
    loop = make_loop(Rows(hour))
    metrics = Metrics(store_of(loop), clock=lambda: now, version="1")
    loop.watched.timer, loop.observe_steps = map(float, count()).__next__, metrics.observe_steps
    loop.run_once(now=now)
    took = {"read": 4.0, "forecast": 1.0, "decide": 1.0, "store": 2.0, "publish": 1.0, "catch_up": 0.0}
    (cycle,) = [call.kwargs for call in logged.calls if call.args == ("cycle",)]
    assert cycle == {"decisions": 1} | {f"{step}_seconds": seconds for step, seconds in took.items()}
    samples = [
        each for each in metrics.page().decode().splitlines() if each.startswith("lagcast_step_duration_seconds")
    ]
    for step, seconds in took.items():
        assert f'lagcast_step_duration_seconds_sum{{step="{step}"}} {seconds}' in samples
        assert f'lagcast_step_duration_seconds_count{{step="{step}"}} 1.0' in samples


def test_a_step_that_fails_is_timed_too(
    make_loop: Callable[..., Recommender], hour: list[GroupInterval], now: datetime
) -> None:
    """If a group cannot be read, the second of the failed read counts, and the next steps run."""
    seen: list[Mapping[Step, float]] = []
    loop = make_loop(Rows(hour[:1], poisoned={"bad": UnavailableError("disk gone")}))
    loop.watched.timer, loop.observe_steps = map(float, count()).__next__, seen.append
    loop.watched.profile_of = lambda *_: None
    loop.run_once(now=now)
    assert seen == [{"read": 4.0, "forecast": 0.0, "decide": 0.0, "store": 1.0, "publish": 1.0, "catch_up": 0.0}]


def test_what_would_reverse_a_decision_is_known_from_the_loop(
    make_loop: Callable[..., Recommender], row: Row, now: datetime
) -> None:
    """It is searched for when a decision is made, and stays with it while it stays the same."""
    rows = Rows([row(now - timedelta(seconds=15 * back), 5000.0) for back in reversed(range(240))])
    loop = make_loop(rows)
    later = now + timedelta(seconds=15)
    rows.rows.append(row(later, 5000.0))
    first, second = (loop.run_once(now=at)[0] for at in (now, later))
    assert isinstance(first, Recommendation)
    assert isinstance(second, Recommendation)
    assert (first.action, second.action) == ("scale_in", "scale_in")
    assert {point.quantity for point in first.sensitivity or ()} >= {"capacity_messages_per_second_per_replica"}
    assert second.sensitivity == first.sensitivity


def test_many_new_decisions_are_told_first_and_searched_later(
    make_loop: Callable[..., Recommender], row: Row, now: datetime
) -> None:
    """With one search a cycle, the second of two groups is told to stay at once, and what reverses it a cycle later."""
    instants = [now - timedelta(seconds=15 * back) for back in reversed(range(-2, 240))]
    rows = Rows([replace(row(at, 6500.0), group=group) for at in instants for group in ("billing", "orders")])
    loop = make_loop(rows)
    loop.searches_per_cycle = 1
    told = [loop.run_once(now=at) for at in instants[-3:]]
    found = [[getattr(each, "sensitivity", None) for each in decisions] for decisions in told]
    assert [[each is not None for each in cycle] for cycle in found] == [[True, False], [True, True], [True, True]]
    assert found[2] == found[1] == [found[0][0]] * 2
