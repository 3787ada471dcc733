"""Several recommenders as processes on one store and one Lease of a real cluster, and faults between them."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx2

from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from tests.live.harness.clients import fresh_name, wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import read_clock
from tests.live.harness.scalers import MANIFESTS

LEASE = "lagcast-recommender"
ACCOUNT = """---
apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME, namespace: NAMESPACE}
"""


def lease_namespace(cluster: ControlPlane) -> str:
    """A fresh namespace with the Lease, the roles around it and the accounts that have them, as in the manifests."""
    name = fresh_name("lagcast")
    cluster.kubectl("create", "namespace", name)
    lease = (MANIFESTS / "replicas" / "lease.yaml").read_text(encoding="utf-8")
    cluster.apply(re.sub(r"namespace: lagcast(-executor)?$", f"namespace: {name}", lease, flags=re.MULTILINE))
    for account in ("lagcast-recommender", "lagcast-executor"):
        cluster.apply(ACCOUNT.replace("NAMESPACE", name).replace("NAME", account))
    return name


def kubeconfig_of(cluster: ControlPlane, namespace: str, account: str) -> Path:
    """The kubeconfig of a service account there."""
    return cluster.kubeconfig_for(cluster.kubectl("-n", namespace, "create", "token", account).strip())


class Replica:
    """`lagcast serve --lease` as a process. The currency of its advice is its own name, which identifies its author."""

    def __init__(
        self,
        name: str,
        *words: str,
        folder: Path,
        features: Path,
        store_url: str,
        lease: str,
        kubeconfig: Path,
    ) -> None:
        self.name, self._log = name, folder / f"{name}.log"
        config = folder / "lagcast.yaml"
        group = {"capacity_messages_per_second_per_replica": 600}
        decision = {"cycle_seconds": 1, "freshness_limit_seconds": 7200}
        config.write_text(json.dumps({"decision": decision, "groups": {"*": group}}), encoding="utf-8")
        arguments = ["serve", "--features", str(features), "--config", str(config), "--port", "0"]
        arguments += ["--lease", lease, "--kubeconfig", str(kubeconfig), *words]
        environment = {
            **os.environ,
            "LAGCAST_STATE_DIR": str(folder / name),
            "LAGCAST_STORE_URL": store_url,
            "LAGCAST_DECISION__CURRENCY": name,
            "LAGCAST_DECISION__PRICE_PER_REPLICA_HOUR": "0.05",
        }
        with self._log.open("wb") as output:
            command = [sys.executable, "-m", "cli.main", *arguments]
            self.process = subprocess.Popen(command, stderr=output, env=environment)

    @property
    def logged(self) -> str:
        """All that it has logged."""
        return self._log.read_text(encoding="utf-8")

    def get(self, path: str) -> httpx2.Response:
        """The answer of its REST service."""
        found = re.search(r"http://\S+", self.logged)
        assert found is not None
        return httpx2.get(f"{found[0]}/{path}", timeout=10)

    def is_up(self) -> bool:
        """True if it serves, and has decided or stands by."""
        assert self.process.poll() is None, self.logged
        return "Ctrl-C stops" in self.logged and ('"leading"' in self.logged or '"standing_by"' in self.logged)

    def times_leading(self) -> int:
        """The count of terms that it has begun."""
        return self.logged.count('"leading"')

    def send(self, number: signal.Signals) -> datetime:
        """Send a signal; when that was."""
        self.process.send_signal(number)
        return read_clock()


@contextmanager
def ended(replicas: list[Replica]) -> Iterator[list[Replica]]:
    """Those that a test has started, frozen ones too, are ended after the block."""
    try:
        yield replicas
    finally:
        for replica in replicas:
            replica.process.kill()
        for replica in replicas:
            replica.process.wait()


def advice_since(store: SqlDecisionStore, *, since: datetime) -> list[Recommendation]:
    """The advice on the one group from then on, oldest first."""
    kept = store.history("c", "orders", since, read_clock() + timedelta(minutes=1))
    return [each for each in kept if isinstance(each, Recommendation)]


def first_advice_of(store: SqlDecisionStore, replica: Replica, *, since: datetime, seconds: float) -> datetime:
    """The instant of the replica's first advice after `since`; fails where there is none in time."""
    wait_until(lambda: any(each.currency == replica.name for each in advice_since(store, since=since)), seconds=seconds)
    return next(each.issued_at for each in advice_since(store, since=since) if each.currency == replica.name)


class Link:
    """A TCP proxy before a server of this machine. Bytes sent while it is cut arrive when it is mended.

    Once it is closed, connections through it are gone, and new ones are refused.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> datetime:
        """Nothing comes through from now on, and neither side is informed."""
        self._open.clear()
        return read_clock()

    def mend(self) -> None:
        """Everything comes through again."""
        self._open.set()

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._open.set()
        self._listener.close()

    def kubeconfig(self, direct: Path) -> Path:
        """The same account by way of this proxy."""
        document = json.loads(direct.read_text(encoding="utf-8"))
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path = direct.with_suffix(".linked")
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        try:
            while not self._ended.is_set():
                for ready in select.select([near, far], [], [], 0.5)[0]:
                    data = ready.recv(65536)
                    self._open.wait()
                    if not data:
                        return
                    other[ready].sendall(data)
        except OSError:
            return
        finally:
            near.close()
            far.close()
