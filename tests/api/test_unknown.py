"""P25: unknown is never a number: what a refusal does not know is absent from every channel, whatever its reason."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any, get_args

import grpc  # type: ignore[import-untyped]  # ships no types
import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from api.keda.server import serving_keda
from api.keys import group_key
from api.words import code_in_words
from cli.explain import plan_table, shown_of, wire_document
from cli.output import Answer, OutputFormat, write_answer
from forecasting.refusal import Refusal, RefusalReason
from recommender.adapters.metrics import Metrics
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.cluster.scaler import read_scaler, request_of
from recommender.cluster.scaler_status import status_of
from recommender.configuring.settings import Settings
from recommender.deciding.recommendation import Recommendation
from tests.api.conftest import Clock
from tests.api.test_channels import DOCUMENT, ORDERS
from tests.api.test_keda import metrics as metrics_for_keda

MakeRefusal = Callable[..., Refusal]
KEY = group_key("prod-eu", "orders")
EVIDENCE = (("history_seconds", 900.0), ("limit_seconds", 1800.0))
# What a text may not have in place of a value: a number, or the usual words for none.
PLACEHOLDER = re.compile(r"\d|\bnan\b|\binf\b|\bnone\b|\bnull\b|\?|\bn/a\b", re.IGNORECASE)
ELEMENT = re.compile(r"<style>.*?</style>|<[^<>]*[^\\<>]>", re.DOTALL)
# What a page knows without any advice: instants, and how often and how long there was advice.
KNOWN_OF_A_PAGE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?|(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+"
    r"|0 times a move was advised; no advice in 5 minutes"
)
BROWSER = {"accept": "text/html"}
# The gauges of a group that is refused: that it is, why, and how many replicas it has where that is known.
KNOWN_OF_A_REFUSAL = {"lagcast_refusal"}


@pytest.fixture(params=get_args(RefusalReason))
def bare(request: pytest.FixtureRequest, refusal: MakeRefusal) -> Refusal:
    """A refusal for each reason that knows nothing but its reason."""
    return refusal(reason=request.param, sentence="It cannot be told.", evidence=(), remedy="Look at the source.")


@pytest.fixture
def kept(store: SqlDecisionStore, bare: Refusal) -> Refusal:
    """The same, as the last decision of the store."""
    store.save(bare)
    return bare


def leaves(document: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # JSON
    """Every value of a JSON document with its path."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, f"{name}.{key}")
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value, f"{name}[]")
    else:
        yield name, document


def no_value(document: Any) -> None:  # noqa: ANN401  # JSON
    """Check that a document has no number, no null and no placeholder at all, instants, names and booleans apart."""
    for name, value in leaves(document):
        assert value is not None, name
        assert isinstance(value, bool | str), (name, value)
        assert str(value).strip().lower() not in {"", "?", "nan", "none", "null", "0", "-", "n/a"}, (name, value)


def page_of(service: TestClient, path: str) -> Any:  # noqa: ANN401  # JSON
    answer = service.get(f"/api/v1/{path}")
    assert answer.status_code == 200, path
    return answer.json()


def metrics_of(store: SqlDecisionStore, clock: Clock) -> list[tuple[str, dict[str, str], float]]:
    """All samples of the group on the page that Prometheus reads."""
    page = Metrics(store, clock=clock, version="0.1.0").page().decode()
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels.get("group") == "orders"
    ]


def test_p25_json_of_a_refusal_has_no_number_and_no_null(service: TestClient, kept: Refusal) -> None:
    """The group, its decision, the page of groups, the page of decisions and the explanation: words and instants."""
    recommendation = page_of(service, f"groups/{KEY}/recommendation")
    assert recommendation["evidence"] == {}
    # Asked for the day in which it was refused; the clock stands at that instant.
    decisions = page_of(service, f"groups/{KEY}/recommendations")
    explanation = page_of(service, f"recommendations/{recommendation['recommendation_id']}/explanation")
    assert decisions["decisions"]
    for document in (recommendation, page_of(service, f"groups/{KEY}"), page_of(service, "groups"), decisions):
        no_value(document)
    no_value(explanation)
    assert explanation["sentences"] == [kept.sentence]


def test_p25_evidence_and_a_count_are_there_only_where_they_are_known(
    service: TestClient, store: SqlDecisionStore, bare: Refusal, refusal: MakeRefusal
) -> None:
    """The only numbers of a refusal are its evidence and the known count; a count of 0 that is known stays 0."""
    for group, hold_replicas in (("a", None), ("b", 0), ("c", 6)):
        store.save(refusal(group=group, reason=bare.reason, evidence=EVIDENCE, hold_replicas=hold_replicas))
        document = page_of(service, f"groups/{group_key('prod-eu', group)}/recommendation")
        numbers = {name: value for name, value in leaves(document) if isinstance(value, int | float)}
        known = {} if hold_replicas is None else {".hold_replicas": hold_replicas}
        assert numbers == {f".evidence.{name}": value for name, value in EVIDENCE} | known


def test_p25_no_series_is_made_up_for_a_refused_group(service: TestClient, kept: Refusal) -> None:
    """A group without any advice has neither a ledger nor a forecast: 404 with a sentence, not a table of zeros."""
    for route in ("ledger", "forecast"):
        for accept in ("text/csv", "application/json"):
            answer = service.get(f"/api/v1/groups/{KEY}/{route}", headers={"Accept": accept})
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
            assert kept.group in answer.json()["detail"]


