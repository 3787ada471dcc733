"""A namespace whose owner hands a workload over, and an executor that may act on it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from executor.advice import AdviceClient
from executor.carry_out import Executor
from executor.kubernetes_claims import KubernetesClaims
from executor.kubernetes_client import connect
from executor.kubernetes_records import KubernetesRecords
from executor.kubernetes_scale import KubernetesScales
from executor.plan import Bounds
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import read_clock


@dataclass(slots=True)
class Shop:
    """A namespace whose group `orders` runs in a workload of that name, with an API that serves its advice."""

    cluster: ControlPlane
    namespace: str
    kubeconfig: Path
    store: SqlDecisionStore
    served_by: AdviceClient
    advice: Callable[..., Recommendation]

    def advise(self, number: int, **changes: object) -> Recommendation:
        """Save advice that is due; from three replicas to eight unless `changes` has another count."""
        now = read_clock()
        given = self.advice(
            **{
                "recommendation_id": f"r-{number}",
                "issued_at": now - timedelta(seconds=10),
                "not_before": now - timedelta(seconds=8),
                "execute_at": now - timedelta(seconds=5),
                "latest_safe": now + timedelta(seconds=120),
                "valid_until": now + timedelta(seconds=290),
                "current_replicas": 3,
                "desired_replicas": 8,
            }
            | changes
        )
        self.store.save(given)
        return given

    def executor(self, *, clock: Callable[[], datetime] = read_clock) -> Executor:
        """A new executor that may act, with its own service account."""
        api = connect(self.kubeconfig)
        return Executor(
            advice=self.served_by,
            scales=KubernetesScales(api),
            owners=KubernetesClaims(api),
            records=KubernetesRecords(api),
            clock=clock,
            mode="apply",
            bounds=Bounds(),
            dry_run=False,
            show_patch=lambda _: None,
        )

    def kubectl(self, *words: str, given: str | None = None) -> str:
        """The output of a kubectl command of the namespace's owner."""
        return self.cluster.kubectl("-n", self.namespace, *words, given=given)

    def workload(self) -> tuple[int, int]:
        """Count and generation of the Deployment: each change of its spec is another generation."""
        found = json.loads(self.kubectl("get", "deployment", "orders", "-o", "json"))
        return found["spec"]["replicas"], found["metadata"]["generation"]

    def status(self) -> dict[str, Any]:
        """The status of the object."""
        status: dict[str, Any] = json.loads(self.kubectl("get", "cgs", "orders", "-o", "json")).get("status", {})
        return status
