"""Replays that `lagcast replay` has played, for their pages: one JSON document each. Nothing is played here.

    FOLDER/20260504T120000Z-orders.json

A document is written whole or not at all, and its name without the ending is the replay's id.
"""

import os
import re
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

import structlog
from pydantic import TypeAdapter, ValidationError

from api.pictures.days import by_day
from api.pictures.league import Standing, league
from api.pictures.picture import Picture
from api.problems import NotFoundError

# More are not listed, and the oldest are removed as others come.
MOST_KEPT = 50
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDay:
    """A day on which a rival was cheaper than lagcast, with both costs."""

    day: date
    rival: str
    rival_cost: float
    lagcast_cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReplay:
    """A replay of one load: each policy on it, sentences on the whole, and the days that lagcast lost."""

    title: str
    played_at: datetime
    currency: str
    sentences: tuple[str, ...]
    standings: tuple[Standing, ...]
    lost_days: tuple[LostDay, ...]

    @property
    def replay_id(self) -> str:
        """Its instant and its title, in letters that an address may have.

        >>> from datetime import UTC
        >>> at = datetime(2026, 5, 4, 12, tzinfo=UTC)
        >>> KeptReplay(title="my load/1", played_at=at, currency="", sentences=(), standings=(), lost_days=()).replay_id
        '20260504T120000Z-my_load_1'
        """
        return f"{self.played_at:%Y%m%dT%H%M%SZ}-{re.sub(r'[^A-Za-z0-9_.-]', '_', self.title)[:64]}"

    @property
    def pictures(self) -> dict[str, Picture]:
        """What each policy pays, and how many messages are late under it: in all, and day by day where it is known."""
        drawn = (league(self.standings, currency=self.currency), *by_day(self.standings, currency=self.currency))
        return {picture.name: picture for picture in drawn}


_DOCUMENT = TypeAdapter(KeptReplay)


class Replays:
    """The replays in the folder `path`; None: there is none."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def keep(self, replay: KeptReplay) -> None:
        """Keep it, and remove the oldest of too many. Errors: OSError."""
        if self._path is None:
            return
        self._path.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self._path, prefix=".", delete=False) as unfinished:
            unfinished.write(_DOCUMENT.dump_json(replay, indent=2))
            unfinished.flush()
            os.fsync(unfinished.fileno())
        Path(unfinished.name).replace(self._path / f"{replay.replay_id}.json")
        for name in self._ids()[MOST_KEPT:]:
            (self._path / f"{name}.json").unlink(missing_ok=True)

    def newest(self) -> tuple[tuple[str, KeptReplay], ...]:
        """Each with its id, the newest first; one that cannot be read is left out, and logged."""
        found = ((name, self._read(name)) for name in self._ids()[:MOST_KEPT])
        return tuple((name, replay) for name, replay in found if replay is not None)

    def of(self, replay_id: str) -> KeptReplay:
        """The one of this id. Errors: NotFoundError."""
        found = self._read(replay_id) if replay_id in self._ids() else None
        if found is None:
            message = f"no replay has the id '{replay_id}'; the page of replays has those that are kept"
            raise NotFoundError(message)
        return found

    def _ids(self) -> list[str]:
        """By their instants, which their names begin with, the newest first."""
        files = () if self._path is None else self._path.glob("*.json")
        return sorted((file.stem for file in files if _ID.fullmatch(file.stem)), reverse=True)

    def _read(self, replay_id: str) -> KeptReplay | None:
        if self._path is None:
            return None
        try:
            return _DOCUMENT.validate_json((self._path / f"{replay_id}.json").read_bytes())
        except (OSError, ValidationError) as error:
            _log.warning("replay_not_read", replay=replay_id, error=str(error).partition("\n")[0])
            return None
