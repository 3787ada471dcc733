# ruff: noqa: INP001, T201 - a script is run, never imported, and prints
"""Puts the drawing engine of the pictures, one file of the npm package echarts, into api/static/echarts.

For maintainers, who have npm:

    python scripts/vendor_echarts.py 6.1.0

npm asks the registry that it is set to. Version and checksum stand beside the file, and a test compares them.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "api" / "static" / "echarts"
FILES = ("dist/echarts.min.js", "LICENSE", "NOTICE")


def main(version: str) -> None:
    """Fetch that version and replace what is there."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"echarts@{version}"], check=True, cwd=folder, stdout=sys.stderr)  # noqa: S603, S607  # the maintainer's npm
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            for name in FILES:
                member = packed.extractfile(f"package/{name}")
                if member is None:
                    raise SystemExit(f"echarts {version} has no {name}; see what the package holds now")  # noqa: EM102, TRY003  # a script's sentence
                (FOLDER / Path(name).name).write_bytes(member.read())
    engine = (FOLDER / "echarts.min.js").read_bytes()
    about = {"package": "echarts", "version": version, "file": "echarts.min.js", "sha256": sha256(engine).hexdigest()}
    (FOLDER / "version.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    print(f"echarts {version}: {len(engine):,} bytes in {FOLDER}")


if __name__ == "__main__":
    main(sys.argv[1])