def test_p25_no_due_replicas_of_a_refused_group(
    service: TestClient, store: SqlDecisionStore, clock: Clock, kept: Refusal
) -> None:
    """REST answers 503 with the reason and KEDA gets a failure instead of a count: neither can be read as 0."""
    answer = service.get(f"/api/v1/groups/{KEY}/due-replicas")
    assert answer.status_code == 503
    assert "value" not in answer.json()
    assert kept.sentence.rstrip(".") in answer.json()["detail"]
    with (
        serving_keda(store, clock=clock, host="127.0.0.1", port=0) as port,
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
        pytest.raises(grpc.RpcError, match=f"no advice: {kept.sentence}"),
    ):
        metrics_for_keda(channel, **ORDERS)


def test_p25_metrics_of_a_refused_group_have_its_reason_alone(
    store: SqlDecisionStore, clock: Clock, kept: Refusal
) -> None:
    """`lagcast_refusal` is 1 for one reason and 0 for every other one; no gauge of advice, lag or age has a sample."""
    samples = metrics_of(store, clock)
    assert {name for name, _, _ in samples} == KNOWN_OF_A_REFUSAL
    (code,) = (labels["reason"] for _, labels, value in samples if value == 1.0)
    assert code.lower() == kept.reason.replace("_", "")
    assert not any(math.isnan(value) for _, _, value in samples)


def test_p25_the_status_of_a_refused_group_has_no_count(kept: Refusal, clock: Clock, tmp_path: Path) -> None:
    """The object's status has conditions with reasons; recommendation, observed figures and costs are absent."""
    status = dict(
        status_of(DOCUMENT, request_of(Settings(state_dir=tmp_path), read_scaler(DOCUMENT)), kept, now=clock())
    )
    assert status.pop("observedGeneration") == 1
    assert status.keys() == {"mode", "conditions"}
    for condition in status["conditions"]:
        assert condition.pop("observedGeneration") == 1
    no_value(status)
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert (ready["status"], kept.sentence in ready["message"]) == ("False", True)


@pytest.mark.parametrize(
    ("path", "begin", "end"),
    [
        ("", '<tbody id="groups"', "</tbody>"),
        ("quality", "<tbody", "</tbody>"),
        (f"groups/{KEY}", "<main", "</main>"),
        ("recommendations/{recommendation_id}", "<main", "</main>"),
    ],
)
def test_p25_pages_of_a_refused_group_have_words_in_place_of_values(
    *, service: TestClient, clock: Clock, kept: Refusal, path: str, begin: str, end: str
) -> None:
    """Five minutes later, the row of the group has the reason in words; its own pages also have the sentence."""
    clock.now = kept.refused_at + timedelta(minutes=5)
    decision = page_of(service, f"groups/{KEY}/recommendation")
    answer = service.get("/" + path.format(**decision), headers=BROWSER)
    assert answer.status_code == 200
    part = answer.text.split(begin, 1)[1].split(">", 1)[1].split(end, 1)[0]
    words = " ".join(unescape(ELEMENT.sub(" ", part)).split())
    shown = KNOWN_OF_A_PAGE.sub("", words)
    assert code_in_words(decision["reason"]["code"]) in shown
    assert PLACEHOLDER.search(shown) is None, shown
    assert ("unknown" if end == "</tbody>" else kept.sentence) in shown


def test_p25_a_fleet_without_advice_has_no_sum_of_replicas(
    service: TestClient, store: SqlDecisionStore, clock: Clock, kept: Refusal, advice: Callable[..., Recommendation]
) -> None:
    """Sums of replicas are of groups with advice; where there is none, no 0 stands for what nobody has counted."""

    def totals() -> str:
        clock.now += timedelta(seconds=5)  # pages are kept for 4 s
        return service.get("/", headers=BROWSER).text.split('<div id="totals"', 1)[1].split("</dl>")[0]

    assert kept.group == "orders"
    assert "<dt>Without advice</dt><dd>1</dd>" in totals()
    assert "Replicas" not in totals()
    store.save(advice(group="billing"))
    assert "<dt>Replicas, of groups with advice</dt><dd>6; 8 advised</dd>" in totals()


@pytest.mark.parametrize("output", list(OutputFormat))
def test_p25_commands_print_no_value_for_a_refused_group(
    bare: Refusal, clock: Clock, output: OutputFormat, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As text: reason, sentence and next step; as JSON the wire document; as CSV no row of plans at all."""
    settings = Settings(state_dir=tmp_path)
    document = wire_document(bare, settings=settings, now=clock())
    write_answer(Answer(title="Decision", document=document, records=plan_table((bare,)), shown=shown_of(bare)), output)
    printed = capsys.readouterr().out
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        assert yaml.safe_load(printed) == document
        no_value(yaml.safe_load(printed) | {"evidence": "absent"})
    elif output is OutputFormat.CSV:
        assert list(csv.DictReader(io.StringIO(printed))) == []
    else:
        words = unescape(ELEMENT.sub(" ", printed).replace("\\", ""))
        assert f"[{bare.reason}]" in words
        assert bare.sentence in words
        assert PLACEHOLDER.search(words) is None, words
