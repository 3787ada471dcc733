"""What the executor writes of an error that nobody expected."""

import json

import pytest
import structlog

from executor.run import _log_to_stderr


@pytest.mark.parametrize("is_terminal", [False, True])
def test_an_unexpected_error_is_written_with_its_traceback_and_without_values(
    *, is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token stands in a variable of one of its frames."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    _log_to_stderr()
    token = "do-not-tell"  # noqa: S105  # a value to look for
    try:
        json.loads(f"{len(token)}}}")
    except ValueError:
        structlog.get_logger().exception("failed", group_id="orders")
    written = capsys.readouterr().err
    told = written if is_terminal else json.loads(written)["exception"]
    assert "Traceback (most recent call last)" in told
    assert "JSONDecodeError: Extra data" in told
    assert token not in written
