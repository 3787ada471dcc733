"""Shards: recommenders that share the consumer groups, each of which is in exactly one. Pure."""

import re
from dataclasses import dataclass
from typing import Self
from zlib import crc32

_FORM = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)", re.ASCII)


def shard_of(cluster: str, group: str, *, count: int) -> int:
    """The shard of a group, from 1 to `count`: the same in every process, of every version and machine.

    >>> [shard_of("prod", group, count=3) for group in ("orders", "refunds", "audit", "mails")]
    [1, 3, 3, 2]
    """
    return crc32(f"{cluster}\0{group}".encode()) % count + 1


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `number` of `count`, counted from 1; the only one has every group."""

    number: int = 1
    count: int = 1

    @classmethod
    def of(cls, text: str) -> Self:
        """The shard that is written as K/N. Errors: ValueError, with a sentence.

        >>> Shard.of("2/3")
        Shard(number=2, count=3)
        """
        found = _FORM.fullmatch(text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 0 < number <= count:
            message = f"{text!r} is no shard; give K/N with 1 <= K <= N, such as 2/3 for the second of three"
            raise ValueError(message)
        return cls(number, count)

    def owns(self, cluster: str, group: str) -> bool:
        """True if the group is of this shard."""
        return shard_of(cluster, group, count=self.count) == self.number

    def named(self, name: str) -> str:
        """The name of something that each of several shards has.

        >>> Shard().named("lagcast-recommender"), Shard(2, 3).named("lagcast-recommender")
        ('lagcast-recommender', 'lagcast-recommender-2')
        """
        return name if self.count == 1 else f"{name}-{self.number}"
