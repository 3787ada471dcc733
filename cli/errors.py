"""Exit codes, and the boundary at which an exception becomes one sentence on stderr.

0 answered (refusals included), 1 internal error, 2 usage or configuration, 3 refused under `--strict`,
4 source, Java or Spark not reachable, 130 interrupted.
"""

import sys
import textwrap
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import typer

from cli.printable import printable_lines


class ExitCode(IntEnum):
    """Exit codes of the commands."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    STRICT = 3
    UNREACHABLE = 4
    INTERRUPTED = 130


# Typer's error for unknown arguments. Typer has its own copy of click and exports only the leaf classes of this tree,
# so the root class is found from one of them.
_USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class InputError(ValueError):
    """An input of the user cannot be used; the message names it, its place, its value, the limit and the next step."""


class UnreachableError(RuntimeError):
    """An external system did not answer: Kafka, Java, Spark or a port."""


# Errors of the other packages that the user can correct, by name: a name needs no import, so `--help` stays fast.
EXIT_CODE_OF_ERROR: dict[str, ExitCode] = {
    "api.access.files.AccessError": ExitCode.USAGE,
    "manifests.objects.ManifestError": ExitCode.USAGE,
    "cli.errors.InputError": ExitCode.USAGE,
    "cli.errors.UnreachableError": ExitCode.UNREACHABLE,
    "collector.batches.UnknownVersionError": ExitCode.USAGE,
    "collector.client_config.ClientConfigError": ExitCode.USAGE,
    "collector.errors.AdapterError": ExitCode.UNREACHABLE,
    "collector.landing.LandingError": ExitCode.USAGE,
    "recommender.adapters.feature_table.FeatureTableError": ExitCode.USAGE,
    "recommender.ports.AdapterError": ExitCode.UNREACHABLE,
    "recommender.configuring.settings_check.SettingsError": ExitCode.USAGE,
    "replay.trace.TraceError": ExitCode.USAGE,
    "replay.world.WorldError": ExitCode.USAGE,
    "spark_features.fleet_decisions.FleetJobError": ExitCode.UNREACHABLE,
    "spark_features.java.JavaError": ExitCode.UNREACHABLE,
    "spark_features.samples.FeaturesError": ExitCode.USAGE,
}


def exit_code_of(error: BaseException) -> ExitCode:
    """The exit code of an exception; FAILURE for unexpected ones.

    >>> exit_code_of(InputError("replicas is 0; it has to be 1 or more")), exit_code_of(KeyError("oops"))
    (<ExitCode.USAGE: 2>, <ExitCode.FAILURE: 1>)
    """
    for kind in type(error).__mro__:
        code = EXIT_CODE_OF_ERROR.get(f"{kind.__module__}.{kind.__qualname__}")
        if code is not None:
            return code
    return ExitCode.FAILURE


def run_with_exit_code(command: Callable[[], int], *, debug: bool) -> int:
    """Run a command; an exception becomes a line on stderr and an exit code, with the traceback if `debug`."""
    try:
        return command()
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted; nothing half-written was left", ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of stdout has closed it, as `head` does: it needs no more
        sys.stdout = None  # otherwise the interpreter fails again when it flushes at exit
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001  # the boundary: every other exception ends here, once
        if debug:
            traceback.print_exc()
        if isinstance(error, _USAGE_ERROR):
            return _say(_usage_sentence(error), ExitCode.USAGE)
        code = exit_code_of(error)
        if code is ExitCode.FAILURE:
            # Messages of Java are pages long; their first lines name the failure.
            sentence = textwrap.shorten(str(error), width=500, placeholder=" ...")
            return _say(f"a bug in lagcast, {type(error).__name__}: {sentence}. `--debug` shows where.", code)
        return _say(str(error), code)


def _usage_sentence(error: Any) -> str:  # noqa: ANN401  # a class that typer does not export
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "lagcast"
    # Some of typer's sentences end in a stop, and some do not.
    return f"{error.format_message().rstrip('.')}. `{command} --help` shows what there is."


def _say(sentence: str, code: ExitCode) -> ExitCode:
    sys.stderr.write(f"lagcast: {printable_lines(sentence)}\n")
    return code
