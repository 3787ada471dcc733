"""Bearer tokens from files: whoever sends one of them may read everything."""

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

import structlog

from api.access.files import AccessError, Version, require_private, version_of

_log = structlog.get_logger()


class Tokens:
    """The tokens of `paths`, files with one token a line and folders of such files; they are read anew when changed.

    Several tokens are valid at a time, so that one can be exchanged without a gap. While a file cannot be used, none is
    valid: a token that was taken away must not go on. Errors: AccessError, at the start.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._version: Version | None = None
        self._digests: tuple[bytes, ...] = ()
        self._complaint = ""
        self._read()

    def accept(self, token: str) -> bool:
        """True if `token` is one of them; the time that takes tells nothing of how much of it is right."""
        try:
            self._read()
        except AccessError as error:
            self._digests, self._version = (), None
            if str(error) != self._complaint:
                self._complaint = str(error)
                _log.error("tokens_not_read", error=self._complaint)
        else:
            self._complaint = ""
        digest = _digest(token)
        # Each of them is compared, also after one that fits.
        return sum(hmac.compare_digest(digest, each) for each in self._digests) > 0

    def _read(self) -> None:
        try:
            files = [file for path in self._paths for file in _files_of(path)]
            version = version_of(files)
            if version != self._version:
                self._digests = tuple(_digest(token) for file in files for token in _tokens_of(file))
                self._version = version
        except (OSError, UnicodeDecodeError) as error:
            message = (
                f"--token-file cannot be read ({error}); give a file with a bearer token, or a folder of such files"
            )
            raise AccessError(message) from error


def _files_of(path: Path) -> list[Path]:
    """The file itself, or those of a folder; the hidden ones of a mounted Secret are its machinery."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if not file.name.startswith(".") and file.is_file())
    if not files:
        message = f"--token-file {path} is an empty folder; put a file with a bearer token into it"
        raise AccessError(message)
    return files


def _tokens_of(file: Path) -> list[str]:
    require_private(file, "the token file")
    tokens = file.read_text(encoding="utf-8").split()
    if not tokens:
        message = f"the token file {file} is empty; write a bearer token into it, such as of `openssl rand -hex 32`"
        raise AccessError(message)
    return tokens


def _digest(token: str) -> bytes:
    """A digest in place of the token: all have one length, and none stays in memory."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
