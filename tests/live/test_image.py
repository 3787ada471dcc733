"""Both images of deploy/Dockerfile, run as pods of the profile `restricted` are: without root, on a read-only root."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from scripts.licences_page import COPYLEFT_OF_BOTH_IMAGES, COPYLEFT_OF_THE_IMAGE
from tests.feature_folder import steady_hour
from tests.live.harness.broker import free_ports
from tests.live.harness.clients import wait_until
from tests.live.harness.executors import read_clock
from tests.live.harness.images import IMAGES, Images, ask_to_end

pytestmark = pytest.mark.image

ROOT = Path(__file__).parents[2]
README = ROOT / "deploy" / "README.md"
SCRIPT = ROOT / "scripts" / "image_packages.py"
# The user that the images name, and one as OpenShift draws it: a number without a name.
OWN_USER = "10001:0"
DRAWN_USER = "1000650000:0"


def test_the_demo_runs_with_spark_and_without_a_network(images: Images) -> None:
    """As a user without a name it ends with a league and a decision, on features that Spark made on Debian's Java."""
    words = ("lagcast", "demo", "--days", "2", "--port", "0", "--headless", "-o", "json")
    # Options of Spark's JVM that this run has, such as those that start it sooner.
    command = images.command("lagcast", *words, user=DRAWN_USER, network="none", options=["--env=SPARK_SUBMIT_OPTS"])
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Spark +\S+ local\[\*\], Java 21 \(JAVA_HOME\)", done.stderr), done.stderr
    assert "Read-only" not in done.stderr
    result = json.loads(done.stdout)
    assert result["decision"]["group_id"] == "orders"
    assert "lagcast" in [policy["policy"] for policy in result["policies"]]


def test_loops_are_machine_code_already(images: Images, shared: Path) -> None:
    """Decisions of another process, by a user who may not write to the image, compile none of them."""
    (shared / "compile_loops.py").write_text((ROOT / "scripts" / "compile_loops.py").read_text())
    listed = "find $NUMBA_CACHE_DIR -type f | sort"
    words = ("sh", "-c", f"{listed}; echo; python /decide.py; {listed}")
    volume = "--volume=/shared/compile_loops.py:/decide.py:ro"
    command = images.command("lagcast", *words, user=DRAWN_USER, network="none", options=[volume])
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    before, after = done.stdout.split("\n\n")
    assert before.strip() == after.strip()
    assert before.count(".nbc") >= 10


def test_serve_decides_and_writes_to_its_state_alone(images: Images, shared: Path) -> None:
    """It is alive, recommends for a group, keeps that in the state folder, and ends at a SIGTERM."""
    now = read_clock()
    steady_hour(shared / "features", ("orders",), end_at=now - timedelta(seconds=now.timestamp() % 15))
    state = shared / "state"
    state.mkdir()
    state.chmod(0o775)  # of the group 0, as a volume is with `fsGroup`
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    words = ("lagcast", "serve", "--features", "/data", "--port", str(port))
    volumes = ("--volume=/shared/features:/data:ro", "--volume=/shared/state:/var/lib/lagcast")
    command = images.command("lagcast", *words, user=OWN_USER, network="host", options=volumes)
    with running(command, log=shared / "serve.log") as (process, said):
        wait_until(lambda: answer(f"{url}/livez") is not None or process.poll() is not None)
        assert answer(f"{url}/livez") == "ok\n", said()
        wait_until(lambda: "orders" in (answer(f"{url}/api/v1/groups") or ""))
        (group,) = json.loads(answer(f"{url}/api/v1/groups") or "")["groups"]
        advice = json.loads(answer(f"{url}/api/v1/groups/{group['group_key']}/recommendation") or "")
        assert (advice["kind"], advice["current_replicas"]) == ("Recommendation", 12)
        ask_to_end(process)
        assert process.wait(timeout=60) == 0, said()
    assert "Read-only" not in said()
    assert (state / "decisions.sqlite").stat().st_uid == 10001


