"""The page about the resource has an object that is accepted, and names every condition and Event."""

from pathlib import Path
from typing import get_args, get_type_hints

import yaml

from recommender.cluster.scaler import read_scaler, request_of
from recommender.cluster.scaler_status import CONDITIONS, Transition
from recommender.configuring.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def test_the_example_is_followed() -> None:
    """The settings of the example at the top of the page have the meaning that the page states."""
    example = yaml.safe_load(PAGE.split("```yaml\n")[1].split("```")[0])
    request = request_of(Settings(state_dir=Path("nowhere")), read_scaler(example))
    target = request.group.target
    assert target is not None
    assert (target.namespace, target.name, request.group.max_replicas) == ("shop", "orders", 24)
    assert (request.decision.price_per_replica_hour, request.decision.currency) == (0.04, "EUR")
    assert (request.group.protocol, request.group.max_poll_records) == ("cooperative", 200)


def test_every_condition_and_event_is_explained() -> None:
    """The tables name every condition and every reason of an Event."""
    names = [*CONDITIONS, *get_args(get_type_hints(Transition)["reason"])]
    assert [name for name in names if f"`{name}`" not in PAGE] == []
