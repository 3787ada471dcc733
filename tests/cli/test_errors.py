"""The boundary at which an exception becomes a sentence and an exit code."""

import importlib
import sys

import pytest
import typer

from cli.errors import EXIT_CODE_OF_ERROR, ExitCode, InputError, UnreachableError, run_with_exit_code


def _raising(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("--days is 0; give 1 or more"), 2, "lagcast: --days is 0; give 1 or more\n"),
        (UnreachableError("no broker at localhost:9092"), 4, "lagcast: no broker at localhost:9092\n"),
        (KeyboardInterrupt(), 130, "lagcast: interrupted; nothing half-written was left\n"),
        (KeyError("surprise"), 1, "lagcast: a bug in lagcast, KeyError: 'surprise'. `--debug` shows where.\n"),
        (
            typer.BadParameter("no number"),
            2,
            "lagcast: Invalid value: no number. `lagcast --help` shows what there is.\n",
        ),
    ],
)
def test_an_error_is_one_sentence_and_a_code(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind of failure has its exit code, prints one sentence to stderr, and nothing to stdout."""
    assert run_with_exit_code(lambda: _raising(error), debug=False) == code
    assert capsys.readouterr() == ("", message)


def test_debug_shows_the_traceback_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    """With --debug the traceback comes before the sentence, and the exit code stays the same."""
    assert run_with_exit_code(lambda: _raising(InputError("no")), debug=True) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("lagcast: no\n")


def test_a_closed_pipe_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """`lagcast ... | head` ends with 0 and without output when head has ended."""
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert run_with_exit_code(lambda: _raising(BrokenPipeError()), debug=False) == ExitCode.OK


@pytest.mark.parametrize("name", sorted(EXIT_CODE_OF_ERROR))
def test_errors_are_named_as_they_are(name: str) -> None:
    """Every exception class that the boundary catches by name exists under that name."""
    module, _, kind = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), kind), Exception)
