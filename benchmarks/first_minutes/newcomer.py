"""Somebody with an empty folder and no Java: installs lagcast, runs its commands, and looks at its pages."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, BrowserContext, Error, Page

ROOT = Path(__file__).parents[2]
_URL = re.compile(r"(?:serves|REST:) (http://[^\s;]+)")
# A page is looked at so often while it is waited for.
LOOK_SECONDS = 0.25
# The headline of advice has a count, and the waterfall is drawn; a refusal has neither.
_ADVISED = """() => document.querySelector('#headline .count')
    && document.querySelector('figure[data-picture=waterfall] .drawing :is(canvas, svg)')"""
# Milliseconds from the start of the navigation until a frame was shown after the first picture was put in.
_FIRST_PICTURE = """() => {
    new MutationObserver((_, watcher) => {
        if (window.drawnAt || !document.querySelector('figure[data-picture] .drawing :is(canvas, svg)')) return;
        watcher.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.drawnAt = performance.now(); }));
    }).observe(document, {childList: true, subtree: true});
}"""
# The time at which the page shows each new decision, by the clock of the machine, which lagcast reads too. A page that
# loads itself anew, such as for its first ledger, goes on counting.
_NEXT_DECISIONS = """() => {
    const note = () => {
        const now = document.querySelector('#decided')?.textContent;
        if (!now || now === sessionStorage.getItem('before')) return;
        const shown = JSON.parse(sessionStorage.getItem('shown') ?? '[]');
        sessionStorage.setItem('shown', JSON.stringify([...shown, [now, Date.now() / 1000]]));
        sessionStorage.setItem('before', now);
    };
    document.addEventListener('DOMContentLoaded', () => {
        note();
        new MutationObserver(note).observe(document.body, {childList: true, subtree: true, characterData: true});
    });
}"""
_SHOWN = "() => JSON.parse(sessionStorage.getItem('shown') ?? '[]')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """Runs `program` in `folder`, where caches and states are kept too, with no Java on the PATH."""

    folder: Path
    program: Sequence[str]
    environment: Mapping[str, str]

    def run(self, *words: str) -> tuple[float, str, str]:
        """Seconds, stdout and stderr of a command. Errors: CalledProcessError."""
        began = time.monotonic()
        command = [*self.program, *words]
        done = subprocess.run(  # noqa: S603  # lagcast
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
        if done.returncode:
            message = f"lagcast {' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}"
            raise RuntimeError(message)
        return seconds, done.stdout, done.stderr

    @contextmanager
    def serving(self, name: str, *words: str) -> Iterator["Served"]:
        """A command that serves pages, until the block ends; its log is `name`.log."""
        log = self.folder / f"{name}.log"
        began = time.monotonic()
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603  # lagcast
                [*self.program, *words, "--port", "0", "--state-dir", str(self.folder / name)],
                env=self.environment,
                cwd=self.folder,
                stdout=out,
                stderr=out,
            )
        try:
            yield Served(process=process, log=log, began_seconds=began)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(slots=True, kw_only=True)
class Served:
    """A running command with pages; `said` is what the headline of the group was, and since which second."""

    process: "subprocess.Popen[bytes]"
    log: Path
    began_seconds: float
    said: list[tuple[float, str]] = field(default_factory=list)

    @property
    def passed_seconds(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self.began_seconds

    @property
    def cycles(self) -> list[float]:
        """When each cycle of decisions was over, in seconds since 1970, by its log."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if '"event": "cycle"' in line]
        return [datetime.fromisoformat(line["timestamp"]).timestamp() for line in lines]

    def until(self, holds: Callable[[], object], *, within_seconds: float, what: str) -> float:
        """The second, since the start, at which `holds` is true. Errors: TimeoutError; RuntimeError where it ended."""
        while not holds():
            if self.process.poll() is not None:
                message = f"it has ended before {what}: {self.log.read_text()[-2000:]}"
                raise RuntimeError(message)
            if self.passed_seconds > within_seconds:
                message = f"not within {within_seconds:.0f} s: {what}; {self.said}; {self.log.read_text()[-1000:]}"
                raise TimeoutError(message)
            time.sleep(LOOK_SECONDS)
        return self.passed_seconds

    def url(self, *, within_seconds: float) -> str:
        """Its address, once it says it. Errors: those of `until`."""
        self.until(lambda: _URL.search(self.log.read_text()), within_seconds=within_seconds, what="an address")
        found = _URL.search(self.log.read_text())
        return "" if found is None else found[1]

    def answers(self, url: str) -> bool:
        """True if the page is there."""
        try:
            return httpx2.get(url, timeout=5).status_code == httpx2.codes.OK
        except httpx2.HTTPError:
            return False

    def priced(self, page: Page, url: str, *, within_seconds: float) -> float:
        """The second at which the page of the group shows a priced recommendation with its waterfall drawn.

        The page is opened once it is there, and changes by itself from then on. Errors: those of `until`.
        """
        self.until(lambda: self.answers(url), within_seconds=within_seconds, what=f"{url} answers")
        page.goto(url)
        return self.until(lambda: self._looked(page), within_seconds=within_seconds, what="a priced recommendation")

    def _looked(self, page: Page) -> object:
        try:
            headlines = page.locator("#headline .headline").all_inner_texts()
            advised = page.evaluate(_ADVISED)
        except Error as error:
            # The page loads itself anew when advice takes the place of a refusal: this look came in between.
            if "navigation" not in error.message:
                raise
            return None
        headline = " ".join(" ".join(headlines).split())
        if headline and (not self.said or self.said[-1][1] != headline):
            self.said.append((round(self.passed_seconds, 1), headline))
        return advised


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """How soon a page showed a decision: after its cycle had stored and published it, and after the cycle had begun.

    A page may be faster than the line that tells of the cycle's end, which counts as 0 s.
    """

    after_publication_seconds: float
    after_begin_seconds: float


