"""The processes of a tool of several parts, such as an operator: each with a log of its own in one folder."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

import httpx2


class PartError(RuntimeError):
    """A part of a tool could not be built, or did not start; the message ends with the last log lines."""


class RunningParts:
    """The parts of `tool` that have been started; their logs, and what they write, are in `folder`."""

    def __init__(self, tool: str, folder: Path) -> None:
        self._tool, self._folder = tool, folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, part: str, command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        """Start a part."""
        with self._log(part).open("wb") as output:
            self._processes[part] = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=environment,
            )

    def wait_until(self, part: str, holds: Callable[[], bool], *, seconds: float) -> None:
        """Wait for so long at most, and no longer than the part runs. Errors: PartError."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._processes[part].poll() is None:
            if holds():
                return
            time.sleep(0.1)
        message = f"{self._tool}'s {part} was not ready within {seconds:.0f} s: {self.log_end(part)}"
        raise PartError(message)

    def log_end(self, part: str) -> str:
        """The last lines of a part."""
        return self._log(part).read_text(encoding="utf-8")[-4000:]

    def stop(self) -> None:
        """End all parts."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _log(self, part: str) -> Path:
        return self._folder / f"{part}.log"


def answers(url: str) -> bool:
    """True if the URL is answered with 200."""
    try:
        return httpx2.get(url, timeout=2).status_code == HTTPStatus.OK
    except (OSError, httpx2.HTTPError):
        return False
