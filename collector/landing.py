"""Messages into sample files, each exactly once: the files, and beside them the next offset of each partition.

    OUT/date=2026-05-04/*.parquet          the samples, as `lagcast collect --out` writes them
    OUT/.landed/KAFKA/TOPIC.json           the next offset of each partition; KAFKA is the cluster's own id
    OUT/.landed/KAFKA/TOPIC-0-17.parked    a message that could not be read, unchanged; the newest of them

Files first, then the offsets, both by rename. After a kill between the two, the same messages are landed again under
the same names: a file's name is derived from its contents.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import structlog

from collector.batches import UnknownVersionError, table_of
from collector.errors import AdapterError, MalformedError
from collector.locks import locked
from collector.sample import CLOCK_TOLERANCE
from collector.sinks import sync_folder, write_table

_NEXT_OFFSETS = "lagcast_next_offsets"
# A producer of other things would otherwise fill the disk; the topic has the older ones for as long as it keeps them.
MOST_PARKED_FILES, MOST_PARKED_BYTES = 1000, 100_000_000
# And the log. A clock that is set back does not silence it.
_REPORT_EVERY = timedelta(minutes=1)

_log = structlog.get_logger(__name__)


class LandingError(ValueError):
    """Messages cannot be landed in the folder; one sentence names the fault, the place and the remedy."""


class Arrived(NamedTuple):
    """A message, with its place in the topic."""

    partition: int
    offset: int
    headers: Mapping[str, str]
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """The result: messages landed, messages set aside, offsets that Kafka had removed before they were read."""

    messages: int = 0
    parked: int = 0
    expired: int = 0


class Landing:
    """Lands the samples of one topic of one Kafka, in one process at a time; `next_offsets` is where to resume.

    Errors: LandingError if the file of offsets cannot be read.
    """

    def __init__(self, out: Path, *, kafka: str, topic: str, clock: Callable[[], datetime]) -> None:
        self._out = out
        self._topic = topic
        self._clock = clock
        self._reported_ahead: set[str] = set()
        self._unreported = 0
        self._last_parked: dict[str, str] = {}
        self._reported_at: datetime | None = None
        self._path = _offsets_path(out, kafka=kafka, topic=topic)
        self.next_offsets: dict[int, int] = _read(self._path)
        self.done = Landed()

    def land(self, messages: Sequence[Arrived]) -> None:
        """Write the samples, then the next offsets. A message that cannot be read is set aside and counted.

        Those set aside are reported once a minute, in one line, also by a call without messages.

        Errors: UnknownVersionError; the messages before it are landed, and the next call has to begin with it.
        """
        folders: set[Path] = set()
        following = dict(self.next_offsets)
        counts = {"messages": 0, "parked": 0, "expired": 0}
        refused: UnknownVersionError | None = None
        for message in messages:
            try:
                table = table_of(message.value, message.headers)
            except UnknownVersionError as error:
                refused = UnknownVersionError(
                    f"{self._where(message)}: {error}; install a newer lagcast here and start `lagcast land` again: it "
                    "goes on with this message"
                )
                break
            except MalformedError as error:
                folders.add(self._park(message, error))
                counts["parked"] += 1
            except Exception as error:  # noqa: BLE001  # one message must not stop all that come after it
                folders.add(self._park(message, MalformedError(f"{type(error).__name__}: {error}")))
                counts["parked"] += 1
            else:
                folders.update(path.parent for path in write_table(table, self._out))
                self._look_at_clock(table)
                counts["messages"] += 1
            counts["expired"] += self._expired(message, following.get(message.partition))
            following[message.partition] = message.offset + 1
        if counts["parked"]:
            self._forget_oldest()
        for folder in folders:
            sync_folder(folder)
        if following != self.next_offsets:
            _write(self._path, following)
        self.next_offsets = following
        self.done = Landed(**{name: getattr(self.done, name) + count for name, count in counts.items()})
        self._report()
        if refused is not None:
            raise refused

    def _look_at_clock(self, table: pa.Table) -> None:
        """Log once per cluster that its collector's clock is ahead of ours: rows are used only once they are past."""
        newest = pc.max(table["sampled_at"]).as_py()
        ahead = newest - self._clock()
        for cluster in set(table["cluster"].to_pylist()) - self._reported_ahead:
            if ahead > CLOCK_TOLERANCE:
                self._reported_ahead.add(cluster)
                next_step = "set the clocks of both machines by NTP; until then advice is late by as much"
                seconds = round(ahead.total_seconds())
                _log.warning("clock_ahead", cluster=cluster, ahead_seconds=seconds, next_step=next_step)

    def _where(self, message: Arrived) -> str:
        return f"message {message.offset} in partition {message.partition} of topic {self._topic!r}"

    def _park(self, message: Arrived, error: AdapterError) -> Path:
        path = self._path.with_name(f"{self._path.stem}-{message.partition}-{message.offset}.parked")
        _replace(path, message.value)
        self._unreported += 1
        self._last_parked = {"last": f"{self._where(message)}: {error}", "kept_as": str(path)}
        return path.parent

    def _forget_oldest(self) -> None:
        """Remove the oldest messages set aside, beyond what is kept of them."""
        named = re.compile(rf"{re.escape(self._path.stem)}-(\d+)-(\d+)\.parked")
        offsets = {path: int(name[2]) for path in self._path.parent.iterdir() if (name := named.fullmatch(path.name))}
        # By offset too, as files of one batch have one time.
        newest_first = sorted(offsets, key=lambda path: (path.stat().st_mtime_ns, offsets[path]), reverse=True)
        kept_bytes = 0
        for number, path in enumerate(newest_first):
            kept_bytes += path.stat().st_size
            if number >= MOST_PARKED_FILES or kept_bytes > MOST_PARKED_BYTES:
                path.unlink()

    def _report(self) -> None:
        now = self._clock()
        if self._unreported and (self._reported_at is None or abs(now - self._reported_at) >= _REPORT_EVERY):
            _log.warning("messages_set_aside", messages=self._unreported, **self._last_parked)
            self._unreported, self._reported_at = 0, now

    def _expired(self, message: Arrived, expected: int | None) -> int:
        expired = 0 if expected is None else max(0, message.offset - expected)
        if expired:
            next_step = "set the topic's retention to more than the longest downtime of `lagcast land`"
            _log.warning("messages_expired", messages=expired, before=self._where(message), next_step=next_step)
        return expired


