"""The assignment of partitions, and the share of them that changes owner when the members do."""

from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from cost_model.physics.profile import Assignor
from forecasting.units import FloatArray, IntArray


def owners(partitions: int, members: int, assignor: Assignor) -> IntArray:
    """The rank of the member that each partition of one topic goes to, members ranked by their ids.

    Range assigns contiguous runs, the first of them one longer where it does not divide; round robin assigns in turn. A
    sticky assignment starts like round robin; its present state depends on the group's past.

    >>> owners(7, 3, "range").tolist(), owners(7, 3, "roundrobin").tolist()
    ([0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2, 0])
    """
    partition = np.arange(partitions)
    if assignor != "range":
        return partition % members
    share, longer = divmod(partitions, members)
    edge = longer * (share + 1)
    return np.where(partition < edge, partition // (share + 1), longer + (partition - edge) // max(share, 1))


@lru_cache(maxsize=65_536)
def moved_fraction(partitions: int, before: int, after: int, assignor: Assignor) -> float:
    """Expected share of a topic's partitions that have another owner after a change of members with random ids.

    Sticky moves the least that an even assignment needs. Under range and round robin a new id pushes the ranks behind
    it along; the expectation over its place is exact. Counts are of members that hold partitions: 1 to `partitions`.

    >>> [round(moved_fraction(40, 4, 5, assignor), 2) for assignor in ("sticky", "range", "roundrobin")]
    [0.2, 0.4, 0.8]
    """
    if before == after:
        return 0.0
    if assignor == "sticky":
        return _sticky(partitions, before, after)
    fewer, more = sorted((before, after))
    return 1.0 - float(_rank_becomes(owners(partitions, fewer, assignor), owners(partitions, more, assignor)).mean())


def _sticky(partitions: int, before: int, after: int) -> float:
    """Share of the leavers' partitions, or of the joiners', who get a larger share only after all members that stay.

    40 partitions, 10 to 11 members: the joiner gets 3, because seven of the ten keep 4.
    """
    if after < before:
        return (before - after) / before
    share, larger = divmod(partitions, after)
    return ((after - before) * share + max(0, larger - before)) / partitions


def _rank_becomes(rank_of_few: IntArray, rank_of_many: IntArray) -> FloatArray:
    """Chance that the member of one rank among few has the other rank among many, joiners' ids falling anywhere.

    Formula: C(j, i) * C(M - 1 - j, F - 1 - i) / C(M, F): i of the F members lie before rank j, the others behind it.
    """
    few, many = int(rank_of_few.max()) + 1, int(rank_of_many.max()) + 1
    ahead, behind = rank_of_many - rank_of_few, (many - 1 - rank_of_many) - (few - 1 - rank_of_few)
    possible = (ahead >= 0) & (behind >= 0)
    i, j = rank_of_few[possible], rank_of_many[possible]
    chance = np.zeros(rank_of_few.size)
    chance[possible] = np.exp(_log_choose(j, i) + _log_choose(many - 1 - j, few - 1 - i) - _log_choose(many, few))
    return chance


def _log_choose(of: IntArray | int, chosen: IntArray | int) -> FloatArray:
    logs: FloatArray = gammaln(np.add(of, 1)) - gammaln(np.add(chosen, 1)) - gammaln(np.subtract(of, chosen) + 1)
    return logs
