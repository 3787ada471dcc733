"""The decisions of a fleet on disk, beside the rows they were made from: one version for each run, swapped whole.

    FEATURES/decisions/manifest.json                             the version that is valid, replaced by rename
    FEATURES/decisions/versions/v7/table=decisions/*.parquet     the decision of each group
    FEATURES/decisions/versions/v7/table=kept/*.parquet          what the next decision of each group depends on

A run that ends early changes nothing. The version before stays until the next swap, for those who are reading it.
"""

import json
import os
import shutil
from datetime import datetime
from pathlib import Path

from spark_features.samples import FeaturesError

FOLDER = "decisions"
_FORMAT, _SCHEMA_VERSION = "lagcast fleet decisions", 1
_MANIFEST, _VERSIONS = "manifest.json", "versions"


def read_version(decisions_dir: Path) -> int:
    """The valid version; 0 where nothing was decided yet. Errors: FeaturesError where this is no such folder."""
    path = decisions_dir / _MANIFEST
    if not path.exists():
        return 0
    try:
        content = json.loads(path.read_text())
        if (content["format"], content["schema_version"]) == (_FORMAT, _SCHEMA_VERSION):
            return int(content["version"])
    except (ValueError, LookupError, TypeError) as error:
        raise FeaturesError(_foreign(path)) from error
    raise FeaturesError(_foreign(path))


def _foreign(path: Path) -> str:
    return (
        f"{path} is no manifest of {_FORMAT}, schema version {_SCHEMA_VERSION}; use the lagcast that wrote it, "
        "or remove its folder: every group then begins anew"
    )


def files_of(decisions_dir: Path, *, version: int, table: str) -> list[Path]:
    """The files of one table of a version, which may be none."""
    return sorted(_folder_of(decisions_dir, version=version).glob(f"table={table}/*.parquet"))


def publish(written: Path, decisions_dir: Path, *, version: int, decided_at: datetime) -> None:
    """Make the folder `written` the valid version in one step, and remove all but this one and the one before it."""
    folder = _folder_of(decisions_dir, version=version)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed before its swap
    folder.parent.mkdir(exist_ok=True)
    written.rename(folder)
    content = {
        "format": _FORMAT,
        "schema_version": _SCHEMA_VERSION,
        "version": version,
        "decided_at": decided_at.isoformat(),
    }
    unfinished = decisions_dir / f".{_MANIFEST}"
    with unfinished.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(decisions_dir / _MANIFEST)
    wanted = {_folder_of(decisions_dir, version=each) for each in (version - 1, version)}
    for other in (decisions_dir / _VERSIONS).iterdir():
        if other not in wanted:
            shutil.rmtree(other)


def _folder_of(decisions_dir: Path, *, version: int) -> Path:
    return decisions_dir / _VERSIONS / f"v{version}"
