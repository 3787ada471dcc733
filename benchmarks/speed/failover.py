"""Measures the time without a leader after a leader was killed, on a real Kubernetes control plane.

    python -m benchmarks.speed.failover --leases 20 --kills 10          or: make bench-failover

So many Leases at once, each with one leader and one standby, with the terms of `lagcast serve --lease`. The leader is
killed at a random moment: it takes no further step and does not release the Lease. The time until the standby may
publish is measured; it is also checked whether the killed one would still count itself as leader then. Exit code 1
where two lead at once, or where it takes 20 s or more.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recommender.adapters.kubernetes_client import Connection, connect
from recommender.adapters.kubernetes_lease import KubernetesLease
from recommender.cluster.leadership import Elector, LeaseFailedError, LeaseTerms
from tests.live.harness.control_plane import ControlPlane, built_control_plane

NAMESPACE = "default"
LIMIT_SECONDS = 20.0
LEASE = """---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: NAME, namespace: default}
"""


def main() -> int:
    """Start a control plane, kill leaders, and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leases", type=int, default=20, help="leases that are held at the same time")
    parser.add_argument("--kills", type=int, default=10, help="leaders killed of each")
    arguments = parser.parse_args()
    names = [f"lease-{number}" for number in range(arguments.leases)]
    with tempfile.TemporaryDirectory() as folder:
        cluster = ControlPlane(built_control_plane(), Path(folder))
        try:
            cluster.start()
            cluster.apply("".join(LEASE.replace("NAME", name) for name in names))
            api = connect(cluster.kubeconfig)
            with ThreadPoolExecutor(len(names)) as threads:
                measured = list(threads.map(lambda name: kill(api, name, arguments.kills), names))
        finally:
            cluster.stop()
    took = sorted(seconds for each, _ in measured for seconds in each)
    twice = sum(each for _, each in measured)
    shown = (took[0], statistics.median(took), took[int(0.99 * len(took)) - 1], took[-1])
    print("| kills | least, s | median, s | p99, s | most, s | two at once |")
    print("|---|---|---|---|---|---|")
    print(f"| {len(took)} | " + " | ".join(f"{seconds:.1f}" for seconds in shown) + f" | {twice} |")
    return 0 if took[-1] < LIMIT_SECONDS and not twice else 1


@dataclass
class Process:
    """A process that takes its steps when they are due, until it is killed."""

    elector: Elector
    due: float


def kill(api: Connection, name: str, kills: int) -> tuple[list[float], int]:
    """Seconds without a leader after each kill, and the number of kills after which two led at once."""
    chance = random.Random(name)  # noqa: S311  # when, not a secret
    took: list[float] = []
    twice = 0

    def fresh() -> Process:
        lease = KubernetesLease(api, NAMESPACE, name, clock=lambda: datetime.now(UTC))  # noqa: TID251  # for people
        elector = Elector(lease, identity=uuid.uuid4().hex, clock=time.monotonic)
        return Process(elector, time.monotonic() + chance.uniform(0.0, LeaseTerms().retry_seconds))

    leader = fresh()
    go_on([leader], until_leads=leader)
    for _ in range(kills):
        other = fresh()
        go_on([leader, other], seconds=chance.uniform(4.0, 8.0))
        killed_at = time.monotonic()
        go_on([other], until_leads=other)
        took.append(time.monotonic() - killed_at)
        twice += leader.elector.term() is not None
        leader = other
    return took, twice


def go_on(processes: list[Process], *, until_leads: Process | None = None, seconds: float = 60.0) -> None:
    """Let each take the steps that are due, until one leads or so many seconds have passed."""
    until = time.monotonic() + seconds
    while until_leads is None or until_leads.elector.term() is None:
        following = min(processes, key=lambda each: each.due)
        time.sleep(max(0.0, min(following.due, until) - time.monotonic()))
        if following.due >= until:
            return
        try:
            wait_seconds = following.elector.step()
        except LeaseFailedError:
            wait_seconds = LeaseTerms().retry_seconds
        following.due = time.monotonic() + wait_seconds


if __name__ == "__main__":
    sys.exit(main())
