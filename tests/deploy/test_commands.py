"""The commands of containers: each exists, with the options that it gets."""

from pathlib import Path
from typing import Any

import pytest
import typer
import typer.core
import typer.main
import yaml

import cli.main
import executor.run

MANIFESTS = Path(__file__).parents[2] / "deploy" / "manifests"


def arguments_of(file: str) -> list[str]:
    """The arguments of the one container in a manifest, without its shell and its dates."""
    texts = (MANIFESTS / file).read_text(encoding="utf-8")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(texts))
    (spec,) = [entry["spec"] for entry in documents if entry["kind"] in {"Deployment", "CronJob"}]
    pod = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
    (container,) = pod["containers"]
    arguments: list[str] = container["args"]
    if arguments[:2] == ["/bin/sh", "-c"]:
        arguments = arguments[2].removeprefix("exec ").replace('"$(date -u -d yesterday +%F)"', "2026-01-05").split()
    return arguments


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("collector.yaml", "collect"),
        ("features.yaml", "features"),
        ("forecasts.yaml", "forecast"),
        ("recommender.yaml", "serve"),
    ],
)
def test_lagcast_commands_exist(file: str, command: str) -> None:
    """A container's arguments are a command of `lagcast` with known options and without a missing one."""
    program, name, *options = arguments_of(file)
    assert (program, name) == ("lagcast", command)
    group = typer.main.get_command(cli.main.app)
    assert isinstance(group, typer.core.TyperGroup)
    group.commands[name].make_context(name, options)


def test_executor_command_exists() -> None:
    """The executor's arguments are options that `lagcast-executor` has."""
    typer.main.get_command(executor.run._app).make_context("lagcast-executor", arguments_of("executor/executor.yaml"))
