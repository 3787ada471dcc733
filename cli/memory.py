"""How much memory a process that runs for months keeps of what it has freed, and what looking for it costs readers."""

import ctypes
import gc
import os
import sys
import threading
import time
from collections.abc import Callable

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
ARENAS = 2
# What is as large gets pages of its own, which go back once it is freed: columns of many rows, matrices of a fit. The
# series of a group, 0.6 MB at most, come from the heap, for each decision copies them.
LARGE_BYTES = 2**20
# A trim of 700 MB takes 3 ms. With 1,000 groups of four weeks the service had 918 MiB right after a trim. Of 120 looks
# 49 found more than 960 MiB where it was trimmed each ten seconds, and 22 where each two; the peaks stay as they are.
TIDY_EVERY_SECONDS = 2.0
# Meanwhile other threads get no memory from the heap: of one that is much larger a trim has this share of the time.
TRIM_SHARE = 0.01
# Once a minute objects are set aside, and once an hour those that only refer to each other are looked for among all.
SET_ASIDE_EVERY_SECONDS, SEARCH_EVERY_SECONDS = 60.0, 3600.0


def keep_little_of_what_is_freed(*, for_readers: bool) -> None:
    """Give back every two seconds what this process has freed, and let its threads share two arenas of glibc's malloc.

    By default a thread gets an arena of its own, eight for each core, and what one frees the others do not use: after a
    simulated day of 40 groups a service had 819 MB, with two arenas 479 and 555 (`make soak MINUTES=12 GROUPS=40`).
    Of an arena only the end is given back by itself: in that run Spark's Python had 610 MB after a restart, and 360
    before it.

    What is large has pages of its own; by default malloc takes even 32 MB from the heap once it has freed as many, and
    small things that stay are put in their place. MALLOC_ARENA_MAX and MALLOC_MMAP_THRESHOLD_ in the environment win;
    other systems and other C libraries have no such arenas, and nothing is given back there.

    Python's garbage collector looks through all objects again when a quarter of them are new, and nobody is answered
    meanwhile: 250 ms with 15,000 groups (`make bench-pages`). So a process `for_readers` sets aside from it what a
    minute has left, and looks through that once an hour; what nobody refers to is freed at once as ever. In the process
    of Spark each object in Python holds one of the JVM and itself, so an hour of them would fill the JVM.
    """
    trim: Callable[[int], object] | None = None
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        mallopt, trim = getattr(library, "mallopt", None), getattr(library, "malloc_trim", None)
        if mallopt is not None and "MALLOC_ARENA_MAX" not in os.environ:
            mallopt(_M_ARENA_MAX, ARENAS)
        if mallopt is not None and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
            mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
    threading.Thread(
        target=_tidy_forever, args=(trim,), kwargs={"for_readers": for_readers}, name="memory", daemon=True
    ).start()


def _tidy_forever(trim: Callable[[int], object] | None, *, for_readers: bool) -> None:
    trim_seconds, set_aside_at = 0.0, time.monotonic()
    searched_at = set_aside_at
    while True:
        time.sleep(max(TIDY_EVERY_SECONDS, trim_seconds / TRIM_SHARE))
        now = time.monotonic()
        if for_readers and now - set_aside_at >= SET_ASIDE_EVERY_SECONDS:
            set_aside_at = now
            if now - searched_at >= SEARCH_EVERY_SECONDS:
                searched_at = now
                gc.unfreeze()
                gc.collect()
            gc.freeze()
        if trim is not None:
            began = time.monotonic()
            trim(0)
            trim_seconds = time.monotonic() - began
