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

DEPLOY = Path(__file__).parents[2] / "deploy"


def arguments_of(file: str) -> list[str]:
    """The arguments of the one container in a manifest."""
    texts = (DEPLOY / file).read_text(encoding="utf-8")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(texts))
    (spec,) = [entry["spec"] for entry in documents if entry["kind"] in {"CronJob", "Deployment", "StatefulSet"}]
    pod = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
    (container,) = pod["containers"]
    arguments: list[str] = container["args"]
    return arguments


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("manifests/recommender.yaml", "up"),
        ("manifests/forecasts.yaml", "forecast"),
        ("spark/collector.yaml", "collect"),
    ],
)
def test_lagcast_commands_exist(file: str, command: str) -> None:
    """A container's arguments are a command of `lagcast` with known options and without a missing one."""
    assert made(arguments_of(file)) == command


def test_the_parts_alone_are_a_command_too() -> None:
    """Beside the features job over several nodes the recommender's arguments are those of `lagcast serve`."""
    arguments = arguments_of("manifests/recommender.yaml")
    component = yaml.safe_load((DEPLOY / "spark" / "kustomization.yaml").read_text(encoding="utf-8"))
    for operation in yaml.safe_load(component["patches"][0]["patch"]):
        number = int(operation["path"].removeprefix("/spec/template/spec/containers/0/args/"))
        arguments[number : number + 1] = [operation["value"]] if operation["op"] == "replace" else []
    assert made(arguments) == "serve"


def test_the_decisions_of_a_fleet_are_a_command_too() -> None:
    """The application that decides on Spark runs the program of `lagcast` with a command that it has."""
    overlay = yaml.safe_load((DEPLOY / "spark" / "decisions" / "kustomization.yaml").read_text(encoding="utf-8"))
    changes = {change["path"]: change["value"] for change in yaml.safe_load(overlay["patches"][0]["patch"])}
    assert changes["/spec/mainApplicationFile"] == "local:///opt/lagcast/site-packages/cli/main.py"
    assert made(["lagcast", *changes["/spec/arguments"]]) == "recommend"


def made(arguments: list[str]) -> str:
    """The command of `lagcast` that accepts the arguments."""
    program, name, *options = arguments
    assert program == "lagcast"
    group = typer.main.get_command(cli.main.app)
    assert isinstance(group, typer.core.TyperGroup)
    group.commands[name].make_context(name, options)
    return name


def test_executor_command_exists() -> None:
    """The executor's arguments are options that `lagcast-executor` has."""
    arguments = arguments_of("manifests/executor/executor.yaml")
    typer.main.get_command(executor.run.app).make_context("lagcast-executor", arguments)
