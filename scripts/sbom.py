# ruff: noqa: INP001 - a script is run, never imported
"""Writes build/sbom.json: what lagcast needs with all its extras, in the versions of the lock, as CycloneDX by uv."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "sbom.json"
# That of the image; a package for another one is not part of it.
_SYSTEM = "sys_platform == 'linux' and platform_python_implementation == 'CPython'"
# A pinned package at the beginning of a line: name, version, and the systems that it is for.
_PIN = re.compile(r"^([A-Za-z0-9._-]+==[^\s;\\]+)( ; [^\\]+?)? *\\?$", re.MULTILINE)


def main() -> None:
    """Let uv solve the project in a folder of its own, where nothing but the lock's versions is allowed."""
    pins = [pin + (systems or "") for pin, systems in _PIN.findall((ROOT / "requirements" / "dev.txt").read_text())]
    constraints = ", ".join(f"'{pin.replace(chr(39), chr(34))}'" for pin in pins)
    OUT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        project = (ROOT / "pyproject.toml").read_text()
        project = re.sub(r"^readme = .*$", "", project, flags=re.MULTILINE)
        project = re.sub(r"^environments = .*$", f"environments = [{_SYSTEM!r}]", project, flags=re.MULTILINE)
        allowed = f"[tool.uv]\nconstraint-dependencies = [{constraints}]"
        (Path(folder) / "pyproject.toml").write_text(project.replace("[tool.uv]", allowed, 1))
        export = ["export", "--format", "cyclonedx1.5", "--all-extras", "--no-dev", "--quiet", "--no-emit-project"]
        command = [str(Path(sys.executable).with_name("uv")), *export, "--output-file", str(OUT)]
        subprocess.run(command, cwd=folder, check=True)  # noqa: S603  # uv, with words of this file
    sys.stdout.write(f"{OUT.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
