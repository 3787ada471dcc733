"""Locks of folders: a file that one process at a time has locked, for as long as it lives."""

import fcntl
from pathlib import Path
from typing import TextIO


def locked(path: Path) -> TextIO:
    """The lock file at `path`, open and locked until it is closed or the process ends.

    Errors: BlockingIOError if another process holds the lock; OSError if the file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock
