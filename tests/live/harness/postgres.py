"""A real PostgreSQL on loopback, thrown away with its folder."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # ships no types

from tests.live.harness.broker import free_ports
from tests.live.harness.clients import wait_until

# It does not run as root: an account that owns nothing else will do.
_ACCOUNT = "nobody" if os.geteuid() == 0 else None


class Postgres:
    """A server on a port of its own, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._port,) = free_ports(1)
        self._server: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The store URL of a database."""
        return f"postgresql+psycopg://lagcast@127.0.0.1:{self._port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        words = [
            "-D",
            str(self._folder / "data"),
            "-p",
            str(self._port),
            "-h",
            "127.0.0.1",
            "-k",
            str(self._folder),
            "-F",
        ]
        with (self._folder / "postgres.log").open("ab") as output:
            self._server = subprocess.Popen(
                ["postgres", *words], stdout=output, stderr=output, user=_ACCOUNT, cwd=self._folder
            )
        ready = ["pg_isready", *self._address]
        wait_until(lambda: subprocess.run(ready, check=False, capture_output=True).returncode == 0)

    def stop(self) -> None:
        """Stop the server at once, as its restart does: open connections are cut."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait()
            self._server = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stands still with all its processes, as one whose disk does: it accepts connections, and answers nothing."""
        assert self._server is not None
        server = psutil.Process(self._server.pid)
        processes = [server, *server.children()]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def run(self, program: str, *words: str, text: str = "") -> str:
        """The output of one of its programs, such as pg_dump or psql, with its input."""
        done = subprocess.run(
            [program, *self._address, "-U", "lagcast", *words], input=text, check=True, capture_output=True, text=True
        )
        return done.stdout

    @property
    def _address(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self._port)]


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server with an empty database."""
    # Not below pytest's folders, which are closed to every other account.
    with tempfile.TemporaryDirectory(prefix="lagcast-postgres-") as name:
        folder = Path(name)
        if _ACCOUNT is not None:
            shutil.chown(folder, _ACCOUNT)
        data = str(folder / "data")
        made = ["initdb", "--pgdata", data, "--username=lagcast", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        subprocess.run(made, check=True, capture_output=True, user=_ACCOUNT, cwd=folder)
        server = Postgres(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
