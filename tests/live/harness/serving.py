"""`lagcast serve --kubernetes` as a process, for the live tests."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.live.harness.clients import wait_until

_SERVES = re.compile(r"serves (https?://\S+)")


@contextmanager
def serving_objects(
    namespace: str, *, kubeconfig: Path, table: Path, folder: Path, options: Sequence[str] = ()
) -> Iterator[str]:
    """The address of one that decides each second on the rows of `table`; its state and log are in `folder`."""
    command = [sys.executable, "-m", "cli.main", "serve", "--features", str(table), "--port", "0"]
    command += ["--kubernetes", namespace, "--kubeconfig", str(kubeconfig), *options]
    environment = os.environ | {"LAGCAST_STATE_DIR": str(folder / "state"), "LAGCAST_DECISION__CYCLE_SECONDS": "1"}
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log, env=environment) as process:
        try:
            wait_until(lambda: _SERVES.search((folder / "log").read_text()))
            address = _SERVES.search((folder / "log").read_text())
            assert address is not None
            yield address[1]
        finally:
            process.kill()