@contextmanager
def landing(out: Path, *, kafka: str, topic: str, clock: Callable[[], datetime]) -> Iterator[Landing]:
    """A `Landing` with a lock on the offsets of this topic, until the block or the process ends.

    Errors: LandingError if another process lands the same topic, and if the folder cannot be written to.
    """
    path = _offsets_path(out, kafka=kafka, topic=topic)
    try:
        lock = locked(path.with_suffix(".lock"))
    except BlockingIOError as error:
        message = f"another `lagcast land` writes topic {topic!r} into {out}; stop it, or choose another --out"
        raise LandingError(message) from error
    except OSError as error:
        message = f"{out} cannot be written to ({error.strerror}); choose another --out"
        raise LandingError(message) from error
    with lock:
        yield Landing(out, kafka=kafka, topic=topic, clock=clock)


def _offsets_path(out: Path, *, kafka: str, topic: str) -> Path:
    return out / ".landed" / quote(kafka, safe="") / f"{topic}.json"


def _read(path: Path) -> dict[int, int]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
        return {int(partition): int(offset) for partition, offset in content[_NEXT_OFFSETS].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = (
            f"{path} does not contain the next offsets of the topic; remove it, and all that the topic still keeps is "
            "landed again, over the existing files"
        )
        raise LandingError(message) from error


def _write(path: Path, next_offsets: Mapping[int, int]) -> None:
    content = {_NEXT_OFFSETS: {str(key): next_offsets[key] for key in sorted(next_offsets)}}
    _replace(path, json.dumps(content).encode())
    sync_folder(path.parent)


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
