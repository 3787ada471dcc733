"""`lagcast doctor`: a line for each finding, exit codes for scripts, and requests for named objects only."""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli import spark
from recommender.adapters import kubernetes_client
from recommender.cluster import doctor
from recommender.cluster.doctor import Diagnosis
from recommender.ports import UnavailableError
from spark_features import java

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


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> "Future[Any]":
    """What comes of the start of Spark, which a test decides on; on some Java."""
    future: Future[Any] = Future()

    @contextmanager
    def beside(*_positional: object, **_named: object) -> Iterator["Future[Any]"]:
        yield future

    monkeypatch.setattr(spark, "spark_beside", beside)
    monkeypatch.setattr(java, "find_java", lambda _: java.JavaRuntime(home=Path("/"), version=21, source="packaged"))
    return future


def test_without_an_option_it_looks_at_this_machine(lagcast: Lagcast, starting: "Future[Any]") -> None:
    """Java, Spark, prices, and what nobody has looked at: no cluster is asked."""
    starting.set_result(SimpleNamespace(version="4.3.0"))
    code, out, _ = lagcast("doctor")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "ok       Java: Java 21 (packaged)."
    assert re.fullmatch(r"ok       Spark: Spark 4\.3\.0 starts in \d+\.\d s\.", lines[1])
    assert lines[2].startswith("note     price: No price of a replica-hour is set: costs and savings are in pod-hours.")
    assert lines[3].startswith("note     autoscalers: ")
    assert len(lines) == 4


def test_a_price_that_is_set_is_told(
    lagcast: Lagcast, starting: "Future[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its currency."""
    starting.set_result(SimpleNamespace(version="4.3.0"))
    monkeypatch.setenv("LAGCAST_DECISION__PRICE_PER_REPLICA_HOUR", "0.05")
    assert "ok       price: A replica-hour costs 0.05 USD, as set." in lagcast("doctor")[1]


def test_a_spark_that_does_not_start_is_a_problem(lagcast: Lagcast, starting: "Future[Any]") -> None:
    """One line with the reason and where its log is; the other findings are there."""
    starting.set_exception(RuntimeError("the JVM has ended\nat line 7"))
    code, out, _ = lagcast("doctor", "--strict")
    problem = next(line for line in out.splitlines() if line.startswith("problem"))
    assert code == 3
    assert problem.startswith(
        "problem  Spark: Spark did not start: RuntimeError: the JVM has ended -> the reason is in "
    )
    assert "spark.log" in problem
    assert "at line 7" not in out


def test_without_java_spark_is_not_started(
    lagcast: Lagcast, starting: "Future[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one line has what was tried and the setting; the start, which never ends here, is not waited for."""
    del starting
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


def test_two_sources_at_once_are_refused(lagcast: Lagcast) -> None:
    """Before anything is started."""
    code, out, err = lagcast("doctor", "--bootstrap", "127.0.0.1:1", "--prometheus", "http://127.0.0.1:1")
    assert (code, out) == (2, "")
    assert "give --bootstrap HOST:PORT or --prometheus URL, not both" in err
