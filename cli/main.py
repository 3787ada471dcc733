"""`lagcast`: the app, its commands in the order in which a new user needs them, and the process entry point."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cli import (
    advise,
    collect,
    config,
    demo,
    discover,
    doctor,
    explain,
    features,
    forecast,
    history,
    hold,
    land,
    manifests,
    replay,
    scan,
    serve,
    up,
)
from cli.errors import ExitCode, run_with_exit_code

# The matrices are small: threads within one operation cost more than they save, and processes share the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# pyarrow's own allocator keeps what a thread has freed and gives it to no other, nor back when another thread asks for
# that: 650 MB of 600,000 rows that were read. malloc takes a fifth longer to read so many, and `cli.memory` trims it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# With colorama installed numba would colour its errors, and every terminal would get an escape when a command ends.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

app = typer.Typer(
    name="lagcast",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo.demo)
app.command()(scan.scan)
app.command()(replay.replay)
app.command()(up.up)
app.command()(collect.collect)
app.command()(land.land)
app.command()(history.history)
app.command()(features.features)
app.command()(forecast.forecast)
app.command()(advise.recommend)
app.command()(serve.serve)
app.command()(explain.explain)
app.command()(hold.hold)
app.command()(hold.release)
app.command()(hold.holds)
app.command("import")(manifests.import_objects)
app.add_typer(manifests.export, name="export")
app.command()(discover.discover)
app.add_typer(config.app, name="config")
app.command()(doctor.doctor)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        from cli.wiring import version  # noqa: PLC0415

        typer.echo(f"lagcast {version()}")
        raise typer.Exit


@app.callback()
def lagcast(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error; works anywhere.")] = False,
) -> None:
    """Replica counts for Kafka consumer groups, and the time of each change, with the price of every alternative.

    Results go to stdout, messages to stderr. Exit codes: 0 answered, 1 our failure, 2 usage or configuration,
    3 refused under --strict or --fail-if, 4 Kafka, Java or Spark not reachable, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the console script exits with it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    words = [word for word in given if word != "--debug"]
    # A group or topic name may contain any character; a terminal that cannot show it must not end the command.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # SIGTERM ends a command as Ctrl-C does: every `finally` runs, so that nothing is left half-written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return run_with_exit_code(lambda: _code_of(app(words, prog_name="lagcast", standalone_mode=False)), debug=debug)


def _code_of(returned: object) -> int:
    return returned if isinstance(returned, int) else ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
