"""The images: their contents, their user, and the commands of their entry point."""

import os
import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
ENTRYPOINT = ROOT / "deploy" / "entrypoint.sh"


def stage(name: str) -> str:
    """The instructions of one build stage."""
    return re.split(r"^FROM ", DOCKERFILE.split(f" AS {name}\n")[1], flags=re.MULTILINE)[0]


def test_every_package_is_in_the_image() -> None:
    """All packages of the wheel are copied into the build, and not excluded by the ignore file."""
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert re.findall(r"^COPY (\w+)/ \1/$", DOCKERFILE, re.MULTILINE) == ["requirements", *packages]
    allowed = re.findall(r"^!(\S+)$", (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert sorted(allowed) == sorted(name.rstrip("/") for names in copied for name in names.split())


def test_the_dockerfile_has_no_findings() -> None:
    """No rule of hadolint is broken, except those that are ignored beside their line with a reason."""
    linter = Path(sysconfig.get_path("scripts")) / "hadolint"
    done = subprocess.run([linter, "--no-color", ROOT / "deploy" / "Dockerfile"], check=False, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("name", ["lagcast", "executor"])
def test_b13_images_run_as_a_number_that_is_not_root(name: str) -> None:
    """The user is a number, which shows Kubernetes that it is not root, in group 0, so that any other number works."""
    assert re.findall(r"^USER (.+)$", stage(name), re.MULTILINE) == ["10001:0"]


@pytest.mark.parametrize("name", ["lagcast", "executor"])
def test_images_start_console_scripts(name: str) -> None:
    """An image's default command is a console script of the project."""
    lists = re.findall(r"^(?:ENTRYPOINT|CMD) \[(.+)\]$", stage(name), re.MULTILINE)
    named = {item.strip('" ') for items in lists for item in items.split(",")}
    assert named & PROJECT["project"]["scripts"].keys() == {"lagcast" if name == "lagcast" else "lagcast-executor"}


def test_base_image_is_pinned() -> None:
    """Every stage comes from one Debian of a day, by its digest; the tag is for readers."""
    assert re.search(r"^ARG BASE=debian:trixie-\d{8}-slim@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert set(bases) == {"${BASE}", "base", "build"}


def test_packages_come_with_hashes() -> None:
    """Every package is installed from the lock, whose entries all have hashes."""
    installs = re.findall(r"pip install (?:[^&\\\n]|\\\n)+", DOCKERFILE)
    assert len(installs) == 5
    assert [line for line in installs if not re.search("--constraint|--require-hashes|--no-deps dist/", line)] == []
    locked = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^\S+==\S+.*\\\n    --hash=", locked, re.MULTILINE)) == len(
        re.findall(r"^[^\s#]+==", locked, re.MULTILINE)
    )


def test_every_option_of_the_chart_has_its_package() -> None:
    """The image has every extra: those behind --kubernetes, --keda-port and a PostgreSQL."""
    assert re.findall(r"--extra (\S+)", stage("packages-lagcast")) == list(EXTRAS)


@pytest.fixture
def run_entry_point(tmp_path: Path) -> "Run":
    return Run(tmp_path)


class Run:
    """Runs the entry point with a `java` and a `spark-submit` that print their arguments, one a line."""

    def __init__(self, folder: Path) -> None:
        self._home = folder
        (folder / "bin").mkdir()
        for name in ("java", "spark-submit"):
            fake = folder / "bin" / name
            fake.write_text('#!/bin/sh\nprintf \'%s\\n\' "${0##*/}" "$@"\n', encoding="utf-8")
            fake.chmod(0o755)

    def __call__(self, *arguments: str, **environment: str) -> list[str]:
        """The lines that are printed."""
        homes = {"JAVA_HOME": str(self._home), "SPARK_HOME": str(self._home), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [ENTRYPOINT, *arguments], env=homes | environment, capture_output=True, text=True, check=True
        )
        return done.stdout.replace(str(self._home), "HOME").splitlines()


def test_entry_point_runs_a_command(run_entry_point: Run) -> None:
    """Another command is run as it is, spaces in its arguments included."""
    assert run_entry_point("printf", r"%s\n", "a b", "driver") == ["a b", "driver"]


def test_entry_point_starts_the_driver(run_entry_point: Run) -> None:
    """As Spark's driver it submits in client mode, bound to the address that Spark gave."""
    arguments = [
        "--properties-file",
        "/opt/spark/conf/spark.properties",
        "local:///job.py",
        "--out",
        "/data/my features",
    ]
    lines = run_entry_point("driver", *arguments, SPARK_DRIVER_BIND_ADDRESS="10.1.2.3")
    assert lines == [
        "spark-submit",
        "--deploy-mode",
        "client",
        "--conf",
        "spark.driver.bindAddress=10.1.2.3",
        *arguments,
    ]


def test_entry_point_starts_an_executor(run_entry_point: Run) -> None:
    """As Spark's executor it starts the back end with every option and address that Spark gave, in order."""
    lines = run_entry_point(
        "executor",
        SPARK_JAVA_OPT_0="-Dspark.driver.port=7078",
        SPARK_JAVA_OPT_1="-Dname=a b",
        SPARK_EXECUTOR_MEMORY="4g",
        SPARK_DRIVER_URL="spark://CoarseGrainedScheduler@driver:7078",
        SPARK_EXECUTOR_ID="1",
        SPARK_EXECUTOR_CORES="2",
        SPARK_APPLICATION_ID="spark-1",
        SPARK_EXECUTOR_POD_IP="10.1.2.4",
        SPARK_RESOURCE_PROFILE_ID="0",
        SPARK_EXECUTOR_POD_NAME="features-1",
        SPARK_CONF_DIR="/opt/spark/conf",
    )
    assert lines[:7] == [
        "java",
        "-Dspark.driver.port=7078",
        "-Dname=a b",
        "-Xms4g",
        "-Xmx4g",
        "-cp",
        "/opt/spark/conf:HOME/jars/*",
    ]
    assert lines[7] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert dict(zip(lines[8::2], lines[9::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@driver:7078",
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.1.2.4",
        "--resourceProfileId": "0",
        "--podName": "features-1",
    }
