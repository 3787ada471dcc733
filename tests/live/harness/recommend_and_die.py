"""`lagcast recommend` whose workers die at two groups, as a process of its own.

    python -m tests.live.harness.recommend_and_die OPENED DECIDED WORDS...

The worker that opens the group OPENED, and the one that decides DECIDED, end each time by SIGKILL: as the kernel ends
the process that has used up the memory. No handler runs, and nothing is told.
"""

import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

import cli.fleet
from cli.main import main
from spark_features.deaths import Group
from spark_features.fleet_decisions import FleetWork


@dataclass(frozen=True, slots=True)
class DeadlyWork:
    """The work of a run, but for these deaths."""

    work: FleetWork
    opened: str
    decided: str

    def open_group(
        self, group: Group, rows: pa.Table, kept: pa.Table, *, is_listed: bool, lost: str | None
    ) -> tuple[bytes | None, bytes]:
        """Die, or open it."""
        if group[1] == self.opened:
            die()
        return self.work.open_group(group, rows, kept, is_listed=is_listed, lost=lost)

    def decide_group(self, opened: bytes, prior: bytes) -> pa.Table:
        """Decide it, and die or tell."""
        rows = self.work.decide_group(opened, prior)
        if self.decided in rows["group"].to_pylist():
            die()
        return rows

    def pooled(self, lessons: Iterable[bytes]) -> bytes:
        """As the work does."""
        return self.work.pooled(lessons)

    def refuse_group(self, group: Group, kept: pa.Table, *, deaths: int) -> pa.Table:
        """As the work does."""
        return self.work.refuse_group(group, kept, deaths=deaths)


def die() -> None:
    """End this process as the kernel does where memory is used up."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    opened, decided, *words = sys.argv[1:]
    made = cli.fleet.fleet_work

    def deadly_work(*settings: Any, **known: Any) -> DeadlyWork:  # noqa: ANN401  # passed on
        """What workers of this run do."""
        return DeadlyWork(made(*settings, **known), opened, decided)

    cli.fleet.fleet_work = deadly_work
    sys.exit(main(words))
