# ruff: noqa: PLC0415 - pyarrow is imported when a command runs, so that `--help` answers in 0.2 s
"""Retention of samples and of rows, and the thread that applies it to samples, for every command that writes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import typer

from cli.instants import read_clock
from forecasting.columns import LEAST_KEPT_ROWS_DAYS, MOST_KEPT_DAYS

# Forecasts use the last 28 days; with one more week, the features of all these days can still be computed again.
KEPT_DAYS = 35
# The stream reads the newest two days, and the day before them may just have ended.
LEAST_KEPT_DAYS = 4
KeepDays = Annotated[
    int,
    typer.Option(
        min=LEAST_KEPT_DAYS,
        max=MOST_KEPT_DAYS,
        metavar="DAYS",
        help="Days that samples are kept; older ones are deleted.",
    ),
]
# Decisions and forecasts use none that are older; a look back at an older instant does.
KeepRows = Annotated[
    int | None,
    typer.Option(
        min=LEAST_KEPT_ROWS_DAYS,
        max=MOST_KEPT_DAYS,
        metavar="DAYS",
        help="Days that rows of the feature table are kept; older ones are deleted. All are kept unless set.",
    ),
]


def first_kept_day(keep_rows: int | None) -> date:
    """The first day whose rows are kept today; the first of all where none are removed."""
    return date.min if keep_rows is None else (read_clock() - timedelta(days=keep_rows)).date()


@contextmanager
def keeping(samples_dir: Path, *, kept_days: int, stop: Event) -> Iterator[None]:
    """During the block, merge the files of each finished day into one, and remove days that are too old.

    `stop` is set at the end of the block, and ends the block's own loops as well.
    """
    from collector.keeping import keep_days_forever

    words = {"kept_days": kept_days, "clock": read_clock, "wait": stop.wait}
    thread = Thread(target=keep_days_forever, args=(samples_dir,), kwargs=words, name="keeping")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
