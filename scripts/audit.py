# ruff: noqa: INP001 - a script is run, never imported
"""Looks up the known vulnerabilities of every package in the lock, by pip-audit; exit code 1 where there is one.

pip-audit passes over a package that its database does not answer for, and then says that nothing is known. So it is
first asked about a release whose vulnerabilities are known for years: where it finds none of them, nothing can be
looked up here, and the audit is skipped with that reason.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "dev.txt"
# It has CVE-2019-11324 and six later ones.
KNOWN, ONE_OF_THEM = "urllib3==1.25.0", "CVE-2019-11324"


def main() -> int:
    """Audit the lock, where that is possible."""
    with tempfile.TemporaryDirectory() as folder:
        known = Path(folder) / "known.txt"
        known.write_text(f"{KNOWN}\n")
        if ONE_OF_THEM not in audit("--no-deps", "--aliases", "on", "-r", str(known)).stdout:
            sys.stderr.write(f"audit skipped: no database here tells {ONE_OF_THEM} of {KNOWN}\n")
            return 0
    found = audit("--require-hashes", "--strict", "-r", str(LOCK))
    if found.returncode:
        sys.stderr.write(found.stdout + found.stderr)
    return found.returncode


def audit(*words: str) -> "subprocess.CompletedProcess[str]":
    """What pip-audit says."""
    command = [str(Path(sys.executable).with_name("pip-audit")), "--disable-pip", "--progress-spinner", "off", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # words of this file


if __name__ == "__main__":
    sys.exit(main())
