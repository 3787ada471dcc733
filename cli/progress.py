"""Progress on stderr: the running stage and how far it is, and one line with the seconds of each finished stage."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from api.words import duration
from cli.printable import printable_lines
from cli.terminal import is_drawn_on

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID


# A stage that says nothing at its end is shown from here on: whoever waits for less than this needs no word.
UNSEEN_SECONDS = 2.0
# A person cannot read more than this, and each one is an event for a page.
_TOLD_EVERY_SECONDS = 1.0


class Stage:
    """A running stage; `note` is the text of its line at the end."""

    def __init__(self, name: str, show: Callable[["Stage", int, int, str], object] = lambda *_: None) -> None:
        self.name = name
        self.note = ""
        self.began_seconds = time.perf_counter()
        self._show = show

    def show(self, done: int, total: int, unit: str) -> None:
        """It is so far: `done` of `total`, in `unit`, such as tasks. Any thread may say so, as often as it likes."""
        self._show(self, done, total, unit)

    @property
    def seconds(self) -> float:
        """Seconds since it started."""
        return time.perf_counter() - self.began_seconds


class Talk:
    """Prints progress on stderr.

    On a terminal running stages have a spinner, and where it is known how far they are a bar and the time that is left;
    elsewhere only whole lines are printed. Stages may run in parallel threads. stdout stays free for data. `on_stage`
    is told of each stage when it begins, once a second when it gets further, and when it is over: its name, what it
    waits for, how far it is or what it has made, and its seconds, None before its end.
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
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(*_columns(), console=Console(file=sys.stderr), transient=True) as self._spinner:
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
        if waiting_for and self._spinner is None:
            self.line(f" .. {name:<10} {waiting_for}")
        task = self._begin(name, waiting_for)
        self._on_stage(name, waiting_for, None)
        told_seconds = time.perf_counter()

        def show(_: Stage, done: int, total: int, unit: str) -> None:
            nonlocal told_seconds
            self._advance(task, _far(done, total, unit), done=done, total=total)
            if time.perf_counter() - told_seconds >= _TOLD_EVERY_SECONDS:
                told_seconds = time.perf_counter()
                self._on_stage(name, f"{waiting_for}: {_far(done, total, unit)}", None)

        stage = Stage(name, show)
        try:
            yield stage
        finally:
            self._end(task)
        self._on_stage(name, stage.note, stage.seconds)
        self.line(f" {self._tick} {name:<10} {stage.note:<72} {stage.seconds:6.1f} s")

    @contextmanager
    def bar(self, name: str) -> Iterator[Stage]:
        """A stage that is seen while it runs, on a terminal alone, and prints no line: its command says what it made.

        One that takes less than UNSEEN_SECONDS is not seen.
        """
        task: TaskID | None = None
        with ExitStack() as shown:

            def show(stage: Stage, done: int, total: int, unit: str) -> None:
                nonlocal task
                if task is None and stage.seconds >= UNSEEN_SECONDS:
                    if self._spinner is None:
                        shown.enter_context(self.running())
                    task = self._begin(name, "")
                self._advance(task, _far(done, total, unit), done=done, total=total)

            try:
                yield Stage(name, show)
            finally:
                self._end(task)

    def _begin(self, name: str, says: str) -> "TaskID | None":
        return self._spinner.add_task(f"{name:<10}", total=None, says=says) if self._spinner is not None else None

    def _advance(self, task: "TaskID | None", far: str, *, done: int, total: int) -> None:
        if self._spinner is not None and task is not None:
            self._spinner.update(task, completed=done, total=total, says=far)

    def _end(self, task: "TaskID | None") -> None:
        if self._spinner is not None and task is not None:
            self._spinner.remove_task(task)


def _far(done: int, total: int, unit: str) -> str:
    """How far a stage is, in words.

    >>> _far(41, 1064, "tasks")
    '41 of 1,064 tasks'
    """
    return f"{done:,} of {total:,} {unit}"


def _columns() -> "Sequence[ProgressColumn]":
    """Spinner, name, bar, what the stage waits for or how far it is, the time that it took, and the time that is left.

    A bar is drawn where the end is known, and the time left is told once a speed has been seen. Of 80 columns 33 are
    for how far a stage is, beside 1 + 10 + 12 + 7 + 12 for the others ("eta 59.9 min" is the longest) and 5 spaces;
    what is longer is cut at its end, so that the times stay.
    """
    from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Column  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Bar(ProgressColumn):
        def render(self, task: Task) -> ProgressBar | Text:
            return Text() if task.total is None else ProgressBar(total=task.total, completed=task.completed, width=12)

    class Says(TextColumn):
        def render(self, task: Task) -> Text:
            text = super().render(task)
            text.no_wrap = True  # its column may be made narrower than it is, and it has one line all the same
            return text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            seconds = None if task.finished else task.time_remaining
            return Text("" if seconds is None else f"eta {duration(seconds)}", style="progress.remaining")

    whole, cut = Column(no_wrap=True), Column(no_wrap=False)
    return (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        Bar(whole),
        Says("{task.fields[says]}", markup=False, table_column=cut),
        TimeElapsedColumn(whole),
        Left(whole),
    )
