"""A service keeps little of what its threads have freed, and does not look for it all the time."""

import os
import re
import subprocess
import sys
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest

from cli import memory

THREADS = """
import sys, threading
from ctypes import CDLL
from cli.memory import keep_little_of_what_is_freed
if "few" in sys.argv:
    keep_little_of_what_is_freed(for_readers=True)
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
    # Spark's session sets it in the process that has one.
    unset = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}

    def arenas(*words: str, **environment: str) -> int:
        ran = subprocess.run(
            [sys.executable, "-c", THREADS, *words],
            check=True,
            capture_output=True,
            text=True,
            env=unset | environment,
        )
        return len(re.findall(r"^Arena \d+:", ran.stderr, re.MULTILINE))

    assert arenas("few") == 2
    assert arenas() > 2
    assert arenas("few", MALLOC_ARENA_MAX="3") == 3


FREED = """
import sys, time
from cli import memory
memory.TIDY_EVERY_SECONDS = 0.01
if "trimmed" in sys.argv:
    memory.keep_little_of_what_is_freed(for_readers=True)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before = resident()
held = [bytes(100_000) for _ in range(2_000)]
last = bytes(100_000)
held.clear()
until = time.monotonic() + float(sys.argv[1])
while resident() - before > 50e6 and time.monotonic() < until:
    time.sleep(0.01)
print(resident() - before > 50e6, len(last))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="arenas are glibc's")
def test_what_was_freed_in_the_middle_of_an_arena_is_given_back() -> None:
    """200 MB below a block that is still in use: glibc alone keeps them, whoever waits."""

    def keeps(*words: str) -> str:
        command = [sys.executable, "-c", FREED, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0]

    assert keeps("60", "trimmed") == "False"
    assert keeps("1") == "True"


LARGE = """
import sys
from ctypes import CDLL
from cli.memory import keep_little_of_what_is_freed
if "kept" in sys.argv:
    keep_little_of_what_is_freed(for_readers=True)
freed = bytes(30_000_000)
del freed
held = [bytes(2_000_000) for _ in range(20)]
CDLL(None).malloc_stats()
assert held
"""


@pytest.mark.skipif(sys.platform != "linux", reason="arenas are glibc's")
def test_what_is_large_has_pages_of_its_own() -> None:
    """Also after something larger was freed, as which glibc takes all later ones from the heap."""

    def mapped(*words: str, **environment: str) -> int:
        command, given = [sys.executable, "-c", LARGE, *words], os.environ | environment
        ran = subprocess.run(command, check=True, capture_output=True, text=True, env=given)
        total = ran.stderr[ran.stderr.index("Total (incl. mmap)") :]
        heap = sum(int(found) for found in re.findall(r"Arena \d+:\nsystem bytes +=\D+(\d+)", ran.stderr))
        return int(re.findall(r"system bytes +=\D+(\d+)", total)[0]) - heap

    assert mapped("kept") >= 40_000_000
    assert mapped() < 40_000_000
    assert mapped("kept", MALLOC_MMAP_THRESHOLD_="33554432") < 40_000_000


READ = """
import cli.main, pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""


def test_rows_are_read_into_memory_that_is_given_back() -> None:
    """Pyarrow's own allocator grew by 500 MB in six simulated hours of 300 groups; the environment wins."""

    def allocator(**environment: str) -> str:
        given = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
        command = [sys.executable, "-c", READ]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=given | environment
        ).stdout.strip()

    assert allocator() == "system"
    assert allocator(ARROW_DEFAULT_MEMORY_POOL="mimalloc") == "mimalloc"


SET_ASIDE = """
import gc, time, weakref
from cli import memory
class Node:
    pass
def ring():
    first, second = Node(), Node()
    first.other, second.other = second, first
    return first
gc.disable()
memory.TIDY_EVERY_SECONDS, memory.SET_ASIDE_EVERY_SECONDS, memory.SEARCH_EVERY_SECONDS = 0.01, 0.0, 1e9
held = [ring() for _ in range(1_000)]
memory.keep_little_of_what_is_freed(for_readers=True)
while gc.get_freeze_count() < 2_000:
    time.sleep(0.01)
gone = weakref.ref(held[0])
held.clear()
gc.collect()
kept = gone() is not None
memory.SEARCH_EVERY_SECONDS = 0.0
until = time.monotonic() + 60
while gone() is not None and time.monotonic() < until:
    time.sleep(0.01)
print(kept, gone() is None)
"""


def test_what_a_minute_has_left_is_looked_through_in_the_search_alone() -> None:
    """Objects that refer to each other are set aside, where a collection does not see them; the search frees them."""
    ran = subprocess.run([sys.executable, "-c", SET_ASIDE], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["True", "True"]


def tidied(monkeypatch: pytest.MonkeyPatch, *, for_readers: bool, trim_seconds: float = 0.0) -> Counter[str]:
    """How often each thing is done in two simulated hours, in which a trim takes so long."""
    done, now = Counter[str](), 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now > 7_200.0:
            raise TimeoutError

    def trim(_: int) -> None:
        nonlocal now
        now += trim_seconds
        done["trim"] += 1

    collector = {name: partial(done.update, [name]) for name in ("freeze", "unfreeze", "collect")}
    monkeypatch.setattr(memory, "gc", SimpleNamespace(**collector))
    monkeypatch.setattr(memory, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now))
    with pytest.raises(TimeoutError):
        memory._tidy_forever(trim, for_readers=for_readers)
    return done


def test_objects_are_set_aside_each_minute_and_searched_each_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed memory is given back every two seconds."""
    assert tidied(monkeypatch, for_readers=True) == {"trim": 3_600, "freeze": 120, "unfreeze": 2, "collect": 2}


def test_a_process_without_readers_sets_nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's would keep an hour of objects of the JVM: of 1,000 groups they filled 2 GB in five minutes."""
    assert tidied(monkeypatch, for_readers=False) == {"trim": 3_600}


def test_giving_back_takes_a_hundredth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large heap it takes long, and other threads get no memory from it meanwhile."""
    assert 0.0095 * 7_200.0 < 0.2 * tidied(monkeypatch, for_readers=True, trim_seconds=0.2)["trim"] < 0.01 * 7_200.0
