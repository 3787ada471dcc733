"""The horizontal pod autoscaler on CPU utilisation, which ignores lag: it sees only how busy the consumers are.

A replica that spends its whole capacity uses all of the CPU it requested.
"""

from dataclasses import dataclass, field
from math import ceil

from replay.plant import Observation
from replay.policies.hpa import Rules, is_near, reconcile


def wanted_for_cpu(
    busy_share: float, *, ready: int, unready: int, missing: int = 0, target_percent: int, replicas: int
) -> int | None:
    """Replicas at which the mean utilisation would be the target; None where no pod is ready, which is an error.

    Pods that are not ready are left out, but where more would be requested they count as idle. Pods without a sample
    count as idle where more would be requested, and as using all of their request (or the target, if that is more)
    where less would. If then the direction turns, or more than the present count would be requested while less is used
    (or the other way), the count stays.

    >>> wanted_for_cpu(0.9, ready=4, unready=0, target_percent=50, replicas=4)     # 4 x 90/50 = 7.2
    8
    >>> wanted_for_cpu(0.9, ready=4, unready=4, target_percent=50, replicas=8)     # with four idle: 45 %, near enough
    8
    >>> wanted_for_cpu(0.2, ready=4, unready=0, missing=4, target_percent=80, replicas=8)     # 60 % of eight: 60/80 x 8
    6
    """
    if ready <= 0:
        return None
    ratio = _percent(busy_share) / target_percent
    idle = unready if ratio > 1.0 else 0
    if not idle and not missing:
        return replicas if is_near(ratio) else ceil(ratio * ready)
    unseen = missing if ratio != 1.0 else 0
    unseen_share = max(1.0, target_percent / 100) if ratio < 1.0 else 0.0
    pods = ready + unseen + idle
    with_all = _percent((busy_share * ready + unseen_share * unseen) / pods) / target_percent
    want = ceil(with_all * pods)
    turned = (ratio - 1.0) * (with_all - 1.0) < 0.0 or (want - replicas) * (with_all - 1.0) < 0.0
    return replicas if is_near(with_all) or turned else want


def _percent(share: float) -> int:
    """Whole percent, as the controller divides whole millicores: 0.29 is 29, though 100 x 0.29 is 28.999999999999996.

    >>> _percent(0.29), _percent(0.2999)
    (29, 29)
    """
    return int(100.0 * share + 1e-9)


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
        return reconcile([self.want(seen)], rules=self.rules, replicas=seen.replicas, now_seconds=seen.time_seconds)

    def want(self, seen: Observation) -> int | None:
        """The count by the metric now; None where no pod is ready."""
        present = min(seen.ready_members, seen.replicas)
        ready = present if self._ready_before is None else min(present, self._ready_before)
        self._ready_before = present
        return wanted_for_cpu(
            seen.busy_share,
            ready=ready,
            unready=seen.replicas - ready,
            target_percent=self.target_percent,
            replicas=seen.replicas,
        )
