"""Folder of the demo: features by seed, days and code, and its own decisions."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.errors import InputError

# Packages whose code determines the demo's features.
MAKERS = ("collector", "forecasting", "replay", "spark_features")


def demo_dir(state_dir: Path) -> Path:
    """The demo's part of the state folder. Its decisions are separate from those of real groups."""
    return state_dir / "demo"


def decisions_file(state_dir: Path, *, anew: bool) -> Path:
    """The SQLite file with the demo's decisions; `anew` begins an empty one.

    Errors: InputError if the state folder cannot be written to.
    """
    file = demo_dir(state_dir) / "decisions.sqlite"
    if not anew:
        return file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for part in file.parent.glob(f"{file.name}*"):
            part.unlink()
    except OSError as error:
        message = f"the state folder {state_dir} cannot be written to ({error.strerror}); name another: --state-dir DIR"
        raise InputError(message) from error
    return file


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFolder:
    """Samples and features of one seed, number of days and version of the code; the folder is complete or absent."""

    path: Path

    @classmethod
    def of(cls, state_dir: Path, *, seed: int, days: int) -> "FeatureFolder":
        """The folder for this seed, these days and this version of the code."""
        return cls(path=demo_dir(state_dir) / f"seed-{seed}-days-{days}-{code_digest()}")

    @property
    def is_there(self) -> bool:
        """True if the folder was made before."""
        return self.path.is_dir()

    def forget(self) -> None:
        """Remove the folder, so that it is made again."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def making(self) -> Iterator[Path]:
        """A scratch folder that becomes this one at the end of the block, and is removed if the block fails.

        Folders of other seeds, days or code are removed then: a demo keeps one folder of 60 MB.
        """
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self.path.parent) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            yield made
            for other in self.path.parent.glob("seed-*"):
                shutil.rmtree(other, ignore_errors=True)
            made.rename(self.path)


def code_digest() -> str:
    """Eight digits that change with any line of the code that makes the features."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for package in MAKERS:
        for file in sorted((root / package).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:8]
