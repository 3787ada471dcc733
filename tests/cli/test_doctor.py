"""`lagcast doctor`: a line for each finding, exit codes for scripts, and requests for named objects only."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import doctor_machine, spark_process
from cli.spark_process import Started
from recommender.adapters import kubernetes_client
from recommender.cluster import doctor
from recommender.cluster.doctor import Diagnosis
from recommender.ports import UnavailableError
from spark_features import java
from tests.cli.test_spark_process import lives, until

Lagcast = Callable[..., tuple[int, str, str]]
FINDINGS = (
    Diagnosis(check="API server", where="-", state="ok", sentence="Kubernetes v1.36.3 is reachable."),
    Diagnosis(check="target", where="shop/orders", state="problem", sentence="It is missing.", remedy="deploy it"),
)


@pytest.fixture(autouse=True)
def around(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with those findings."""
    monkeypatch.setattr(kubernetes_client, "connect", lambda _: None)
    monkeypatch.setattr(doctor, "examine", lambda *_positional, **_named: FINDINGS)


def test_each_finding_is_a_line(lagcast: Lagcast) -> None:
    """A line has state, check, place and sentence, and the remedy where there is one."""
    code, out, err = lagcast("doctor", "--kubernetes", "shop")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "ok       API server: Kubernetes v1.36.3 is reachable.",
        "problem  target shop/orders: It is missing. -> deploy it",
    ]


def test_json_has_the_same_findings(lagcast: Lagcast) -> None:
    """The remedy is null where there is none."""
    _, out, _ = lagcast("doctor", "--kubernetes", "shop", "-o", "json")
    assert [(each["state"], each["remedy"]) for each in json.loads(out)] == [("ok", None), ("problem", "deploy it")]


def test_findings_are_an_exit_code_under_strict(lagcast: Lagcast) -> None:
    """Under --strict a finding is exit code 3, and else 0."""
    assert lagcast("doctor", "--kubernetes", "shop", "--strict")[0] == 3


