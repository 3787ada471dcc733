"""What registries have for live tests: client libraries of Kafka, and definitions of Argo's and Strimzi's kinds."""

from pathlib import Path

from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent


class LibraryError(RuntimeError):
    """A part could not be fetched or built; the message ends with what the tool said."""


def built_go_members() -> Path:
    """The program of `go_members/`, built from its Go modules the first time. Errors: LibraryError."""
    return _had(_HERE / "go_members" / "build.sh")


def fetched_rollout_definition() -> Path:
    """The CustomResourceDefinition of Argo Rollouts, fetched the first time. Errors: LibraryError."""
    return _had(_HERE / "rollouts" / "fetch.sh")


def made_strimzi_definitions() -> Path:
    """The folder of the CustomResourceDefinitions of Strimzi, made the first time. Errors: LibraryError."""
    return _had(_HERE / "strimzi" / "make.sh")


def built_prometheus_adapter() -> Path:
    """prometheus-adapter, built from its Go module the first time. Errors: LibraryError."""
    return _had(_HERE / "prometheus_adapter" / "build.sh")


def _had(script: Path) -> Path:
    done = ran(script)
    if done.returncode:
        message = f"{script.parent.name}/{script.name} failed: {done.stderr.strip()[-2000:]}"
        raise LibraryError(message)
    return Path(done.stdout.strip())
