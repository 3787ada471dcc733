"""How long nobody leads after a leader was killed, on a real Kubernetes control plane.

    python benchmarks/failover.py --leases 20 --kills 10          or: make bench-failover

So many Leases at once, each with one that leads and one that stands by, with the terms of `lagcast serve --lease`. The
leader is killed at a moment of its own: it takes no further step and lets nothing go. Counted is the time until the
other may publish; that the killed one would have believed in its lead until then is looked at, too. Exit code 1 where
two lead at once, or where it takes 20 s or more.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from recommender.adapters.kubernetes_client import Connection, connect
from recommender.adapters.kubernetes_lease import KubernetesLease
from recommender.leadership import Elector, LeaseFailedError, Terms
from tests.live.control_plane import ControlPlane, built_control_plane

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


def kill(api: Connection, name: str, kills: int) -> tuple[list[float], int]:
    """Seconds without a leader after each kill, and how often a second one began before the first had ended."""
    chance = random.Random(name)  # noqa: S311  # when, not a secret
    made = [0]

    def fresh() -> Elector:
        made[0] += 1
        lease = KubernetesLease(api, NAMESPACE, name, clock=lambda: datetime.now(UTC))  # noqa: TID251  # for people
        return Elector(lease, identity=f"process-{made[0]}", clock=time.monotonic)

    leader, took, twice = fresh(), [], 0
    goes_on([leader], until_leads=leader)
    for _ in range(kills):
        other = fresh()
        goes_on([leader, other], seconds=chance.uniform(4.0, 6.0))
        killed_at = time.monotonic()
        goes_on([other], until_leads=other)
        took.append(time.monotonic() - killed_at)
        twice += leader.term() is not None
        leader = other
    return took, twice


def goes_on(electors: list[Elector], *, until_leads: Elector | None = None, seconds: float = 60.0) -> None:
    """Each takes its steps as it is told to, until one leads or so much time has passed."""
    began = time.monotonic()
    due = dict.fromkeys(range(len(electors)), began)
    while time.monotonic() < began + seconds and (until_leads is None or until_leads.term() is None):
        number = min(due, key=lambda each: due[each])
        time.sleep(max(0.0, min(due[number], began + seconds) - time.monotonic()))
        try:
            wait_seconds = electors[number].step()
        except LeaseFailedError:
            wait_seconds = Terms().retry_seconds
        due[number] = time.monotonic() + wait_seconds


if __name__ == "__main__":
    sys.exit(main())
