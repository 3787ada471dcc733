"""Progress on stderr: the running stage, its present wait, and one line with the seconds of each finished stage."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.printable import printable_lines
from cli.terminal import is_drawn_on

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Stage:
    """A running stage; `note` is the text of its line at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.note = ""
        self.began_seconds = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since it started."""
        return time.perf_counter() - self.began_seconds


class Talk:
    """Prints progress on stderr. On a terminal running stages have a spinner; elsewhere only whole lines are printed.

    Stages may run in parallel threads. stdout stays free for data. `on_stage` is told of each stage when it begins and
    when it is over: its name, what it waits for or has made, and its seconds, None before its end.
    """

    def __init__(self, on_stage: Callable[[str, str, float | None], object] = lambda *_: None) -> None:
        self._on_stage = on_stage
        self._lock = threading.Lock()
        self._tick = "✔" if "utf" in (sys.stderr.encoding or "").lower() else "ok"
        self._spinner: Progress | None = None

    @contextmanager
    def running(self) -> Iterator["Talk"]:
        """Show spinners during this block; without a terminal it does nothing."""
        if not is_drawn_on(sys.stderr):
            yield self
            return
        from rich.console import Console  # noqa: PLC0415  # only a terminal needs it
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=Console(file=sys.stderr), transient=True) as self._spinner:
            yield self
        self._spinner = None

    def line(self, text: str) -> None:
        """Print one line."""
        text = printable_lines(text)
        with self._lock:
            if self._spinner is not None:
                self._spinner.console.print(text, highlight=False, markup=False, soft_wrap=True)
            else:
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()

    @contextmanager
    def stage(self, name: str, waiting_for: str = "") -> Iterator[Stage]:
        """A stage of the work: prints `waiting_for` at its start, its `note` and its seconds at its end.

        A stage that fails prints no line; the error is printed instead.
        """
        stage = Stage(name)
        if waiting_for and self._spinner is None:
            self.line(f" .. {name:<10} {waiting_for}")
        task = self._show(f"{name:<10} {waiting_for}")
        self._on_stage(name, waiting_for, None)
        try:
            yield stage
        finally:
            self._hide(task)
        self._on_stage(name, stage.note, stage.seconds)
        self.line(f" {self._tick} {name:<10} {stage.note:<72} {stage.seconds:6.1f} s")

    def _show(self, description: str) -> "TaskID | None":
        return self._spinner.add_task(description, total=None) if self._spinner is not None else None

    def _hide(self, task: "TaskID | None") -> None:
        if self._spinner is not None and task is not None:
            self._spinner.remove_task(task)
