"""The page of a comparison of Kafka Streams applications, from its JSON alone, and its part of docs/rebalances.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.command import table
from benchmarks.rebalances.expected import PARTITIONS, Change
from benchmarks.rebalances.members import SESSION_SECONDS
from benchmarks.rebalances.page import CHANGES, NEAR_SECONDS, Document, is_near, marked, spread
from cost_model.physics.profile import GroupProfile, StreamsProfile
from cost_model.physics.rebalance import move_effect
from cost_model.physics.streams import capacity_lead_seconds
from forecasting.units import Partitions, Replicas, Seconds

FEW, MANY = 2, 3
# The least that Kafka Streams accepts for `probing.rebalance.interval.ms`; its default is 600 s.
PROBING_SECONDS = 60.0
MOST_WARM_UPS = 2
# Warm-ups of four tasks, two at a time, take two probes, and the machine is busy; a leave takes a session of 10 s.
AFTER_SECONDS: dict[Change, float] = {"in": 75.0, "out": 200.0, "killed": 75.0}
# The start of a JVM on a busy machine.
NEAR_LEAD_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A kind of application: settings of its own, and whether its state directory outlives its process."""

    name: str
    words: str
    static: bool = False
    standbys: int = 0
    volume_kept: bool = False


APPLICATIONS = (
    Application(name="lost", words="state lost with its process"),
    Application(name="static", words="static members, state lost", static=True),
    Application(name="standby", words="one standby, state lost", standbys=1),
    Application(name="kept", words="state directory kept", volume_kept=True),
)


def profile_of(application: Application, restore_bytes: float) -> GroupProfile:
    """The profile of an application, of which the bytes are those that were seen and the restore rate is assumed."""
    return GroupProfile(
        cluster="c",
        group=application.name,
        partitions=Partitions(PARTITIONS),
        capacity=None,
        client="java",
        static_membership=application.static,
        session_timeout_seconds=Seconds(SESSION_SECONDS),
        start_up_seconds=Seconds(0.0),
        streams=StreamsProfile(
            stateful=True,
            tasks=PARTITIONS,
            max_warmup_replicas=MOST_WARM_UPS,
            probing_seconds=Seconds(PROBING_SECONDS),
            standbys=application.standbys,
            restore_bytes=restore_bytes,
            volume_kept=application.volume_kept,
        ),
    )


def expected_effect(application: Application, change: Change, restore_bytes: float) -> dict[str, float]:
    """By the formulas: seconds lost per task, the mean stop of the tasks that stop, and the time until a full share."""
    profile = profile_of(application, restore_bytes)
    before, after = (Replicas(FEW), Replicas(MANY)) if change == "out" else (Replicas(MANY), Replicas(FEW))
    if change == "killed":
        profile = replace(profile, termination_grace_seconds=Seconds(0.0))
    effect = move_effect(profile, from_replicas=before, to_replicas=after)
    lead = capacity_lead_seconds(profile, from_replicas=before, to_replicas=after)
    return {
        "lost_seconds": effect.lost_partition_seconds / PARTITIONS,
        "rebalance_pause_seconds": effect.rebalance_pause_seconds,
        "lead_seconds": lead,
    }


INTRODUCTION = """# Rebalances of Kafka Streams, measured

What a change of size stops in a Kafka Streams application with state on a real broker, compared with what the cost
model's formulas expect. The page is made from one JSON document, which one command writes:

    make bench-streams OUT=FILE ROUNDS={rounds}
    python -m benchmarks.rebalances.streams --page FILE > docs/rebalances-streams.md

- **Where and when.** {measured_at}, Kafka {kafka}, one broker on loopback, a machine with {processors} processors that
  was busy (mean load {load:.1f}) with all applications at once and with other work.
- **Applications.** {tasks} tasks of one sub-topology, classic protocol, the last value of each of {records:,} keys in a
  persistent store with a changelog; {many} processes of one thread. One leaves in order (SIGTERM), comes back, and is
  killed (SIGKILL); rounds of this: {rounds}. A session of {session:g} s, probes each {probing:g} s (Kafka's least; its
  default is 600 s), 2 warm-ups, defaults of Kafka elsewhere.
- **State.** {written:,.0f} bytes of values were written to each application; lagcast saw changelogs of
  {seen} bytes on the broker's disk, with nothing configured.
- **Measured** as on [rebalances.md](rebalances.md), for each task by the records that its processes wrote down. *Full
  share after* is the time from the command to add a process until it has worked on {share} tasks, the start of its JVM
  included.
- **Stops add up** over all rebalances of the time: a process that comes back without its state causes one when it
  joins, and one more at each probe; four JVMs start at that moment on the same processors. Where it has no full share
  yet, a kill stops fewer tasks. No state was written while a process was away, so that a kept directory was within
  `acceptable.recovery.lag` when it came back, and its tasks moved at once; the formula takes a volume to be further
  behind, and to wait for probes.
- **Expected** by the formulas, from the bytes seen and an assumed restore rate of 10 MB/s. Bold: not within 35% or
  {slack:g} s of the median; for the full share, 35% or {lead_slack:g} s.
"""


