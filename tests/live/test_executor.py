"""The executor on a real control plane: many moves that are due in the same second."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_lease import KubernetesLease
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.cluster.leadership import Elector, LeaseFailedError
from recommender.deciding.recommendation import Recommendation
from tests.api.access_files import Authority, token_file
from tests.feature_folder import steady_hour
from tests.live.harness.clients import fresh_name, wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import executor_in, read_clock, served
from tests.live.harness.replicas import LEASE, kubeconfig_of, lease_namespace
from tests.live.harness.scalers import orders_in, scaler
from tests.live.harness.serving import serving_objects

pytestmark = pytest.mark.kubernetes

PROGRAM = "from executor.run import main; main()"
TARGETS = 200
# The promise: at most so long after its instant.
LIMIT = timedelta(seconds=5)
# Until then the executor has started and looked once, on a busy machine too.
SOON = timedelta(seconds=30)
# Its pods find no node: the test only checks who changes the count.
DEPLOYMENT = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {nodeSelector: {nowhere: "yes"}, containers: [{name: consumer, image: "none:1"}]}
"""


def test_advice_is_carried_out_over_tls_with_a_token_and_nothing_is_without(
    installed: ControlPlane, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    """Six replicas carry what twelve do. Who has no token, or another authority, moves nothing and says why."""
    orders_in(installed, namespace, replicas=12)
    owned: dict[str, Any] = {"mode": "Apply", "target": {"name": "orders"}, "maxReplicas": 12}
    installed.apply(json.dumps(scaler(namespace, **owned, group={"capacityMessagesPerSecondPerReplica": 1000})))
    table = steady_hour(tmp_path / "features", ["orders"], end_at=read_clock())
    ours, other = (Authority(tmp_path / name) for name in ("ours", "other"))
    certificate, key = ours.sign("lagcast")
    token, wrong = (token_file(tmp_path / name, name * 8) for name in ("reader", "stranger"))
    over_tls = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--token-file", str(token)]
    acting = str(executor_in(installed, namespace))

    def act(url: str, authority: Authority, *words: str) -> str:
        command = [sys.executable, "-c", PROGRAM, "--api", url, "--all", "--once", "--mode", "apply"]
        command += ["--kubeconfig", acting, "--advice-ca-file", str(authority.certificate), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    def replicas() -> str:
        return installed.kubectl("-n", namespace, "get", "deployment", "orders", "-o", "jsonpath={.spec.replicas}")

    with serving_objects(namespace, kubeconfig=kubeconfig, table=table, folder=tmp_path, options=over_tls) as url:
        assert url.startswith("https://")
        with_token = ("--advice-token-file", str(token))
        for authority, words, said in (
            (ours, (), "--advice-token-file"),
            (ours, ("--advice-token-file", str(wrong)), "--advice-token-file"),
            (other, with_token, "certificate"),
        ):
            assert said in act(url, authority, *words)
            assert replicas() == "12"
        wait_until(lambda: act(url, ours, *with_token) and replicas() != "12")
    assert int(replicas()) < 12


@pytest.mark.alone
def test_two_hundred_moves_due_in_one_second_are_made_within_five(
    installed: ControlPlane, tmp_path: Path, advice: Callable[..., Recommendation]
) -> None:
    """None is made before its instant, each of them once, and the last of a hundred in time; all are recorded."""
    namespace = fresh_name("shop")
    installed.kubectl("create", "namespace", namespace)
    names = [f"group-{number}" for number in range(TARGETS)]
    installed.apply("".join(DEPLOYMENT.replace("NAMESPACE", namespace).replace("NAME", name) for name in names))
    spec = {"cluster": "prod-eu", "mode": "Apply", "maxReplicas": 24, "scaleToZero": {"enabled": True}}
    handed_over = [scaler(namespace, name, target={"name": name}, **spec) for name in names]
    installed.apply("\n---\n".join(map(json.dumps, handed_over)))
    # While a controller still records that it has seen a Deployment, every patch of it is refused.
    seen = ("-n", namespace, "get", "deployments", "-o", "jsonpath={.items[*].status.observedGeneration}")
    wait_until(lambda: len(installed.kubectl(*seen).split()) == TARGETS)
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    now = read_clock()
    execute_at = now + SOON
    for number, name in enumerate(names):
        given = advice(
            recommendation_id=f"r-{number}",
            group=name,
            issued_at=now,
            not_before=now,
            execute_at=execute_at,
            latest_safe=execute_at + timedelta(minutes=2),
            valid_until=execute_at + timedelta(minutes=5),
            current_replicas=0,
            desired_replicas=8,
        )
        store.save(given)
    acted: list[datetime] = []
    groups = {
        name: {"mode": "apply", "target": {"namespace": namespace, "name": name}, "scale_to_zero": {"enabled": True}}
        for name in names
    }
    with served(store, tmp_path, groups) as url:
        words = ["--api", url, "--all", "--mode", "apply", "--kubeconfig", str(installed.kubeconfig)]
        command = [sys.executable, "-c", PROGRAM, *words, "--interval-seconds", "60"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                entry = json.loads(line)
                assert entry["event"] in ("acted", "held"), line
                if entry["event"] == "acted":
                    acted.append(datetime.fromisoformat(entry["timestamp"]))
                if len(acted) == TARGETS:
                    break
            process.terminate()
            # Before it ends it records all that it made, and logs what it cannot record.
            said_last = process.stderr.read()
    store.close()
    late = sorted(instant - execute_at for instant in acted)
    assert late[0] >= timedelta(0)
    assert late[int(0.99 * TARGETS) - 1] <= LIMIT
    counts = installed.kubectl("-n", namespace, "get", "deployments", "-o", "jsonpath={.items[*].spec.replicas}")
    assert counts.split() == ["8"] * TARGETS
    noted = installed.kubectl("-n", namespace, "get", "cgs", "-o", "jsonpath={.items[*].status.lastApplied.replicas}")
    assert noted.split() == ["8"] * TARGETS, said_last
    installed.kubectl("delete", "namespace", namespace, "--wait=false")


def test_nothing_is_moved_while_no_recommender_is_seen_to_renew_the_lease(
    installed: ControlPlane, tmp_path: Path, advice: Callable[..., Recommendation]
) -> None:
    """After a dead holder, a live one and none again, there is a patch only while the live one renews."""
    namespace = lease_namespace(installed)
    deployment = DEPLOYMENT.replace("replicas: 0", "replicas: 6")
    installed.apply(deployment.replace("NAMESPACE", namespace).replace("NAME", "group-0"))
    spec = {"cluster": "prod-eu", "mode": "Apply", "maxReplicas": 24, "target": {"name": "group-0"}}
    installed.apply(json.dumps(scaler(namespace, "group-0", **spec)))
    leases = KubernetesLease(
        connect(kubeconfig_of(installed, namespace, "lagcast-recommender")), namespace, LEASE, clock=read_clock
    )
    wait_until(lambda: reads(leases))
    leases.write(leases.read(), holder="dead", lease_seconds=15.0)
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    alive = threading.Event()

    def advise(replicas: int, *, seen: int) -> None:
        now = read_clock()
        instants = {"issued_at": now, "not_before": now, "execute_at": now}
        until = {"latest_safe": now + timedelta(minutes=5), "valid_until": now + timedelta(minutes=5)}
        counts = {"current_replicas": seen, "desired_replicas": replicas}
        store.save(advice(recommendation_id=f"r-{replicas}", group="group-0", **instants, **until, **counts))

    def live() -> None:
        elector = Elector(leases, identity="alive", clock=time.monotonic)
        while alive.is_set():
            with suppress(LeaseFailedError):  # an unanswered request is repeated, as a recommender does
                time.sleep(min(elector.step(), 1.0))

    def count() -> str:
        path = "jsonpath={.spec.replicas}"
        return installed.kubectl("-n", namespace, "get", "deployment", "group-0", "-o", path)

    advise(8, seen=6)
    groups = {"group-0": {"mode": "apply", "target": {"namespace": namespace, "name": "group-0"}}}
    with served(store, tmp_path, groups) as url:
        words = ["--api", url, "--all", "--mode", "apply", "--kubeconfig", str(installed.kubeconfig)]
        words += ["--interval-seconds", "1", "--lease", f"{namespace}/{LEASE}"]
        with subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            lines = (json.loads(line) for line in process.stderr)
            before = [next(lines) for _ in range(3)]
            assert [line["reason"] for line in before] == ["no_leader"] * 3
            assert "was not seen to be renewed for 1" in before[0]["sentence"]
            assert count() == "6"
            alive.set()
            renewing = threading.Thread(target=live)
            renewing.start()
            after = next(line for line in lines if line.get("reason") != "no_leader")
            assert (after["event"], after["replicas_after"]) == ("acted", 8)
            alive.clear()
            renewing.join()
            # Longer than a lease: it was renewed last before now.
            time.sleep(15)
            advise(9, seen=8)
            dead = [next(line for line in lines if line["recommendation_id"] == "r-9") for _ in range(3)]
            assert [line["reason"] for line in dead] == ["no_leader"] * 3
            process.terminate()
    store.close()
    assert count() == "8"


def reads(leases: KubernetesLease) -> bool:
    """True if the role that was made a moment ago holds."""
    try:
        leases.read()
    except LeaseFailedError:
        return False
    return True
