"""The present produce rate, from end offsets."""

from collections import deque
from dataclasses import dataclass, field

RATE_SECONDS = 60


@dataclass(slots=True, kw_only=True)
class ProduceRate:
    """The mean rate over the last minute, or since the first observation."""

    _ends: deque[tuple[int, int]] = field(default_factory=deque, init=False)

    def after(self, now_seconds: int, end_offsets_sum: int) -> float | None:
        """Messages per second; None at the first observation, which shows no difference yet.

        >>> rate = ProduceRate()
        >>> rate.after(0, 1_000), rate.after(15, 2_500), rate.after(75, 14_500)
        (None, 100.0, 200.0)
        """
        ends = self._ends
        ends.append((now_seconds, end_offsets_sum))
        while ends[0][0] < now_seconds - RATE_SECONDS:
            ends.popleft()
        began, begin_sum = ends[0]
        return None if now_seconds == began else (end_offsets_sum - begin_sum) / (now_seconds - began)
