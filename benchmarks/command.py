"""Parts of commands that run for hours: lists of names as arguments, workers, files replaced in one step, pages."""

import argparse
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure beside its bar, in the unit that `what` ends with."""

    what: str
    figure: float
    most: float

    @property
    def is_kept(self) -> bool:
        """True unless the figure is above the bar."""
        return self.figure <= self.most


def names_among(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of names separated by commas, each of which has to be known."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(text.split(","))
        unknown = [name for name in given if name not in known]
        if unknown:
            message = f"there is no {unknown[0]!r}; there are {', '.join(known)}"
            raise argparse.ArgumentTypeError(message)
        return given

    return names


def end_with_parent() -> None:
    """Make this worker end when its parent has ended, because after a killed run it would work for an hour more."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def commit() -> str:
    """The commit of this checkout, shortened; `unknown` outside of one."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    found = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603  # fixed words
    return found.stdout.strip() or "unknown"


def print_page(parser: argparse.ArgumentParser, files: Sequence[Path], page_of: Callable[..., str], *, of: str) -> None:
    """Print the page of documents of this benchmark; a sentence and exit code 2 where a file is none."""
    try:
        text = page_of(*(json.loads(file.read_text(encoding="utf-8")) for file in files))
    except (OSError, ValueError, LookupError, TypeError) as error:
        names = " ".join(map(str, files))
        parser.error(f"--page {names}: no document of {of} ({error}); make one with --out FILE")
    print(text, end="")


def aged(page: str, document: Mapping[str, object]) -> str:
    r"""A page with what has changed since its figures were measured under its title, where its document notes that.

    >>> aged("# Title\n\nText.", {"changed_since": "Late messages cost more now."})
    '# Title\n\n**Older than the code.** Late messages cost more now.\n\nText.'
    >>> aged("# Title\n\nText.", {})
    '# Title\n\nText.'
    """
    changed = document.get("changed_since")
    return page if changed is None else page.replace("\n\n", f"\n\n**Older than the code.** {changed}\n\n", 1)


def hms(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


def swap_in(text: str, out: Path) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(out.name + ".draft")
    draft.write_text(text)
    draft.replace(out)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table whose first `words` columns are text; the others are figures."""
    rule = "|" + "---|" * words + "---:|" * (len(head) - words)
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def bar_table(bars: Iterable[Bar]) -> str:
    """A table of figures beside their bars; what is missed is bold."""
    rows = ((bar.what, f"{bar.figure:,.2f}", f"<= {bar.most:g}", "yes" if bar.is_kept else "**no**") for bar in bars)
    return table(("figure", "measured", "bar", "kept"), rows)
