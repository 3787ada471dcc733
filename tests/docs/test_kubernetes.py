"""The page about the resource shows an object that is accepted, and names every condition and Event that there is."""

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
    asked = request_of(Settings(state_dir=Path("nowhere")), read_scaler(example))
    assert asked.group.target is not None
    assert (asked.group.target.namespace, asked.group.target.name, asked.group.max_replicas) == ("shop", "orders", 24)
    assert (asked.decision.price_per_replica_hour, asked.decision.currency) == (0.04, "EUR")
    assert (asked.group.protocol, asked.group.max_poll_records) == ("cooperative", 200)


def test_every_condition_and_event_is_explained() -> None:
    """The tables name them all."""
    told = [*CONDITIONS, *get_args(get_type_hints(Transition)["reason"])]
    assert [name for name in told if f"`{name}`" not in PAGE] == []
