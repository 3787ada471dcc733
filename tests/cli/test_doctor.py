"""`lagcast doctor`: a line for each finding, exit codes for scripts, and requests for named objects only."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from recommender.adapters import kubernetes_client
from recommender.cluster import doctor
from recommender.cluster.doctor import Diagnosis
from recommender.ports import UnavailableError

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
