"""The executor between a real API and a scale endpoint: how many patches it sends, and which."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from api import schemas
from api.convert import to_wire
from api.keys import group_key
from executor.advice import AdviceClient
from executor.carry_out import Executor
from executor.errors import AdviceError, OutsideError, ScaleError
from executor.kubernetes_client import connect
from executor.plan import Act, Asked, Held
from forecasting.refusal import Refusal
from recommender.deciding.recommendation import Recommendation

# Classes of the conftest beside; test modules cannot import one another.
Cluster = Any
Service = Any
MakeAdvice = Callable[..., Recommendation]
MakeExecutor = Callable[..., Executor]
PROGRAM = "from executor.run import main; main()"
KEY = group_key("prod-eu", "orders")
WORKLOAD = "/apis/apps/v1/namespaces/shop/{kind}/orders-consumer"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"


def _reasons(outcomes: tuple[object, ...]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Held) else type(outcome).__name__ for outcome in outcomes]


@pytest.mark.parametrize("service", ["Deployment", "StatefulSet"], indirect=True)
def test_due_advice_is_one_patch(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Six replicas become eight by one merge patch that names the version it was read at, and no second one is sent."""
    service.store.save(due_advice())
    acting = executor()
    assert _reasons(acting.run_once(None)) == ["Act"]
    assert _reasons(acting.run_once([KEY])) == ["nothing_to_do"]
    assert cluster.replicas == 8
    (patch,) = cluster.patches
    assert patch["type"] == "application/merge-patch+json"
    assert patch["body"] == {"metadata": {"resourceVersion": "41"}, "spec": {"replicas": 8}}
    assert patch["path"].split("/")[-3] in ("deployments", "statefulsets")


