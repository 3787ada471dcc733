"""The horizontal pod autoscaler on CPU utilisation, which is blind to lag: it sees only how busy the consumers are.

A replica that spends its whole capacity uses all of the CPU it requested.
"""

from dataclasses import dataclass, field
from math import ceil

from replay.plant import Observation
from replay.policies.hpa import Rules, is_near, reconcile


def wanted_for_cpu(busy_share: float, *, ready: int, unready: int, target_percent: int, replicas: int) -> int | None:
    """Replicas at which the mean utilisation would be the target; None where no pod is ready, which is an error.

    Pods that are not ready are left out, but where that would ask for more they count as idle; if then the direction
    turns, or more than are there would be asked for while less is used (or the other way), the count stays.

    >>> wanted_for_cpu(0.9, ready=4, unready=0, target_percent=50, replicas=4)     # 4 x 90/50 = 7.2
    8
    >>> wanted_for_cpu(0.9, ready=4, unready=4, target_percent=50, replicas=8)     # with four idle: 45 %, near enough
    8
    """
    if ready <= 0:
        return None
    ratio = int(100.0 * busy_share) / target_percent
    if not unready or ratio <= 1.0:
        return replicas if is_near(ratio) else ceil(ratio * ready)
    pods = ready + unready
    with_idle = int(100.0 * busy_share * ready / pods) / target_percent
    want = ceil(with_idle * pods)
    if is_near(with_idle) or with_idle < 1.0 or want < replicas:
        return replicas
    return want


@dataclass(slots=True, kw_only=True)
class HpaCpu:
    """HPA on the Resource metric CPU, target `target_percent` of the request, every 15 s.

    A pod counts as ready once a whole sample of 15 s lies after its start, as the controller demands of CPU samples.
    """

    target_percent: int
    rules: Rules
    _ready_before: int | None = field(default=None, init=False)

    def decide(self, seen: Observation) -> int:
        """One pass of the controller."""
        present = min(seen.ready_members, seen.replicas)
        ready = present if self._ready_before is None else min(present, self._ready_before)
        self._ready_before = present
        want = wanted_for_cpu(
            seen.busy_share,
            ready=ready,
            unready=seen.replicas - ready,
            target_percent=self.target_percent,
            replicas=seen.replicas,
        )
        return reconcile([want], rules=self.rules, replicas=seen.replicas, now_seconds=seen.time_seconds)
