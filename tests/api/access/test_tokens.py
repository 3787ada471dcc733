"""Bearer tokens from files: which are valid, when that changes, and which files are refused."""

from pathlib import Path

import pytest

from api.access.files import AccessError
from api.access.tokens import Tokens
from tests.api.access_files import token_file


def test_tokens_of_files_and_folders_are_valid_together(tmp_path: Path) -> None:
    """A file has one a line; in a folder each file counts but the hidden ones, as of a mounted Secret."""
    folder = tmp_path / "folder"
    folder.mkdir()
    token_file(folder / "grafana", "of-grafana")
    token_file(folder / ".hidden", "hidden")
    (folder / "..2026").mkdir()
    tokens = Tokens([token_file(tmp_path / "file", "old", "", "new"), folder])
    valid = {each for each in ("old", "new", "of-grafana", "hidden", "", "old\nnew", "é") if tokens.accept(each)}
    assert valid == {"old", "new", "of-grafana"}


def test_a_changed_file_counts_from_the_next_request_on(tmp_path: Path) -> None:
    """A token that was exchanged, added or taken away; also where a link is swapped, as Kubernetes does."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"..{number}").mkdir()
        token_file(folder / f"..{number}" / "reader", f"token-{number}")
    (folder / "..data").symlink_to("..1")
    (folder / "reader").symlink_to("..data/reader")
    tokens = Tokens([folder])
    assert (tokens.accept("token-1"), tokens.accept("token-2")) == (True, False)
    (folder / "..next").symlink_to("..2")
    (folder / "..next").replace(folder / "..data")
    assert (tokens.accept("token-1"), tokens.accept("token-2")) == (False, True)
    token_file(folder / "other", "token-3")
    assert (tokens.accept("token-2"), tokens.accept("token-3")) == (True, True)
    (folder / "other").unlink()
    assert (tokens.accept("token-2"), tokens.accept("token-3")) == (True, False)


def test_a_file_that_becomes_unusable_lets_nobody_in(tmp_path: Path) -> None:
    """Emptied, removed or readable for all: no earlier token goes on; a file in order is taken up again."""
    path = token_file(tmp_path / "tokens", "one")
    tokens = Tokens([path])
    assert tokens.accept("one")
    path.write_text("")
    assert not tokens.accept("one")
    path.unlink()
    assert not tokens.accept("one")
    token_file(path, "one").chmod(0o644)
    assert not tokens.accept("one")
    path.chmod(0o640)
    assert tokens.accept("one")


def test_a_file_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    """One sentence with the file, the reason and the next step."""
    empty, readable = token_file(tmp_path / "empty", ""), token_file(tmp_path / "readable", "one")
    readable.chmod(0o604)
    (tmp_path / "folder").mkdir()
    binary = token_file(tmp_path / "binary", "x")
    binary.write_bytes(b"\xff\xfe")
    for path, sentence in (
        (empty, "is empty; write a bearer token into it, such as of `openssl rand -hex 32`"),
        (readable, f"has mode 0604, so every user may read it; chmod o-rwx {readable}"),
        (tmp_path / "folder", "is an empty folder; put a file with a bearer token into it"),
        (tmp_path / "missing", "; give a file with a bearer token, or a folder of such files"),
        (binary, "; give a file with a bearer token, or a folder of such files"),
    ):
        with pytest.raises(AccessError) as error:
            Tokens([path])
        assert str(error.value).endswith(sentence)
