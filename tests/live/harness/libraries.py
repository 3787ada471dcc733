"""Client libraries of Kafka that lagcast does not depend on, for members of consumer groups: those of Go."""

from pathlib import Path

from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent


class LibraryError(RuntimeError):
    """A client library could not be fetched or built; the message ends with what the tool said."""


def built_go_members() -> Path:
    """The program of `go_members/`, built from its Go modules the first time. Errors: LibraryError."""
    done = ran(_HERE / "go_members" / "build.sh")
    if done.returncode:
        message = f"build.sh failed: {done.stderr.strip()[-2000:]}"
        raise LibraryError(message)
    return Path(done.stdout.strip())