def test_the_executor_stays_where_nothing_answers(images: Images, shared: Path) -> None:
    """Without an API it says so in one sentence, stays alive, and ends at a SIGTERM."""
    (shared / "kubeconfig").write_text(
        "{apiVersion: v1, kind: Config, current-context: none, users: [{name: none, user: {}}],"
        " clusters: [{name: none, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: none, context: {cluster: none, user: none}}]}",
        encoding="utf-8",
    )
    (port,) = free_ports(1)
    words = ("--api", "http://127.0.0.1:1", "--all", "--kubeconfig", "/kubeconfig", "--metrics-port", str(port))
    volume = "--volume=/shared/kubeconfig:/kubeconfig:ro"
    command = images.command("executor", *words, user=OWN_USER, network="host", options=[volume])
    with running(command, log=shared / "executor.log") as (process, said):
        wait_until(lambda: '"failed"' in said() or process.poll() is not None)
        assert "http://127.0.0.1:1/ does not answer" in said()
        assert answer(f"http://127.0.0.1:{port}/livez") == "ok\n"
        ask_to_end(process)
        assert process.wait(timeout=60) == 0, said()
    assert len(said().splitlines()) == 2  # where its metrics are, and what does not answer


@pytest.mark.parametrize("image", IMAGES)
def test_its_user_may_change_no_file_of_the_image(images: Images, image: str) -> None:
    """Where the root is writable all the same, only folders for the files of anyone are, and the state folder."""
    words = ("/", "-xdev", "-writable", "(", "-type", "d", "-o", "-type", "f", ")")
    command = images.command(image, *words, user=OWN_USER, network="none", options=["--entrypoint=find"])
    command.remove("--read-only")
    found = subprocess.run(command, check=False, capture_output=True, text=True).stdout.split()
    own = ["/var/lib/lagcast"] if image == "lagcast" else []
    assert sorted(found) == ["/run/lock", "/tmp", *own, "/var/tmp"]  # noqa: S108  # only compared


def test_the_image_has_one_java_with_this_years_fixes(images: Images) -> None:
    """One Java virtual machine, of this year or the year before this day; none in the executor's image."""
    found = {}
    for image in IMAGES:
        search = "find / -xdev -name libjvm.so; java -version 2>&1"
        command = images.command(image, "-c", search, user=OWN_USER, network="none", options=["--entrypoint=sh"])
        found[image] = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    assert [image for image in IMAGES if "libjvm.so" in found[image]] == ["lagcast"]
    assert found["lagcast"].count("libjvm.so") == 1
    version = re.search(r'openjdk version "21\S*" (\S+)', found["lagcast"])
    assert version is not None
    assert read_clock() - datetime.fromisoformat(version[1]).replace(tzinfo=UTC) < timedelta(days=365)


@pytest.mark.parametrize("image", IMAGES)
def test_its_debian_packages_are_listed_with_their_sources_and_licences(images: Images, image: str) -> None:
    """By the script beside `make sbom`, which the image's own Python runs; the page of licences is right about them.

    The base of the tests, unlike Debian's, leaves out the licences of some packages.
    """
    options = ["--entrypoint=python3", "--interactive"]
    command = images.command(image, "-", user=OWN_USER, network="none", options=options)
    done = subprocess.run(command, check=True, capture_output=True, text=True, input=SCRIPT.read_text(encoding="utf-8"))
    components = {each["name"]: each for each in json.loads(done.stdout)["components"]}
    licences = {name: {each["license"]["name"] for each in of["licenses"]} for name, of in components.items()}
    assert all(each["properties"][0]["value"].count(" ") == 1 for each in components.values())
    of_this_image = COPYLEFT_OF_THE_IMAGE if image == "lagcast" else COPYLEFT_OF_BOTH_IMAGES
    assert set(of_this_image) <= set(licences)
    known = {name: licences[name] for name in of_this_image if licences[name]}
    assert {name for name, found in known.items() if not any("GPL" in licence for licence in found)} == set()


def test_sizes_are_as_the_page_quotes_them(images: Images) -> None:
    """Unpacked, in GB, at most a twentieth off."""
    quoted = dict(re.findall(r"^\| `(\S+)` \| .+ \| ([0-9.]+) GB \|$", README.read_text(), re.MULTILINE))
    for image, name in zip(IMAGES, ("lagcast", "lagcast-executor"), strict=True):
        assert float(quoted[name]) == pytest.approx(images.size(image) / 1e9, rel=0.05)


def answer(url: str) -> str | None:
    """The text that is answered with 200; None where another or no answer comes."""
    try:
        given = httpx2.get(url, timeout=5)
    except httpx2.HTTPError:
        return None
    return given.text if given.status_code == httpx2.codes.OK else None


@contextmanager
def running(command: list[str], *, log: Path) -> Iterator[tuple["subprocess.Popen[str]", Callable[[], str]]]:
    """The process of that command until the block ends, and a function that returns what it has printed so far."""
    with (
        log.open("w", encoding="utf-8") as printed,
        subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, text=True) as process,
    ):
        try:
            yield process, lambda: log.read_text(encoding="utf-8")
        finally:
            process.kill()
