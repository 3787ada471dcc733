"""The executor's page for Prometheus: what came of its looks, and who else sets counts."""

import socket
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from executor.carry_out import Executor
from executor.errors import AdviceError, PortError
from executor.metrics import ExecutorMetrics, writers_of
from executor.owners import Owner
from executor.plan import ConflictReason, Held, Scale
from recommender.deciding.recommendation import Recommendation

# Classes of the conftest beside; test modules cannot import one another.
Cluster = Any
Service = Any


def scraped(metrics: ExecutorMetrics) -> dict[tuple[str, str], float]:
    """The samples of the page by name and label, without the instants at which they began."""
    with metrics.serving("127.0.0.1", 0) as port:
        page = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    return {
        (sample.name, next(iter(sample.labels.values()))): sample.value
        for sample in samples
        if not sample.name.endswith("_created")
    }


def test_a_probe_fails_once_no_look_has_ended_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever came of the last one: an executor is not restarted because the API is away."""
    metrics = ExecutorMetrics()
    with metrics.serving("127.0.0.1", 0) as port:
        probe = f"http://127.0.0.1:{port}/livez"
        assert httpx2.get(probe, timeout=10).status_code == 200
        monkeypatch.setattr("executor.metrics.HANGS_AFTER_SECONDS", 0.0)
        assert httpx2.get(probe, timeout=10).status_code == 503
        monkeypatch.undo()
        metrics.looked([AdviceError("the API does not answer")], dry_run=False)
        assert httpx2.get(probe, timeout=10).text == "ok\n"


def test_looks_are_counted_by_what_came_of_them(
    service: Service,
    cluster: Cluster,
    executor: Callable[..., Executor],
    due_advice: Callable[..., Recommendation],
) -> None:
    """A move, a look with nothing to do, a conflict that lasts over two looks and is counted once, and a failure."""
    metrics = ExecutorMetrics()
    cluster.add_scaler()
    service.store.save(due_advice())
    acting = executor()
    acting.on_conflict = metrics.conflicted

    def look() -> None:
        metrics.looked(acting.run_once(None), dry_run=False)

    look()
    look()
    cluster.write(6)
    service.store.save(due_advice(recommendation_id="r-2", action="hold", desired_replicas=6))
    look()
    look()
    metrics.looked([AdviceError("the API does not answer")], dry_run=False)
    assert scraped(metrics) == {
        ("lagcast_executions_total", "acted"): 1.0,
        ("lagcast_executions_total", "nothing_to_do"): 1.0,
        ("lagcast_executions_total", "conflicted"): 2.0,
        ("lagcast_executions_total", "failed"): 1.0,
        ("lagcast_conflicts_total", "kubectl"): 1.0,
    }


def test_a_dry_run_acts_in_no_sample(
    service: Service, executor: Callable[..., Executor], due_advice: Callable[..., Recommendation]
) -> None:
    """What it would have done has a name of its own."""
    metrics = ExecutorMetrics()
    service.store.save(due_advice())
    metrics.looked(executor(dry_run=True).run_once(None), dry_run=True)
    assert scraped(metrics) == {("lagcast_executions_total", "would_act"): 1.0}


@pytest.mark.parametrize(
    ("conflict", "scale", "writers"),
    [
        ("Autoscaled", {"other_writers": ("ScaledObject shop/a", "ScaledObject shop/b")}, ("ScaledObject",)),
        ("DeclaredInGit", {"git_owner": "Argo CD (argocd.argoproj.io/instance: shop)"}, ("Argo CD",)),
        ("ChangedByOthers", {"owners": (Owner(manager="kubectl"), Owner(manager="lagcast-executor"))}, ("kubectl",)),
        ("ChangedByOthers", {}, ("another client",)),
        ("LimitedByCluster", {"owners": (Owner(manager="lagcast-executor"),)}, ("the cluster",)),
    ],
)
def test_writers_have_names_of_which_there_are_few(
    conflict: ConflictReason, scale: dict[str, Any], writers: tuple[str, ...]
) -> None:
    """A kind, a tool or a field manager: a name of an object in a label would be a series for each."""
    found = Scale(replicas=3, resource_version="1", **scale)
    assert writers_of(found, Held(reason="conflicted", sentence="", conflict=conflict)) == writers


def test_a_port_that_is_taken_is_one_sentence() -> None:
    """The sentence has the option, and the next step."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(PortError, match=f"--metrics-port {port} of 127.0.0.1 cannot be used: .*; give another one"),
            ExecutorMetrics().serving("127.0.0.1", port),
        ):
            pass
