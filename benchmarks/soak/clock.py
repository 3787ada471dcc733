"""A command of lagcast whose clock runs faster: `python -m benchmarks.soak.clock CLOCK up --bootstrap ...`.

The process reads the time in one place, `cli.instants.read_clock`, and waits for its next round of samples in one, both
of which are replaced. Everything else waits as in life: time-outs, looks at the table, the restart of a part. (Debian's
libfaketime, which speeds up a whole process, was tried: with the monotonic clock a wait of 2 s never ended, and without
it `time.sleep` fails.)
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from unittest.mock import patch

from cli import instants
from cli.main import main as lagcast
from collector import live
from collector.run import collect_forever


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock that showed `shown_at` at the real instant `began_at`, and makes `rate` seconds of each real one."""

    began_at: datetime
    shown_at: datetime
    rate: float

    def now(self) -> datetime:
        """The simulated present."""
        return self.shown_at + (read_clock() - self.began_at) * self.rate

    @property
    def word(self) -> str:
        """The clock as an argument of a command."""
        return f"{self.began_at.isoformat()},{self.shown_at.isoformat()},{self.rate}"

    @classmethod
    def of(cls, word: str) -> "Clock":
        """The clock of such an argument."""
        began_at, shown_at, rate = word.split(",")
        return cls(
            began_at=datetime.fromisoformat(began_at), shown_at=datetime.fromisoformat(shown_at), rate=float(rate)
        )


def read_clock() -> datetime:
    """The real present."""
    return datetime.now(UTC)  # noqa: TID251  # the clock that the simulated one is made of


def main() -> int:
    """Run the command."""
    clock = Clock.of(sys.argv[1])

    class Simulated(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain instant
            return clock.now().astimezone(tz)

    def quickly(*arguments: object, wait: Callable[[float], bool], **others: object) -> None:
        rounds = partial(collect_forever, wait=lambda seconds: wait(seconds / clock.rate))
        rounds(*arguments, **others)  # type: ignore[arg-type]  # as they came

    with patch.object(instants, "datetime", Simulated), patch.object(live, "collect_forever", quickly):
        return lagcast(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
