"""What this process works on before there is a decision, and the replay that it has played: for the page to show."""

from dataclasses import dataclass, field
from typing import NamedTuple

from api.pictures.picture import Picture


class StageShown(NamedTuple):
    """One stage of the work: what it waits for, or what came of it after so many seconds; None: it is not over."""

    name: str
    note: str
    seconds: float | None


class Replayed(NamedTuple):
    """A replay that is over: its picture, and sentences on it."""

    picture: Picture
    sentences: tuple[str, ...]


@dataclass(slots=True)
class Work:
    """Stages in the order in which they began; any thread may write and read."""

    _stages: dict[str, StageShown] = field(default_factory=dict)
    _replayed: Replayed | None = None
    _changes: int = 0

    @property
    def stages(self) -> tuple[StageShown, ...]:
        """All stages so far."""
        return tuple(self._stages.values())

    @property
    def replayed(self) -> Replayed | None:
        """The replay; None before it is over, or if none is played here."""
        return self._replayed

    @property
    def changes(self) -> int:
        """A number that is another one after each change."""
        return self._changes

    def stage(self, name: str, note: str, seconds: float | None) -> None:
        """A stage begins, or is over after so many seconds."""
        self._stages[name] = StageShown(name, note, seconds)
        self._changes += 1

    def replay(self, picture: Picture, *sentences: str) -> None:
        """A replay is over."""
        self._replayed = Replayed(picture, sentences)
        self._changes += 1