def arrive(folder: Path, *, tools: Path) -> Mapping[str, str]:
    """The environment of a newcomer: `tools` are all programs of the PATH but Java's, and caches begin empty."""
    tools.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for tool in Path(place).iterdir() if Path(place).is_dir() else ():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    ours = ("LAGCAST_", "JAVA_", "SPARK_", "PIP_CACHE", "XDG_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    places = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    return {**kept, **places, "PATH": str(tools)}


def built_wheel(folder: Path) -> Path:
    """The wheel of this checkout, which somebody else would have from an index."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603  # fixed words
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(folder: Path, wheel: Path, environment: Mapping[str, str]) -> Newcomer:
    """Make a virtual environment in the folder and install the wheel there with pip. Errors: RuntimeError."""
    place = folder / "venv"
    venv.create(place, with_pip=True)
    words = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        message = f"pip could not install lagcast: {done.stderr[-2000:]}"
        raise RuntimeError(message)
    path = f"{place / 'bin'}{os.pathsep}{environment['PATH']}"
    return Newcomer(folder=folder, program=[str(place / "bin" / "lagcast")], environment={**environment, "PATH": path})


def as_it_is(folder: Path, environment: Mapping[str, str]) -> Newcomer:
    """The lagcast of this checkout, with nothing installed."""
    program = [sys.executable, "-m", "cli.main"]
    return Newcomer(folder=folder, program=program, environment={**environment, "PYTHONPATH": str(ROOT)})


def first_picture_seconds(browser: Browser, url: str) -> float:
    """Seconds from opening the page, with nothing in the browser's cache, until its first picture was on the screen."""
    with opened(browser) as context:
        page = context.new_page()
        page.add_init_script(f"({_FIRST_PICTURE})()")
        page.goto(url)
        page.wait_for_function("() => window.drawnAt")
        return float(page.evaluate("() => window.drawnAt")) / 1e3


def updates_of(
    served: Served, browser: Browser, url: str, api: str, *, count: int, within_seconds: float
) -> list[Update]:
    """How soon a page that is open shows each of the next decisions.

    Errors: playwright's TimeoutError, and those of `until`.
    """
    with opened(browser) as context:
        page = context.new_page()
        page.add_init_script(f"({_NEXT_DECISIONS})()")
        page.goto(url)
        # The first one was there when the page came.
        page.wait_for_function(f"() => ({_SHOWN})().length > {count}", timeout=1e3 * within_seconds)
        shown: list[tuple[str, float]] = page.evaluate(_SHOWN)[1 : count + 1]
    answer = httpx2.get(f"{api}/recommendations", timeout=10).json()
    issued = [datetime.fromisoformat(each["issued_at"]) for each in answer["decisions"]]
    by_words = {f"{at:%Y-%m-%d %H:%M:%S} UTC": at.timestamp() for at in issued}
    began = [by_words[words.strip()] for words, _ in shown]
    served.until(
        lambda: served.cycles[-1] >= began[-1], within_seconds=served.passed_seconds + 30, what="a cycle's end"
    )
    ends = [min(end for end in served.cycles if end >= at) for at in began]
    return [
        Update(after_publication_seconds=max(0.0, seen - end), after_begin_seconds=seen - at)
        for (_, seen), end, at in zip(shown, ends, began, strict=True)
    ]


@contextmanager
def opened(browser: Browser) -> Iterator[BrowserContext]:
    """A context of the browser, as wide as a laptop, without what others have left."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        yield context
    finally:
        context.close()