HEAD = (
    *("application", "a process", "changes", "lost seconds per task", "formula"),
    *("stop of the four longest", "formula", "duplicates", "full share after", "formula"),
)
# The columns of the part of docs/rebalances.md.
SHORT = (0, 1, 3, 4, 5, 6, 8, 9)
SECTION = """
## Kafka Streams with state

{tasks} tasks, {few} and {many} processes, sessions of {session:g} s, probes each {probing:g} s, {measured_at}.
[rebalances-streams.md](rebalances-streams.md) has how, and what the columns and figures in bold are.

"""


def section_of(document: Document) -> str:
    """The part of docs/rebalances.md: the measurements beside the formulas."""
    few, many = document["members"]
    introduction = SECTION.format(
        tasks=document["tasks"],
        few=few,
        many=many,
        session=document["session_seconds"],
        probing=document["probing_seconds"],
        measured_at=document["measured_at"],
    )
    short = [[line[place] for place in SHORT] for line in (HEAD, *_lines(document))]
    return introduction + table(short[0], short[1:], words=2)


def page_of(document: Document) -> str:
    """The page of a run."""
    sizes = document["restore_bytes"].values()
    seen = f"{min(sizes):,.0f} to {max(sizes):,.0f}"
    introduction = INTRODUCTION.format(
        rounds=sum(found["change"] == "in" for found in document["changes"]) // len(APPLICATIONS),
        measured_at=document["measured_at"],
        kafka=document["kafka"],
        processors=document["processors"],
        load=document["mean_load"],
        tasks=document["tasks"],
        many=document["members"][1],
        records=document["records"],
        session=document["session_seconds"],
        probing=document["probing_seconds"],
        written=document["written_bytes"],
        seen=seen,
        share=document["tasks"] // document["members"][1],
        slack=NEAR_SECONDS,
        lead_slack=NEAR_LEAD_SECONDS,
    )
    return f"{introduction}\n{table(HEAD, _lines(document), words=2)}"


def _lines(document: Document) -> Iterator[tuple[str, ...]]:
    """A line for each change of each application."""
    for application in APPLICATIONS:
        expected_bytes = document["restore_bytes"][application.name]
        for change in AFTER_SECONDS:
            key = application.name, change
            own = [found for found in document["changes"] if (found["application"], found["change"]) == key]
            yield _line(application, change, own, expected_effect(application, change, expected_bytes))


def _line(application: Application, change: Change, own: Sequence[Document], expected: Document) -> tuple[str, ...]:
    lost = tuple(sum(found["stops"]) / len(found["stops"]) for found in own)
    longest = [stop for found in own for stop in sorted(found["stops"])[-PARTITIONS // MANY :]]
    leads = [found["lead_seconds"] for found in own if found["lead_seconds"] is not None]
    duplicates = [found["duplicates"] for found in own]
    words = {"out": "comes back"}.get(change, CHANGES[change])
    if change != "out":
        full = "-", "-"
    elif not leads:
        full = f"not within {AFTER_SECONDS['out']:.0f} s", marked(expected["lead_seconds"], False)  # noqa: FBT003
    else:
        near = is_near(median(leads), expected["lead_seconds"], NEAR_LEAD_SECONDS)
        full = f"{median(leads):.0f} s", marked(expected["lead_seconds"], near)
    return (
        application.words,
        words,
        str(len(own)),
        spread(lost),
        marked(expected["lost_seconds"], is_near(median(lost), expected["lost_seconds"], NEAR_SECONDS)),
        f"{median(longest):.1f}",
        f"{expected['rebalance_pause_seconds']:.1f}",
        f"{median(duplicates):,.0f}",
        *full,
    )
