"""The league: every policy in the same contest, and the table of costs with the days on which lagcast lost."""

from dataclasses import dataclass
from datetime import date, timedelta

from replay.contest import LAGCAST, Contest, Entry
from replay.hindsight import HINDSIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDay:
    """A day on which a rival would have been cheaper than lagcast."""

    day: date
    rival: str
    rival_cost: float
    lagcast_cost: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class League:
    """The entries of one contest, rivals first, then lagcast, hindsight last."""

    contest: Contest
    entries: tuple[Entry, ...]

    def entry(self, policy: str) -> Entry:
        """The entry of one policy.

        Errors: ValueError where the policy did not take part.
        """
        for entry in self.entries:
            if entry.policy == policy:
                return entry
        message = f"'{policy}' did not take part; {', '.join(entry.policy for entry in self.entries)} did"
        raise ValueError(message)

    @property
    def real(self) -> tuple[Entry, ...]:
        """Entries of the policies that did not know the future."""
        return tuple(entry for entry in self.entries if entry.policy != HINDSIGHT)

    def verdict(self, entry: Entry) -> str:
        """A word or two: the bound, the best of the policies without knowledge of the future, or the distance to it."""
        if entry.policy == HINDSIGHT:
            return "bound"
        best = min(self.real, key=lambda other: other.cost.total)
        if entry is best:
            return f"best of {len(self.real)}"
        return f"{entry.cost.total / best.cost.total - 1.0:+.1%}"

    @property
    def lost_days(self) -> tuple[LostDay, ...]:
        """Each judged day on which some rival's cost was lower than lagcast's, with the cheapest such rival."""
        ours = self.entry(LAGCAST)
        rivals = [entry for entry in self.real if entry.policy != LAGCAST]
        lost = []
        for index, cost in enumerate(ours.daily):
            best = min(rivals, key=lambda rival: rival.daily[index].total, default=ours)
            if best.daily[index].total < cost.total:
                day = (self.contest.trace.start_at + timedelta(days=index)).date()
                lost.append(
                    LostDay(
                        day=day,
                        rival=best.policy,
                        rival_cost=best.daily[index].total,
                        lagcast_cost=cost.total,
                    )
                )
        return tuple(lost)