def test_a_cluster_that_does_not_answer_is_exit_code_4(lagcast: Lagcast, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints one sentence and no table."""

    def away(*_positional: object, **_named: object) -> None:
        message = "could not read the version of the API server: no answer; is the cluster reachable?"
        raise UnavailableError(message)

    monkeypatch.setattr(doctor, "examine", away)
    code, out, err = lagcast("doctor", "--kubernetes", "shop")
    assert (code, out) == (4, "")
    assert "is the cluster reachable?" in err


def test_a_name_without_its_namespace_is_refused(lagcast: Lagcast, tmp_path: Path) -> None:
    """A name without its namespace is refused before the first request."""
    code, _, err = lagcast("doctor", "--kubernetes", "shop", "--executor", "lagcast", "--kubeconfig", tmp_path)
    assert code == 2
    assert "--executor is 'lagcast'; write it as NAMESPACE/NAME" in err


class Trial:
    """A start of Spark of which comes what a test says; it is closed at the end."""

    def __init__(self) -> None:
        self.said: Started | Exception | None = None
        self.closed = 0

    def outcome(self, *, limit_seconds: float) -> Started | Exception | None:
        """That."""
        assert limit_seconds == doctor_machine.SPARK_LIMIT_SECONDS
        return self.said

    def close(self) -> None:
        """Note it."""
        self.closed += 1


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    """What comes of the start of Spark, which a test decides on; on some Java."""
    trial = Trial()
    monkeypatch.setattr(spark_process, "SparkTrial", lambda _: trial)
    monkeypatch.setattr(java, "find_java", lambda _: java.JavaRuntime(home=Path("/"), version=21, source="packaged"))
    return trial


def test_without_an_option_it_looks_at_this_machine(lagcast: Lagcast, trial: Trial) -> None:
    """Java, Spark, prices, and what nobody has looked at: no cluster is asked."""
    trial.said = Started("4.3.0", 7.94)
    code, out, _ = lagcast("doctor")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "ok       Java: Java 21 (packaged)."
    assert lines[1] == "ok       Spark: Spark 4.3.0 starts in 7.9 s."
    assert trial.closed == 1
    assert lines[2].startswith("note     price: No price of a replica-hour is set: costs and savings are in pod-hours.")
    assert lines[3].startswith("note     autoscalers: ")
    assert len(lines) == 4


def test_a_price_that_is_set_is_told(lagcast: Lagcast, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its currency."""
    trial.said = Started("4.3.0", 7.94)
    monkeypatch.setenv("LAGCAST_DECISION__PRICE_PER_REPLICA_HOUR", "0.05")
    assert "ok       price: A replica-hour costs 0.05 USD, as set." in lagcast("doctor")[1]


def test_a_spark_that_does_not_start_is_a_problem(lagcast: Lagcast, trial: Trial) -> None:
    """One line with the reason and where its log is; the other findings are there."""
    trial.said = RuntimeError("the JVM has ended\nat line 7")
    code, out, _ = lagcast("doctor", "--strict")
    problem = next(line for line in out.splitlines() if line.startswith("problem"))
    assert code == 3
    assert problem.startswith(
        "problem  Spark: Spark did not start: RuntimeError: the JVM has ended -> the reason is in "
    )
    assert "spark.log" in problem
    assert "at line 7" not in out


HANGING_JAVA = """#!/bin/sh
case "$*" in
*--list-modules*)
    echo "    java.specification.version = 21"
    echo "    java.version = 21.0.1"
    echo "    java.home = {home}"
    echo "jdk.incubator.vector@21" ;;
*)
    echo $$ > {pid}
    exec sleep 600 ;;
esac
"""


def test_a_spark_that_hangs_is_one_problem_and_the_others_are_looked_for(
    lagcast: Lagcast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that never answers is killed at the end of its time, and nothing of it is left."""
    executable, pid = tmp_path / "java" / "bin" / "java", tmp_path / "pid"
    executable.parent.mkdir(parents=True)
    executable.write_text(HANGING_JAVA.format(home=tmp_path / "java", pid=pid))
    executable.chmod(0o755)
    monkeypatch.setenv("LAGCAST_JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(doctor_machine, "SPARK_LIMIT_SECONDS", 8.0)
    code, out, _ = lagcast("doctor", "--strict")
    assert code == 3
    lines = out.splitlines()
    assert lines[0] == "ok       Java: Java 21 (LAGCAST_JAVA_HOME)."
    assert lines[1].startswith("problem  Spark: Spark hangs: it has not started within 8 s, and was stopped. -> ")
    assert [line.split()[1] for line in lines[2:]] == ["price:", "autoscalers:"]
    until(lambda: not lives(int(pid.read_text())))


def test_without_java_spark_is_not_started(lagcast: Lagcast, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line has what was tried and the setting; the start, which never ends here, is not waited for."""
    message = (
        "no Java 17 to 25 found (PATH (/usr/bin/java) skipped: it is Java 8); install one or set LAGCAST_JAVA_HOME"
    )

    def find(_: object) -> None:
        raise java.JavaError(message)

    monkeypatch.setattr(java, "find_java", find)
    _, out, _ = lagcast("doctor")
    assert out.splitlines()[0] == (
        "problem  Java: no Java 17 to 25 found (PATH (/usr/bin/java) skipped: it is Java 8). -> install one or set "
        "LAGCAST_JAVA_HOME"
    )
    assert "Spark" not in out
    assert trial.closed == 0


def test_two_sources_at_once_are_refused(lagcast: Lagcast) -> None:
    """Before anything is started."""
    code, out, err = lagcast("doctor", "--bootstrap", "127.0.0.1:1", "--prometheus", "http://127.0.0.1:1")
    assert (code, out) == (2, "")
    assert "give --bootstrap HOST:PORT or --prometheus URL, not both" in err
