"""Objects drawn from the definition that the API server checks: each gives settings, or one sentence of refusal.

The definition is the chart's file. Its rules in CEL are not applied: an object that breaks them may lie there from
before they were made, and is the reader's to refuse.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_model.physics.detected import ObservedGroup
from executor.claim import Claim, claims_of
from executor.errors import ScaleError
from forecasting.units import Partitions
from recommender.cluster.scaler import Document, GroupRequest, ScalerError, read_scaler, request_of, standing
from recommender.cluster.scaler_status import is_news, rejected_status, status_of
from recommender.cluster.tenants import Tenants
from tests.recommender.cluster.test_scaler import JSON, NOW, SETTINGS, document

OBJECTS = 300
DEFINITION = Path(__file__).parents[3] / "deploy" / "chart" / "files" / "consumergroupscalers.yaml"
(VERSION,) = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))["spec"]["versions"]
SCHEMA: Mapping[str, Any] = VERSION["schema"]["openAPIV3Schema"]["properties"]["spec"]
# The API server keeps whole numbers of 64 bits.
LEAST, MOST = -(2**63), 2**63 - 1
# What is drawn of a schema's keywords below; a new one would be ignored, and has to be added there.
DRAWN = {"type", "properties", "required", "items", "enum", "minimum", "minLength", "pattern", "format", "anyOf"}
TOLD = {"description", "x-kubernetes-int-or-string", "x-kubernetes-validations"}


def instants() -> st.SearchStrategy[str]:
    """Instants as RFC 3339 has them, from the first year to the last, anywhere on Earth."""
    zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    return st.datetimes(timezones=zones | st.just(UTC)).map(lambda instant: instant.isoformat().replace("+00:00", "Z"))


def of_type(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """What the API server admits in the place of `schema`."""
    if "anyOf" in schema:
        return decimals(schema["pattern"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    return OF_TYPE[schema["type"]](schema)


def decimals(pattern: str) -> st.SearchStrategy[int | str]:
    """Numbers that need not be whole: as a number where they are, else as a string."""
    text = st.from_regex(pattern, fullmatch=True)
    return st.one_of(st.sampled_from(["0.5", "1", "30", "1e-5", 600]), st.integers(LEAST, MOST), text)


def integers(schema: Mapping[str, Any]) -> st.SearchStrategy[int]:
    least = schema.get("minimum", LEAST)
    return st.integers(least, least + 30) | st.integers(least, MOST)


def texts(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return instants()
    words = ["Deployment", "orders", "apps/v1", "0 22 * * 5", "Europe/Berlin", "EUR"]
    return st.sampled_from(words) | st.text(min_size=schema.get("minLength", 0))


@st.composite
def objects(draw: st.DrawFn, schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its required fields and up to three others: of many one is always refused."""
    required = schema.get("required", [])
    optional = sorted(schema["properties"].keys() - set(required))
    chosen = draw(st.lists(st.sampled_from(optional), unique=True, max_size=3)) if optional else []
    return {name: draw(of_type(schema["properties"][name])) for name in [*required, *chosen]}


OF_TYPE: Mapping[str, Callable[[Mapping[str, Any]], st.SearchStrategy[Any]]] = {
    "object": objects,
    "array": lambda schema: st.lists(of_type(schema["items"]), max_size=2),
    "integer": integers,
    "boolean": lambda _: st.booleans(),
    "string": texts,
}
SPECS = objects(SCHEMA)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401  # JSON
    """The path of every value in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*above, key)
        yield from places(each, (*above, key))


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A spec of the definition in which up to two values are others, are gone, or are where nothing belongs."""
    spec = deepcopy(draw(SPECS))
    for _ in range(draw(st.integers(1, 2))):
        *above, last = draw(st.sampled_from([*places(spec), ("extra",)]))
        inner: Any = spec
        for key in above:
            inner = inner[key]
        if draw(st.booleans()) or last == "extra":
            inner[last] = draw(JSON)
        else:
            del inner[last]
    return spec


def of(spec: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """The object with this spec, and nothing else in it."""
    return document() | {"spec": spec}


def read(found: Document) -> GroupRequest | str:
    """The settings of an object, which make a profile, or the sentence that refuses it: one line, with an end."""
    try:
        request = request_of(SETTINGS, read_scaler(found))
    except ScalerError as error:
        sentence = str(error)
        assert sentence.strip()
        assert "\n" not in sentence
        return sentence
    request.group.profile("prod", "orders", ObservedGroup(partitions=Partitions(12)))
    return request


def test_every_keyword_of_the_definition_is_drawn() -> None:
    """A limit that is new in the definition fails here, until objects are drawn within it."""
    assert keywords(SCHEMA) - TOLD == DRAWN


def keywords(schema: Mapping[str, Any]) -> set[str]:
    """All keywords of a schema and of those within it; the names of fields are none."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return set(schema).union(*(keywords(each) for each in inner))


@pytest.mark.slow
def test_an_object_that_the_api_server_admits_gives_settings_or_one_sentence() -> None:
    """Read alone, among others, by the executor, and in its status; a good part of them is followed."""
    tally = {"followed": 0, "refused": 0}

    @given(spec=SPECS)
    @settings(max_examples=OBJECTS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def drawn(spec: dict[str, Any]) -> None:
        answer = read(of(spec))
        tally["refused" if isinstance(answer, str) else "followed"] += 1
        everywhere(spec, answer)

    drawn()
    print(tally)  # noqa: T201  # shown by `pytest -s`
    assert min(tally.values()) > OBJECTS / 10


@pytest.mark.slow
@given(spec=damaged())
@settings(max_examples=OBJECTS, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_damaged_object_gives_settings_or_one_sentence(spec: dict[str, Any]) -> None:
    """As one that was written while the definition was another, or past the API server."""
    everywhere(spec, read(of(spec)))


def everywhere(spec: dict[str, Any], answer: GroupRequest | str) -> None:
    """Check that all readers of an object agree on it, and that another object is followed beside it."""
    odd, good = of(spec), document(name="good", groupId="billing", cluster="another")
    known = standing(SETTINGS, [odd, good], Tenants(followed=("shop",)).objection)
    assert ("another", "billing") in known.requests
    invalid = known.invalid.get(("shop", "orders"))
    assert (None if invalid is None else invalid.sentence) == (answer if isinstance(answer, str) else None)
    if invalid is not None:
        status = rejected_status(odd, invalid, now=NOW)
    else:
        assert isinstance(answer, GroupRequest)
        status = status_of(odd, answer, None, now=NOW)
    assert is_news({}, status, now=NOW, cycle_seconds=60)
    claims = claims_of([odd, good])
    assert isinstance(claims["another", "billing"], Claim)
    assert all(isinstance(claim, Claim | ScaleError) for claim in claims.values())
