"""The executor between a real API and a real cluster, as the live tests run it."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvicorn

from api.app import create_app
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.configuring.settings import load_settings
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.scalers import MANIFESTS


def read_clock() -> datetime:
    """The real time, in which the executor lives."""
    return datetime.now(UTC)  # noqa: TID251  # see above


@contextmanager
def served(store: SqlDecisionStore, folder: Path, groups: Mapping[str, object]) -> Iterator[str]:
    """The address of a real API over `store`; `groups` are the settings of groups."""
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


def executor_in(cluster: ControlPlane, namespace: str) -> Path:
    """The kubeconfig of the executor's own service account, which has its role in `namespace`, and no more."""
    cluster.kubectl("apply", "-k", str(MANIFESTS / "executor"))
    cluster.kubectl("-n", namespace, "apply", "-f", str(MANIFESTS / "executor" / "target-role.yaml"))
    kubeconfig = cluster.kubeconfig_for(
        cluster.kubectl("-n", "lagcast-executor", "create", "token", "lagcast-executor").strip()
    )
    wait_until(lambda: cluster.may(kubeconfig, namespace, "patch", "deployments.apps", "--subresource=scale"))
    return kubeconfig
