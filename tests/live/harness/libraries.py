"""Client libraries of Kafka that lagcast does not depend on, for members of consumer groups: Go's and kafka-python."""

import sys
from pathlib import Path

from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent


class LibraryError(RuntimeError):
    """A client library could not be fetched or built; the message ends with what the tool said."""


def built_go_members() -> Path:
    """The program of `go_members/`, built from its Go modules the first time. Errors: LibraryError."""
    return _had(_HERE / "go_members" / "build.sh")


def fetched_kafka_python() -> Path:
    """The folder of kafka-python's packages, fetched the first time. Errors: LibraryError."""
    return _had(_HERE / "fetch_kafka_python.sh", sys.executable)


def _had(script: Path, *words: str) -> Path:
    done = ran(script, *words)
    if done.returncode:
        message = f"{script.name} failed: {done.stderr.strip()[-2000:]}"
        raise LibraryError(message)
    return Path(done.stdout.strip())
