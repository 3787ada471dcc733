"""A real PostgreSQL on loopback, thrown away with its folder."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.live.harness.broker import free_ports
from tests.live.harness.clients import wait_until

# It does not run as root: an account that owns nothing else will do.
_ACCOUNT = "nobody" if os.geteuid() == 0 else None


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of a database with nothing in it."""
    (port,) = free_ports(1)
    # Not below pytest's folders, which are closed to every other account.
    with tempfile.TemporaryDirectory(prefix="lagcast-postgres-") as name:
        folder, data = Path(name), Path(name) / "data"
        if _ACCOUNT is not None:
            shutil.chown(folder, _ACCOUNT)
        made = ["initdb", "--pgdata", str(data), "--username=lagcast", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        subprocess.run(made, check=True, capture_output=True, user=_ACCOUNT, cwd=folder)
        words = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
        with (folder / "postgres.log").open("wb") as output:
            server = subprocess.Popen(["postgres", *words], stdout=output, stderr=output, user=_ACCOUNT, cwd=folder)
        try:
            ready = ["pg_isready", "-h", "127.0.0.1", "-p", str(port)]
            wait_until(lambda: subprocess.run(ready, check=False, capture_output=True).returncode == 0)
            yield f"postgresql+psycopg://lagcast@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            server.wait()
