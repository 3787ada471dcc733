"""Autoscalers on a real Kafka and a real Kubernetes control plane: the same compressed load, one after the other.

    make lab-kubernetes OUT=FILE MINUTES=4
    python -m benchmarks.lab.kubernetes --page FILE > docs/lab-kubernetes.md

As `make lab`, but with the real HPA controller, a real KEDA, and lagcast's own processes: each of them scales a
Deployment, whose pods kwok simulates, and a real consumer runs for each pod that is ready. Exit code 1 where a message
was lost.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.lab.autoscalers import AUTOSCALERS, LOOK_SECONDS
from benchmarks.lab.kubernetes_page import page, table_of
from benchmarks.lab.pods import Look, Pods
from benchmarks.lab.policies import LAB_POLICIES, Setting, setting_of
from benchmarks.lab.stage import LabTopic, PolicyResult, play_policy
from benchmarks.rebalances.expected import PROTOCOLS
from tests.live.harness.control_plane import ControlPlane, built_control_plane

Document = dict[str, Any]

# At least two rows of lagcast; at most half a day of the load, which repeats after that.
LEAST_MINUTES, MOST_MINUTES = 0.5, 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult:
    """The figures of a policy, and the counts of its Deployment over time."""

    result: PolicyResult
    looks: tuple[Look, ...]


def main() -> int:
    """Run the policies and write their figures, or print the page of a run; 1 where a message was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=4.0, help="how long the load of each policy is (default 4)")
    parser.add_argument("--protocol", choices=tuple(PROTOCOLS), default="cooperative", help="of the group")
    parser.add_argument("--policies", nargs="+", choices=tuple(AUTOSCALERS), default=tuple(AUTOSCALERS), help="which")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the figures go, as JSON")
    parser.add_argument(
        "--page", type=Path, nargs="+", metavar="FILE", help="print the page of such figures, and run nothing"
    )
    arguments = parser.parse_args()
    if arguments.page is not None:
        try:
            text = page([json.loads(file.read_text(encoding="utf-8")) for file in arguments.page])
        except (OSError, ValueError, LookupError, TypeError) as error:
            named = " ".join(map(str, arguments.page))
            parser.error(f"--page {named}: no figures of one comparison ({error}); make them with --out FILE")
        print(text, end="")
        return 0
    if not LEAST_MINUTES <= arguments.minutes <= MOST_MINUTES:
        bounds = f"from {LEAST_MINUTES:g} to {MOST_MINUTES:g}"
        parser.error(f"--minutes {arguments.minutes:g}: give {bounds}")
    setting = setting_of(arguments.protocol, seconds=round(60 * arguments.minutes))
    played: list[ClusterResult] = []
    for each in play(setting, arguments.policies):
        played.append(each)
        document = document_of(played, setting)
        # Written after each policy, so that an error in the last one does not lose half an hour.
        if arguments.out is not None:
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(table_of(document))
    return 1 if any(each.result.account.lost_messages for each in played) else 0


def play(setting: Setting, policies: Sequence[str]) -> Iterator[ClusterResult]:
    """Each policy on a broker and a control plane of its own, one after the other."""
    binary = built_control_plane()
    for policy in policies:
        with tempfile.TemporaryDirectory() as name:
            played = play_one(policy, setting, Path(name), binary)
        print(f"{policy}: {played.result.account}", file=sys.stderr, flush=True)
        yield played


def play_one(policy: str, setting: Setting, folder: Path, binary: Path) -> ClusterResult:
    """One policy from an empty topic and an empty cluster to the last message."""
    groups: list[Pods] = []
    replicas = LAB_POLICIES["fixed"].replicas(setting) if policy == "fixed" else setting.first_replicas

    def scaled(stage: LabTopic, ends: ExitStack) -> Pods:
        look = f"--horizontal-pod-autoscaler-sync-period={round(1e3 * LOOK_SECONDS)}ms"
        cluster = ControlPlane(binary, folder / "cluster", controller_flags=[look])
        ends.callback(cluster.stop)
        cluster.start()
        groups.append(Pods(stage, ends, cluster=cluster, replicas=replicas, autoscaler=AUTOSCALERS[policy]))
        return groups[0]

    result = play_policy(policy, setting, folder, scaled)
    return ClusterResult(result=result, looks=tuple(groups[0].looks))


def document_of(played: Sequence[ClusterResult], setting: Setting) -> Document:
    """All figures, with the machine and the load of the measurement."""
    return {
        "seconds": setting.trace.duration_seconds,
        "protocol": setting.world.protocol,
        "processors": os.cpu_count(),
        "load": os.getloadavg()[2],
        "policies": [
            {
                "policy": each.result.policy,
                "moves": each.result.moves,
                "rebalances": len(each.result.interruptions),
                **asdict(each.result.account),
                "replicas": [
                    [round(look.at - each.result.began_at, 1), look.replicas, len(look.ready)] for look in each.looks
                ],
            }
            for each in played
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
