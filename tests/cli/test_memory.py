"""A service keeps little of what its threads have freed: seen from outside, as the arenas of its process."""

import os
import re
import subprocess
import sys

import pytest

THREADS = """
import sys, threading
from ctypes import CDLL
from cli.memory import keep_little_of_what_is_freed
if "few" in sys.argv:
    keep_little_of_what_is_freed()
together = threading.Barrier(9)
def work():
    held = [bytearray(70_000) for _ in range(50)]
    together.wait()
    together.wait()
    assert held
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
together.wait()
CDLL(None).malloc_stats()
together.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="arenas are glibc's")
def test_eight_threads_share_two_arenas() -> None:
    """Without it they have more; MALLOC_ARENA_MAX in the environment wins."""

    def arenas(*words: str, **environment: str) -> int:
        ran = subprocess.run(
            [sys.executable, "-c", THREADS, *words],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | environment,
        )
        return len(re.findall(r"^Arena \d+:", ran.stderr, re.MULTILINE))

    assert arenas("few") == 2
    assert arenas() > 2
    assert arenas("few", MALLOC_ARENA_MAX="3") == 3
