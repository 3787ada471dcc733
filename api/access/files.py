"""Files with secrets that are renewed while the service runs: when they have changed, and who else may read them."""

import stat
from collections.abc import Iterable
from pathlib import Path

# What tells one content of a file from another one: Kubernetes swaps links, editors rename, others write in place.
Version = tuple[tuple[str, int, int, int], ...]


class AccessError(ValueError):
    """A file that protects the service cannot be used; the sentence names the file, the reason and the next step."""


def version_of(files: Iterable[Path]) -> Version:
    """What changes when one of the files does. Errors: OSError."""
    states = [(file, file.stat()) for file in files]
    return tuple((str(file), state.st_ino, state.st_mtime_ns, state.st_size) for file, state in states)


def require_private(file: Path, what: str) -> None:
    """Errors: AccessError if every user of this machine may read `file`; OSError."""
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & stat.S_IROTH:
        message = f"{what} {file} has mode {mode:04o}, so every user may read it; chmod o-rwx {file}"
        raise AccessError(message)
