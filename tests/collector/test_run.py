"""The loop: it reads on the grid, writes a file a minute, survives passing errors and loses nothing at its end."""

# ruff: noqa: D102  # the fake's methods are those of the port

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from collector.errors import AdapterError, RejectedError, UnavailableError
from collector.kafka_admin import Collected
from collector.run import collect_forever
from collector.sample import OffsetSample

START = datetime(2026, 1, 5, 12, 0, 3, tzinfo=UTC)


class World:
    """A clock that only waiting and collecting move; stops the loop after `rounds` waits."""

    def __init__(self, *, rounds: int, round_seconds: Callable[[int], float] = lambda _: 0.2) -> None:
        self.now = START
        self.waits: list[float] = []
        self.read_at: list[datetime] = []
        self._rounds = rounds
        self._round_seconds = round_seconds

    def clock(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        if len(self.waits) > self._rounds:
            return True
        self.now += timedelta(seconds=seconds)
        return False

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        self.read_at.append(now)
        self.now += timedelta(seconds=self._round_seconds(len(self.read_at)))
        return Collected(samples=(sample(now, (groups or ["all"])[0]),), errors=())


def sample(at: datetime, group: str = "orders") -> OffsetSample:
    return OffsetSample(
        cluster="c",
        group=group,
        topic="t",
        partition=0,
        sampled_at=at,
        end_offset=1,
        committed_offset=None,
        log_start_offset=0,
        group_state="STABLE",
        group_protocol=None,
        group_assignor=None,
        members=None,
    )


def run(world: World, *, sink: Callable[[Sequence[OffsetSample]], object], interval_seconds: int = 15) -> None:
    collect_forever(
        world, sink, groups=["orders"], interval_seconds=interval_seconds, clock=world.clock, wait=world.wait
    )


def seconds_after_noon(instants: Sequence[datetime]) -> list[float]:
    return [(instant - START.replace(second=0)).total_seconds() for instant in instants]


def test_rounds_precede_the_grid_by_a_second() -> None:
    """Rounds fall a second before each multiple of 15 s, so that a jitter of a fraction stays in its interval."""
    world = World(rounds=4, round_seconds=lambda number: 0.1 * number)
    run(world, sink=lambda _: None)
    assert seconds_after_noon(world.read_at) == [14, 29, 44, 59]


def test_a_slow_round_skips_the_instants_it_missed() -> None:
    """A round of 20 s costs the instant it ran over; the next one is on the grid again, without catching up."""
    world = World(rounds=3, round_seconds=lambda number: 20.0 if number == 1 else 0.1)
    run(world, sink=lambda _: None)
    assert seconds_after_noon(world.read_at) == [14, 44, 59]


class Due(World):
    """What is new at the source is there at 6 s after noon, and each 15 s later."""

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        return replace(super().collect(groups, now=now), due_at=START.replace(second=6))


@pytest.mark.parametrize("round_seconds", [0.2, 12.0])
def test_rounds_come_when_something_new_is_due(round_seconds: float) -> None:
    """From the second round on; a long round does not cost the next one, and each is a file of its own."""
    world, files = Due(rounds=4, round_seconds=lambda _: round_seconds), list[int]()
    collect_forever(
        world,
        lambda batch: files.append(len(batch)),
        file_seconds=15,
        clock=world.clock,
        wait=world.wait,
    )
    assert seconds_after_noon(world.read_at) == [14, 36, 51, 66]
    assert files == [1, 1, 1, 1]


def test_a_clock_set_back_is_waited_for_and_a_minute_longer() -> None:
    """Five minutes back after the first round: no instant is read twice, and the next row has no rate.

    Without that minute 315 s of messages would be counted within the 15 s between two stamps, 21 times the load.
    """
    world = World(rounds=2, round_seconds=lambda number: -300.0 if number == 1 else 0.1)
    with capture_logs() as lines:
        run(world, sink=lambda _: None)
    assert seconds_after_noon(world.read_at) == [14, 89]
    assert world.waits[1] == pytest.approx(375)
    assert [line["next_round_at"] for line in lines] == ["2026-01-05T12:01:30+00:00"]


@pytest.mark.parametrize(("back_seconds", "read_at"), [(300.0, [14, 89, 104]), (5.0, [14, 29, 44])])
def test_a_clock_set_back_while_the_loop_waits_is_waited_for_too(back_seconds: float, read_at: list[int]) -> None:
    """No round is read at an instant of the past; a step of seconds is waited for without a gap."""
    world, steps = World(rounds=4), [0.0, back_seconds]

    def wait(seconds: float) -> bool:
        over = world.wait(seconds)
        world.now -= timedelta(seconds=steps.pop(0) if steps else 0.0)
        return over

    collect_forever(world, lambda _: None, groups=["orders"], interval_seconds=15, clock=world.clock, wait=wait)
    assert seconds_after_noon(world.read_at) == read_at


def test_one_file_a_minute() -> None:
    """The sink gets the readings of one minute at a time: those for the grid instants :15 to :00."""
    batches: list[list[float]] = []
    run(World(rounds=9), sink=lambda batch: batches.append(seconds_after_noon([row.sampled_at for row in batch])))
    assert batches == [[14, 29, 44, 59], [74, 89, 104, 119], [134]]


def test_long_intervals_write_each_round() -> None:
    """With an interval above a minute every round is handed over at once."""
    batches: list[int] = []
    run(World(rounds=3), sink=lambda batch: batches.append(len(batch)), interval_seconds=120)
    assert batches == [1, 1, 1]


def test_stopping_hands_over_what_was_collected() -> None:
    """When the loop stops, the unfinished minute is written, and nothing that was handed over before is repeated."""
    batches: list[int] = []
    run(World(rounds=6), sink=lambda batch: batches.append(len(batch)))
    assert batches == [4, 2]


def test_a_failing_sink_ends_the_loop_once() -> None:
    """A full disk stops the loop with its own error, and the sink is not called again with the same rows."""
    calls: list[int] = []

    def full(batch: Sequence[OffsetSample]) -> None:
        calls.append(len(batch))
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        run(World(rounds=9), sink=full)
    assert calls == [4]


class Flaky(World):
    """Fails the rounds whose numbers are given, with the error that is given."""

    def __init__(self, *, rounds: int, failing: Sequence[int], error: AdapterError) -> None:
        super().__init__(rounds=rounds)
        self._failing, self._error, self._number = failing, error, 0

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        self._number += 1
        if self._number in self._failing:
            raise self._error
        return super().collect(groups, now=now)


def test_a_first_round_that_fails_is_raised() -> None:
    """An error in the first round, such as a wrong address, is raised at once instead of being logged for ever."""
    with pytest.raises(UnavailableError, match="no answer"):
        run(Flaky(rounds=3, failing=[1], error=UnavailableError("no answer")), sink=lambda _: None)


def test_a_later_failure_is_logged_and_survived() -> None:
    """A broker that is unreachable for one round costs that round and one line in the log."""
    world = Flaky(rounds=3, failing=[2], error=UnavailableError("no answer"))
    batches: list[int] = []
    with capture_logs() as lines:
        run(world, sink=lambda batch: batches.append(len(batch)))
    assert [line["error"] for line in lines if line["event"] == "round_failed"] == ["no answer"]
    assert batches == [2]


def test_a_group_that_fails_is_logged() -> None:
    """A group's error in a round is one line with the group's name; the samples of the others are kept."""

    class OneDenied(World):
        def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
            collected = super().collect(groups, now=now)
            return Collected(samples=collected.samples, errors=(RejectedError("denied", group="billing"),))

    batches: list[int] = []
    with capture_logs() as lines:
        run(OneDenied(rounds=1), sink=lambda batch: batches.append(len(batch)))
    assert [(line["group"], line["error"]) for line in lines if line["event"] == "group_failed"] == [
        ("billing", "denied")
    ]
    assert batches == [1]


class Failing(World):
    """Has the given errors in its rounds, one tuple a round, and no samples."""

    def __init__(self, *errors: tuple[AdapterError, ...]) -> None:
        super().__init__(rounds=len(errors))
        self._errors = iter(errors)

    def collect(self, groups: Sequence[str] | None, *, now: datetime) -> Collected:
        super().collect(groups, now=now)
        return Collected(samples=(), errors=next(self._errors))


def logged(world: World, groups: Sequence[str] | None) -> list[tuple[str, str | None]]:
    """Event and group of each line that the loop logs."""
    with capture_logs() as lines:
        collect_forever(world, lambda _: None, groups=groups, clock=world.clock, wait=world.wait)
    return [(line["event"], line["group"]) for line in lines]


def test_the_same_error_is_logged_once() -> None:
    """An error that stays is one line when it comes and one when it is over, however many rounds are between."""
    share, denied = RejectedError("a share group", group="clicks"), RejectedError("denied", group="billing")
    world = Failing((share,), (share, denied), (share, denied), (share,), ())
    assert logged(world, ["clicks", "billing"]) == [
        ("group_failed", "clicks"),
        ("group_failed", "billing"),
        ("group_failure_over", "billing"),
        ("group_failure_over", "clicks"),
    ]


def test_another_error_of_the_same_group_is_logged() -> None:
    """A changed error of a group is logged, and the earlier one is not logged as over."""
    world = Failing((RejectedError("denied", group="a"),), (UnavailableError("no leader", group="a"),))
    assert logged(world, ["a"]) == [("group_failed", "a"), ("group_failed", "a")]


def test_an_error_that_comes_back_is_logged_again() -> None:
    """An error that comes back after it was over is logged again."""
    denied = RejectedError("denied", group="a")
    assert logged(Failing((denied,), (), (denied,)), ["a"]) == [
        ("group_failed", "a"),
        ("group_failure_over", "a"),
        ("group_failed", "a"),
    ]


def test_a_cluster_that_shows_no_group_is_logged_once() -> None:
    """Where no group is listed the loop logs it once and names the grant, because Kafka hides groups silently."""
    with capture_logs() as lines:
        world = Failing((), ())
        collect_forever(world, lambda _: None, groups=None, clock=world.clock, wait=world.wait)
    assert [line["error"] for line in lines] == [
        "no group is listed: there is none yet, or this user may see none; grant this user Describe on Group '*'"
    ]


def test_an_empty_round_of_named_groups_is_not_logged() -> None:
    """A round of named groups without samples and errors logs nothing."""
    assert logged(Failing(()), ["orders"]) == []