def test_a_dry_run_sends_nothing(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The patch is shown as it would be sent, in any mode."""
    service.store.save(due_advice())
    (act,) = executor(mode="recommend", dry_run=True).run_once(None)
    assert isinstance(act, Act)
    assert act.patch["spec"] == {"replicas": 8}
    assert cluster.patches == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"age": timedelta(minutes=10)}, "expired"),
        ({"age": timedelta(minutes=3)}, "too_late"),
        ({"age": -timedelta(seconds=30)}, "clock_skew"),
        ({"desired_replicas": 25}, "out_of_bounds"),
        ({"current_replicas": 5}, "conflicted"),
        ({"group": "billing"}, "no_scaler"),
        ({"action": "hold", "desired_replicas": 6}, "nothing_to_do"),
    ],
)
def test_advice_that_must_not_be_followed_sends_nothing(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    changes: dict[str, Any],
    reason: str,
) -> None:
    """Advice that is stale, too late, from the future, out of bounds, for another count or without target is held."""
    service.store.save(due_advice(**changes))
    assert _reasons(executor().run_once(None)) == [reason]
    assert cluster.patches == []


def test_a_refusal_sends_nothing(
    *,
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    refusal: Callable[..., Refusal],
    wall_clock: Callable[[], datetime],
) -> None:
    """A refusal withdraws the advice before it, due or not."""
    service.store.save(due_advice())
    service.store.save(refusal(refused_at=wall_clock()))
    assert _reasons(executor().run_once(None)) == ["refused"]
    assert cluster.patches == []


def test_an_unknown_schema_sends_nothing(
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Advice of the next major version is held."""
    service.store.save(due_advice())
    monkeypatch.setattr("api.reading.to_wire", _of_the_next_version)
    assert _reasons(executor().run_once(None)) == ["schema_unknown"]
    assert cluster.patches == []


def _of_the_next_version(*decision: Any, now: datetime) -> schemas.DecisionV1:  # noqa: ANN401  # passed on
    return to_wire(*decision, now=now).model_copy(update={"schema_version": "2.0"})


def test_the_default_mode_is_recommend(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """An executor in the mode recommend reports what it would do."""
    service.store.save(due_advice())
    assert _reasons(executor(mode="recommend").run_once(None)) == ["mode"]
    assert cluster.patches == []


def test_a_count_that_is_changed_back_is_left_alone(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """After another writer changes 8 replicas back to 6, this advice and the next one are held as conflicted."""
    service.store.save(due_advice())
    acting = executor()
    acting.run_once(None)
    cluster.write(6)
    assert _reasons(acting.run_once(None)) == ["conflicted"]
    service.store.save(due_advice(recommendation_id="r-2", desired_replicas=12))
    assert _reasons(acting.run_once(None)) == ["conflicted"]
    assert len(cluster.patches) == 1


def test_an_autoscaler_on_the_workload_is_not_fought(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """A HorizontalPodAutoscaler, KEDA's included, owns its workload; those of other workloads do not matter."""
    service.store.save(due_advice())
    cluster.autoscaled = True
    (held,) = executor().run_once(None)
    assert isinstance(held, Held)
    assert "HorizontalPodAutoscaler shop/keda-hpa-orders-consumer" in held.sentence
    assert cluster.patches == []


def test_a_scaledobject_claims_its_workload_even_without_an_autoscaler(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """A paused ScaledObject, whose HPA KEDA has removed, still owns its workload."""
    service.store.save(due_advice())
    cluster.keda = ["somebody-else", "orders-consumer"]
    (held,) = executor().run_once(None)
    assert isinstance(held, Held)
    assert "ScaledObject shop/orders-consumer" in held.sentence
    assert cluster.patches == []


def test_an_act_leaves_an_event_at_the_workload(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The Event has both counts, the advice, who acted, and the workload's uid, by which `kubectl` finds it."""
    service.store.save(due_advice())
    executor().run_once(None)
    (event,) = cluster.events
    assert event["message"] == "6 -> 8 replicas by lagcast's r-1"
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "orders-consumer",
        "namespace": "shop",
        "uid": "0b1e",
    }
    # Which program, and which process of it: in a cluster the host's name is that of the pod.
    assert (event["reportingComponent"], event["reportingInstance"]) == ("lagcast-executor", socket.gethostname())


def test_a_move_without_the_right_to_make_events_is_carried_out(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The executor scales and logs that no Event was made."""
    service.store.save(due_advice())
    cluster.mutes_events = True
    with capture_logs() as logs:
        assert _reasons(executor().run_once(None)) == ["Act"]
    assert [line["event"] for line in logs] == ["acted", "event_not_recorded"]


def test_the_count_after_a_patch_is_compared(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """When the cluster makes seven replicas of the requested eight, the workload is conflicted and left alone."""
    service.store.save(due_advice())
    cluster.caps_at = 7
    acting = executor()
    (held,) = acting.run_once(None)
    assert isinstance(held, Held)
    assert held.sentence.startswith("the cluster made 7 replicas of the 8 that were requested; ")
    acting.run_once(None)
    assert len(cluster.patches) == 1


def test_a_move_costs_one_read_and_one_patch(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Other scalers of the workload are looked up once for each namespace and look."""
    service.store.save(due_advice())
    executor().run_once([KEY] * 1)
    workload, autoscalers = WORKLOAD.format(kind="deployments"), AUTOSCALERS
    assert (cluster.reads[workload], cluster.reads[autoscalers], len(cluster.patches)) == (1, 1, 1)
    assert cluster.reads[f"{workload}/scale"] == 0
    executor().run_once([KEY] * 5)
    assert (cluster.reads[workload], cluster.reads[autoscalers]) == (6, 2)


def test_a_write_in_between_is_not_overwritten(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """When another writer sets ten between the reading and the patch, the cluster refuses the patch and ten stay."""
    service.store.save(due_advice())
    cluster.before_patch = lambda: cluster.write(10)
    assert _reasons(executor().run_once(None)) == ["conflicted"]
    assert cluster.replicas == 10


def test_an_error_of_one_group_leaves_the_others(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """A group with an unknown key fails, and the group after it is scaled."""
    service.store.save(due_advice())
    outcomes = executor().run_once([group_key("prod-eu", "gone"), KEY])
    assert _reasons(outcomes) == ["AdviceError", "Act"]
    assert "nothing was decided for group 'gone'" in str(outcomes[0])
    assert len(cluster.patches) == 1


def test_an_error_of_ours_in_one_group_leaves_the_others(
    service: Service,
    cluster: Cluster,
    executor: MakeExecutor,
    due_advice: MakeAdvice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group whose look fails in a way that nobody has thought of has an error as its outcome."""
    service.store.save(due_advice())
    acting = executor()
    advised = acting.advice.advice

    def poisoned(asked: Asked, **words: Any) -> Any:  # noqa: ANN401  # passed on
        if asked.group_id == "poisoned":
            raise ZeroDivisionError
        return advised(asked, **words)

    monkeypatch.setattr(acting.advice, "advice", poisoned)
    failed, act = acting.run_once([group_key("prod-eu", "poisoned"), KEY])
    assert isinstance(failed, OutsideError)
    assert str(failed) == "ZeroDivisionError: ; nothing was changed; the log has the whole of it"
    assert isinstance(act, Act)
    assert len(cluster.patches) == 1


def test_missing_rights_are_named(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """The error names the manifest with the rights to grant."""
    service.store.save(due_advice())
    cluster.forbidden = True
    (failed,) = executor().run_once(None)
    assert isinstance(failed, ScaleError)
    assert "apply deploy/manifests/executor/target-role.yaml" in str(failed)
    assert cluster.patches == []


def test_an_address_without_lagcast_is_an_error(cluster: Cluster) -> None:
    """Another server at the address, or none, is an AdviceError that names it."""
    with pytest.raises(AdviceError, match="answered 404"):
        AdviceClient(cluster.url).groups()
    with pytest.raises(AdviceError, match="does not answer"):
        AdviceClient("http://127.0.0.1:1").groups()


def test_a_missing_cluster_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a cluster, and with a kubeconfig that does not exist, the error names the option."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for kubeconfig in (None, tmp_path / "nowhere"):
        with pytest.raises(ScaleError, match="give --kubeconfig FILE"):
            connect(kubeconfig)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_the_process_prints_its_patch_and_logs_its_act(
    service: Service, cluster: Cluster, kubeconfig: Path, due_advice: MakeAdvice
) -> None:
    """A dry run prints the patch to stdout and logs a line for the group to stderr; mode apply carries it out."""
    service.store.save(due_advice())
    options = ("--api", service.url, "--all", "--once", "--kubeconfig", str(kubeconfig))
    dry = _run(*options, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["patch"]["spec"] == {"replicas": 8}
    assert json.loads(dry.stderr)["event"] == "would_act"
    assert cluster.patches == []
    real = _run(*options, "--mode", "apply")
    assert (real.returncode, real.stdout) == (0, "")
    line = json.loads(real.stderr)
    named = ("event", "executor", "recommendation_id", "replicas_before", "replicas_after")
    assert {key: line[key] for key in named} == {
        "event": "acted",
        "executor": socket.gethostname(),
        "recommendation_id": "r-1",
        "replicas_before": 6,
        "replicas_after": 8,
    }
    assert cluster.replicas == 8


def test_nothing_is_sent_without_a_leader(
    service: Service, cluster: Cluster, executor: MakeExecutor, due_advice: MakeAdvice
) -> None:
    """Due advice is held when no leader is known right before the patch, and carried out once one is."""
    service.store.save(due_advice())
    acting = executor()
    verdicts = [None, Held(reason="no_leader", sentence="the Lease has no holder")]
    acting.leaderless = lambda _: verdicts[-1]
    assert _reasons(acting.run_once(None)) == ["no_leader"]
    assert cluster.patches == []
    verdicts.pop()
    assert _reasons(acting.run_once(None)) == ["Act"]
    assert cluster.replicas == 8


@pytest.mark.slow
@pytest.mark.alone
def test_a_resident_executor_acts_on_time_and_ends_on_sigterm(
    service: Service, cluster: Cluster, kubeconfig: Path, due_advice: MakeAdvice, wall_clock: Callable[[], datetime]
) -> None:
    """A move due in ten seconds is made within its second, long before the next look, and SIGTERM ends it with 0."""
    execute_at = wall_clock() + timedelta(seconds=10)
    service.store.save(due_advice(execute_at=execute_at))
    acted_at: list[datetime] = []
    cluster.before_patch = lambda: acted_at.append(wall_clock())
    options = (
        "--api",
        service.url,
        "--all",
        "--mode",
        "apply",
        "--kubeconfig",
        str(kubeconfig),
        "--interval-seconds",
        "60",
    )
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert json.loads(process.stderr.readline())["reason"] == "not_due"
    for line in process.stderr:
        if json.loads(line)["event"] == "acted":
            break
    process.terminate()
    process.stderr.close()
    assert process.wait(timeout=10) == 0
    assert timedelta(0) <= acted_at[0] - execute_at < timedelta(seconds=1)


def test_exit_codes_distinguish_usage_and_availability(kubeconfig: Path) -> None:
    """The process exits 2 for wrong options, and 4 where no service answers."""
    unreachable = _run("--api", "http://127.0.0.1:1", "--all", "--once", "--kubeconfig", str(kubeconfig))
    assert (unreachable.returncode, unreachable.stdout) == (4, "")
    assert "lagcast serve" in unreachable.stderr
    assert _run("--api", "http://127.0.0.1:1", "--once").returncode == 2
    nameless = _run("--api", "http://127.0.0.1:1", "--all", "--once", "--lease", "lagcast")
    assert nameless.returncode == 2
    assert "--lease is 'lagcast'" in nameless.stderr
