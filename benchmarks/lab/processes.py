"""Scalers on a real Kafka: the same compressed load, real replicas, one policy after the other.

    python -m benchmarks.lab.processes --minutes 5 --protocol cooperative    or: make lab PROTOCOL=cooperative MINUTES=5

Each policy has a topic of 12 partitions on a broker on loopback, a producer that follows a stretch of the project's own
workload (an hour of it in a minute), and replicas that are processes of librdkafka consumers and take 1/60 s a message.
Every 15 s the policy gets the collector's observation and returns the number of replicas: `fixed` as many as the peak
takes, `keda` by lag (5 s of a replica's work each, an HPA without `behavior`), `lagcast` through its session. The
table's figures come from time stamps, offsets and batches of messages; but replica-seconds are those of processes, and
rebalances are counted by the meter. Exit code 1 where a message was lost.

lagcast's forecast is at a disadvantage: its history is one hour of rows, and it has no season for days of 24 minutes.
The lab measures the real cost of moves.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from api.schemas import Target
from benchmarks.command import table
from benchmarks.lab.group import LocalReplicas
from benchmarks.lab.policies import CAPACITY, LAB_POLICIES, Setting, rows_before, setting_of
from benchmarks.lab.stage import LabTopic, PolicyResult, clock, next_grid, play_policy
from benchmarks.rebalances.expected import PROTOCOLS
from collector.meter import Interruption
from executor.plan import Act, DueMove
from forecasting.units import MessagesPerSecond

WORKLOAD = Target(api_version="apps/v1", kind="Deployment", name="lab")


def main() -> int:
    """Run all policies and print their table; 1 where a message was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long each policy runs (default 5)")
    parser.add_argument("--protocol", choices=tuple(PROTOCOLS), default="cooperative", help="of the group")
    arguments = parser.parse_args()
    setting = setting_of(arguments.protocol, seconds=round(60 * arguments.minutes))
    results = play(setting, tuple(LAB_POLICIES))
    print(table_of(results, setting))
    return 1 if any(result.account.lost_messages for result in results) else 0


def play(setting: Setting, policies: Sequence[str]) -> list[PolicyResult]:
    """Each policy on a broker of its own, one after the other."""
    results = []
    for policy in policies:
        with tempfile.TemporaryDirectory() as name:
            results.append(play_policy(policy, setting, Path(name), partial(ProcessGroup, policy)))
        print(f"{policy}: {results[-1].account}", file=sys.stderr, flush=True)
    return results


class ProcessGroup:
    """The group that a policy scales, observed on the 15 s grid of the clock."""

    def __init__(self, policy: str, stage: LabTopic, _: ExitStack) -> None:
        self._lab_policy, self._stage = LAB_POLICIES[policy], stage
        self._replicas = LocalReplicas(lambda number: stage.member(f"replica-{number}"))
        self._collector = stage.collector

    def ready(self) -> None:
        """Give the policy the hour before, and one observation of the idle group.

        That observation comes before the load: lagcast fits its forecasters with the first one, which takes seconds.
        """
        setting = self._stage.setting
        self._replicas.set(self._lab_policy.replicas(setting))
        self._stage.wait_for_members(self._replicas.count)
        at = next_grid(clock())
        before = rows_before(setting.before, self._stage.names, until=at, members=self._replicas.count)
        self._policy = self._lab_policy.policy(setting, before, self._stage.names)
        time.sleep(max(0.0, (at - clock()).total_seconds()))
        sight = self._stage.seen(self._collector, at, replicas=self._replicas.count)
        if sight is not None:
            self._policy.decide(sight)

    def follow(self, over: threading.Event) -> list[float]:
        """Let the policy decide every 15 s until the load is over; returns the times of its moves, since 1970."""
        moves_at: list[float] = []
        at = next_grid(clock())
        while not over.wait(max(0.0, (at - clock()).total_seconds())):
            sight = self._stage.seen(self._collector, at, replicas=self._replicas.count)
            wanted = self._policy.decide(sight) if sight is not None else self._replicas.count
            if wanted != self._replicas.count:
                moves_at.append(clock().timestamp())
                carry_out(self._replicas, wanted)
            at = next_grid(clock())
        return moves_at

    def end(self) -> float:
        """End all replicas; returns the replica-seconds used."""
        return self._replicas.end()


def carry_out(replicas: LocalReplicas, wanted: int) -> None:
    """Move the workload through the port that the executor uses."""
    scale = replicas.read("lab", WORKLOAD)
    move = DueMove(
        recommendation_id="lab",
        group_id="lab",
        mode="apply",
        namespace="lab",
        target=WORKLOAD,
        seen_replicas=scale.replicas,
        seen_at=clock(),
        desired_replicas=wanted,
        through_zero=False,
    )
    replicas.apply(Act(move=move, scale=scale))


def longest_pause(interruptions: Sequence[Interruption]) -> str:
    """The longest mean stop that the meter measured, and its uncertainty: commits every 5 s allow no better one."""
    stopped = [each for each in interruptions if each.stops]
    if not stopped:
        return "-"
    longest = max(stopped, key=lambda each: each.rebalance_pause_seconds)
    return f"{longest.rebalance_pause_seconds:.1f} +/- {longest.resolution_seconds:.1f} s"


def table_of(results: Sequence[PolicyResult], setting: Setting) -> str:
    """A row for each policy."""
    prices = setting.settings.prices(MessagesPerSecond(CAPACITY))
    lines = []
    for result in results:
        found = result.account
        lines.append(
            (
                result.policy,
                f"{found.replica_seconds:,.0f}",
                f"{found.mean_lag_messages:,.0f}",
                f"{found.wait_p50_seconds:.1f} s",
                f"{found.wait_p99_seconds:.1f} s",
                f"{found.late_messages:,} of {found.messages:,}",
                str(result.moves),
                str(len(result.interruptions)),
                longest_pause(result.interruptions),
                f"{found.stopped_partition_seconds:.0f}",
                f"{found.longest_pause_seconds:.1f} s",
                f"{found.duplicate_messages:,}",
                f"{found.lost_messages:,}",
                f"{found.cost(prices):.4f} {prices.currency}",
            )
        )
    head = (
        *("policy", "replica-seconds", "mean lag", "wait p50", "wait p99", "late", "moves", "rebalances"),
        *("longest pause, meter", "stopped partition-seconds", "longest stop", "duplicates", "lost", "cost"),
    )
    return table(head, lines)


if __name__ == "__main__":
    sys.exit(main())
