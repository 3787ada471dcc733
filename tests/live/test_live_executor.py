"""The executor on a real control plane: many moves that are due in the same second."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvicorn

from api.app import create_app
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.recommendation import Recommendation
from recommender.settings import load_settings
from tests.live.clients import fresh_name
from tests.live.control_plane import ControlPlane

pytestmark = pytest.mark.kubernetes

PROGRAM = "from executor.run import main; main()"
TARGETS = 200
# The promise: at most so long after its instant.
LIMIT = timedelta(seconds=5)
# Until then the executor has started and looked once, on a busy machine too.
SOON = timedelta(seconds=20)
# Its pods find no node: what is looked at is who changes the count.
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


def read_clock() -> datetime:
    """The real time, in which the executor lives."""
    return datetime.now(UTC)  # noqa: TID251  # see above


@contextmanager
def served(store: SqlDecisionStore, folder: Path, namespace: str) -> Iterator[str]:
    """The address of a real API over `store`, whose groups `group-N` may be acted on."""
    groups = {
        f"group-{number}": {"mode": "apply", "target": {"namespace": namespace, "name": f"group-{number}"}}
        for number in range(TARGETS)
    }
    config = folder / "lagcast.yaml"
    config.write_text(json.dumps({"groups": groups}))
    settings = load_settings(config, {"LAGCAST_STATE_DIR": str(folder)})
    app = create_app(store, clock=read_clock, version="0.1.0", settings=settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_two_hundred_moves_due_in_one_second_are_made_within_five(
    control_plane: ControlPlane, tmp_path: Path, advice: Callable[..., Recommendation]
) -> None:
    """None is made before its instant, each of them once, and the last of a hundred in time."""
    namespace = fresh_name("shop")
    control_plane.kubectl("create", "namespace", namespace)
    names = [f"group-{number}" for number in range(TARGETS)]
    control_plane.apply("".join(DEPLOYMENT.replace("NAMESPACE", namespace).replace("NAME", name) for name in names))
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
    with served(store, tmp_path, namespace) as url:
        words = ["--api", url, "--all", "--mode", "apply", "--kubeconfig", str(control_plane.kubeconfig)]
        command = [sys.executable, "-c", PROGRAM, *words, "--interval-seconds", "60"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                said = json.loads(line)
                assert said["event"] in ("acted", "held"), line
                if said["event"] == "acted":
                    acted.append(datetime.fromisoformat(said["timestamp"]))
                if len(acted) == TARGETS:
                    break
            process.terminate()
    store.close()
    late = sorted(instant - execute_at for instant in acted)
    assert late[0] >= timedelta(0)
    assert late[int(0.99 * TARGETS) - 1] <= LIMIT
    counts = control_plane.kubectl("-n", namespace, "get", "deployments", "-o", "jsonpath={.items[*].spec.replicas}")
    assert counts.split() == ["8"] * TARGETS
    control_plane.kubectl("delete", "namespace", namespace, "--wait=false")
