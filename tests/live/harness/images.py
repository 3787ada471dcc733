"""The images of deploy/Dockerfile, built and run by a podman that is made of Debian's packages."""

import os
import re
import resource
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.live.harness.fetching import ran

_HERE = Path(__file__).parent
_DOCKERFILE = _HERE.parents[2] / "deploy" / "Dockerfile"
# Each image by the build stage that is its last.
IMAGES = ("lagcast", "executor")
_PACKAGES_ALONE = "localhost/debian-packages"
# The container's user is a number without a name, its root is read-only, and it has no right that a pod of the profile
# `restricted` lacks. Kubernetes and Docker leave /dev/shm writable; podman would add /run and /var/tmp.
_RESTRICTED = (
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs=/dev/shm:mode=1777", "--tmpfs=/tmp:mode=1777"),
    *("--passwd=false", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
)
# A machine may forbid raising limits, and has its own control groups; both are left as they are.
_AS_HERE = ("--ulimit=host", "--cgroups=disabled")


class EngineError(RuntimeError):
    """podman could not be had, or failed; the message is its output."""


def fetched_engine() -> Path:
    """The folder of the engine, made the first time. Errors: EngineError."""
    done = ran(_HERE / "fetch_engine.sh")
    if done.returncode:
        message = f"podman did not come from Debian's packages: {done.stderr.strip()[-2000:]}"
        raise EngineError(message)
    return Path(done.stdout.strip())


def built_images() -> Path:
    """The folder of the engine, whose storage then has the layers of both images. Errors: EngineError."""
    engine = fetched_engine()
    Images(engine, engine)
    return engine


class Images:
    """Both images of this checkout. What is below `shared` can be a volume of a container, as /shared/NAME.

    They are built first: layers of the last build are taken where nothing of theirs has changed. Errors: EngineError.
    """

    def __init__(self, engine: Path, shared: Path) -> None:
        self._command = [str(_HERE / "podman.sh"), str(engine), str(shared)]
        self._engine = engine
        # Without tags: another checkout may build beside, in the same storage.
        self._numbers = self._build()

    def _build(self) -> dict[str, str]:
        """The number of each image."""
        # Of a run that was killed; no container lives longer than the call that runs it.
        self._podman("rm", "--all", "--force", "--volumes")
        # What Debian mended since is in the image two weeks later at the latest.
        self._podman("image", "prune", "--force", "--filter=until=336h")
        base = self._base()
        # `--ulimit=host` is for `run` alone.
        limits = [
            f"--ulimit={name}={soft}:{hard}"
            for name, (soft, hard) in (
                ("nofile", resource.getrlimit(resource.RLIMIT_NOFILE)),
                ("nproc", resource.getrlimit(resource.RLIMIT_NPROC)),
            )
        ]
        words = (
            *("build", "--isolation=chroot", "--quiet", *limits, *base),
            *("--build-arg=UV_DEFAULT_INDEX", "--build-arg=PIP_INDEX_URL"),
            "--secret=id=authorities,src=/run/authorities.crt",
            *("--ignorefile=/checkout/deploy/Dockerfile.dockerignore", "--file=/checkout/deploy/Dockerfile"),
        )
        return {image: self._podman(*words, f"--target={image}", "/checkout").strip() for image in IMAGES}

    def size(self, image: str) -> int:
        """Its size in bytes, unpacked."""
        return int(self._podman("image", "inspect", "--format={{.Size}}", self._numbers[image]))

    def _podman(self, *words: str) -> str:
        """The output of podman. Errors: EngineError."""
        done = subprocess.run([*self._command, *words], check=False, capture_output=True, text=True)
        if done.returncode:
            message = f"podman {words[0]} failed: {done.stderr.strip()[-3000:]}"
            raise EngineError(message)
        return done.stdout

    def command(self, image: str, *words: str, user: str, network: str, options: Sequence[str] = ()) -> list[str]:
        """The command that runs the image with these words, as restricted as a pod, and removes the container."""
        chosen = (f"--user={user}", f"--network={network}", *options)
        return [*self._command, "run", "--rm", *_AS_HERE, *_RESTRICTED, *chosen, self._numbers[image], *words]

    def _base(self) -> list[str]:
        """The words that name a base: none where the Dockerfile's own can be pulled, else Debian's packages alone."""
        named = re.search(r"^ARG BASE=(\S+)$", _DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
        assert named is not None
        try:
            self._podman("pull", "--quiet", "--retry=0", f"docker.io/library/{named[1]}")
        except EngineError:
            if not self._podman("images", "--quiet", _PACKAGES_ALONE):
                command = [*self._command, "import", "--quiet", "-", _PACKAGES_ALONE]
                with (self._engine / "base.tar").open("rb") as packages:
                    subprocess.run(command, stdin=packages, check=True)
            return [f"--build-arg=BASE={_PACKAGES_ALONE}"]
        return []


def ask_to_end(process: "subprocess.Popen[str]") -> None:
    """Send SIGTERM to the podman that a `command` runs as the one child of its name space; podman passes it on."""
    (podman,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    os.kill(int(podman), signal.SIGTERM)
