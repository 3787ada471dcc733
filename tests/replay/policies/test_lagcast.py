"""lagcast as a policy: the rows that it gives the session, when it requests advice, and when it carries it out."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

import pytest

import replay.policies.lagcast
from forecasting.history import GroupInterval
from forecasting.refusal import Refusal
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.recommendation import Decision, Recommendation
from replay.contest import Contest
from replay.policies.lagcast import Lagcast, profile_of
from replay.sampling import Names
from replay.trace import Trace
from replay.world import World

Worlds = Callable[..., World]
Loads = Callable[..., Trace]
Contests = Callable[[World, Trace], Contest]
Advice = Callable[..., Recommendation]
NAMES = Names("test", "orders")


class ScriptedSession:
    """Returns scripted answers at scripted instants; records the rows that it received and the instants of requests."""

    def __init__(self, answers: Iterator[Callable[[datetime], Decision]], due_at: Sequence[datetime]) -> None:
        self.answers = answers
        self.due_at = due_at
        self.rows: list[GroupInterval] = []
        self.requested: list[datetime] = []

    def observe(self, row: GroupInterval) -> None:
        """Record the row."""
        self.rows.append(row)

    def due(self, now: datetime) -> bool:
        """True if the script has an answer for now."""
        return now in self.due_at

    def recommend(self, now: datetime) -> Decision:
        """The next answer of the script."""
        self.requested.append(now)
        return next(self.answers)(now)


@pytest.fixture(name="run")
def run_fixture(
    calm_world: Worlds, load: Loads, contest: Contests, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[list[tuple[int, int]], ScriptedSession]]:
    """`run(*answers, due_seconds=...)`: five minutes; each change as (second, count), and the session."""

    def run(
        *answers: Callable[[datetime], Decision], due_seconds: Sequence[int] = (60, 120, 180, 240, 300)
    ) -> tuple[list[tuple[int, int]], ScriptedSession]:
        trace = load(*[300.0] * 5)
        session = ScriptedSession(iter(answers), [trace.start_at + timedelta(seconds=at) for at in due_seconds])
        monkeypatch.setattr(replay.policies.lagcast, "Session", lambda *_, **__: session)
        plant = contest(calm_world(), trace).plant()
        policy = Lagcast(calm_world(), DecisionSettings(), names=NAMES)
        changes = []
        while plant.remaining_seconds > 0:
            plant.advance(15)
            seen = plant.observation()
            requested = policy.decide(seen)
            if requested != seen.replicas:
                changes.append((seen.time_seconds, requested))
                plant.scale(requested)
        return changes, session

    return run


Run = Callable[..., tuple[list[tuple[int, int]], ScriptedSession]]


def scale_to(advice: Advice, replicas: int, *, after_seconds: int) -> Callable[[datetime], Decision]:
    """Advice to go to `replicas` so many seconds after the request."""
    return lambda now: advice(
        action="scale_out", desired_replicas=replicas, execute_at=now + timedelta(seconds=after_seconds)
    )


@pytest.fixture(name="hold")
def hold_fixture(advice: Advice) -> Callable[[datetime], Decision]:
    """Advice to stay."""
    return lambda now: advice(action="hold", desired_replicas=99, execute_at=now)


def test_advice_is_carried_out_when_its_time_has_come(
    run: Run, advice: Advice, hold: Callable[[datetime], Decision]
) -> None:
    """Advice of 60 s to act 40 s later is carried out once, at 105 s, the next look; advice to stay changes nothing."""
    changes, _ = run(scale_to(advice, 9, after_seconds=40), *[hold] * 4)
    assert changes == [(105, 9)]


def test_newer_advice_takes_the_place_of_older(run: Run, advice: Advice, hold: Callable[[datetime], Decision]) -> None:
    """A move due at 150 s is dropped if at 120 s the advice is another move, to stay, or a refusal."""
    later = scale_to(advice, 9, after_seconds=90)
    assert run(later, scale_to(advice, 7, after_seconds=0), *[hold] * 3)[0] == [(120, 7)]
    assert run(later, *[hold] * 4)[0] == []


def test_a_refusal_keeps_the_present_count(run: Run, advice: Advice, refusal: Callable[..., Refusal]) -> None:
    """A refusal cancels the pending move and requests none itself."""
    changes, _ = run(scale_to(advice, 9, after_seconds=90), *[lambda _: refusal()] * 4)
    assert changes == []


@pytest.mark.parametrize("due", [(60, 120, 180, 240, 300), (15, 75, 90, 150), (300,)])
def test_advice_is_requested_when_the_session_is_due(
    run: Run, hold: Callable[[datetime], Decision], load: Loads, due: Sequence[int]
) -> None:
    """The session knows its cycle and its early decisions; the policy only checks every 15 s."""
    _, session = run(*[hold] * len(due), due_seconds=due)
    start_at = load(1.0).start_at
    assert [(at - start_at).total_seconds() for at in session.requested] == list(due)


def test_every_look_becomes_a_row(run: Run, hold: Callable[[datetime], Decision], load: Loads) -> None:
    """Five minutes give twenty rows, the first one without rates."""
    _, session = run(*[hold] * 5)
    start_at = load(1.0).start_at
    assert [(row.interval_end_at - start_at).total_seconds() for row in session.rows] == list(range(15, 301, 15))
    assert [row.produce_messages_per_second is None for row in session.rows] == [True] + [False] * 19


def test_the_profile_is_what_a_user_would_write(calm_world: Worlds) -> None:
    """Sizes and times of the world have their names, the capacity is one figure, and the world's noise is left out."""
    profile = profile_of(calm_world(protocol="cooperative", min_replicas=2, max_replicas=9), NAMES)
    assert (profile.cluster, profile.group, profile.partitions, profile.protocol) == (
        "test",
        "orders",
        24,
        "cooperative",
    )
    assert (profile.min_replicas, profile.max_replicas, profile.start_up_seconds) == (2, 9, 31.0)
    assert profile.capacity is not None
    assert (profile.capacity.p20, profile.capacity.p50, profile.capacity.p90) == (100.0, 100.0, 100.0)
    assert profile.capacity.source == "configured"
    assert profile.streams is None


def test_the_profile_of_a_streams_application_has_its_warm_up_settings(calm_world: Worlds) -> None:
    """Every partition is a task; the profile has the number of warm-up copies and the probing interval."""
    world = calm_world(protocol="cooperative", restore_seconds=60.0, warmup_slots=4, probing_seconds=100.0)
    streams = profile_of(world, NAMES).streams
    assert streams is not None
    assert (streams.stateful, streams.tasks, streams.max_warmup_replicas) == (True, 24, 4)
    assert (streams.probing_seconds, streams.commit_interval_seconds) == (100.0, 5.0)
