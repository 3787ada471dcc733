"""Ledgers as bars: the figures of the wire, cheapest first, and what cannot be told apart is seen to be so."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from api.keys import group_key
from api.pictures.ledger import group_ledger
from api.pictures.picture import Picture
from api.schemas import GroupLedger
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import LedgerStanding, Recommendation
from tests.api.pictures.laws import drawn, series, titles

MakeAdvice = Callable[..., Recommendation]


@pytest.fixture(name="picture_of")
def picture_of_fixture(service: TestClient, store: SqlDecisionStore, advice: MakeAdvice) -> Callable[..., Picture]:
    """The picture of a group's ledger, as REST sends it."""

    def made(kept: LedgerStanding) -> Picture:
        store.save(advice(ledger=kept))
        answer = service.get(f"/api/v1/groups/{group_key('prod-eu', 'orders')}/ledger")
        return group_ledger(GroupLedger.model_validate_json(answer.content))

    return made


def test_what_was_paid_stands_among_what_others_would_have_cost(
    picture_of: Callable[..., Picture], ledger: LedgerStanding
) -> None:
    """7.5 paid; 7.75, 9.25 and 31 for the others: each bar is its replicas and its late messages."""
    picture = picture_of(ledger)
    option = drawn(picture)
    assert [row["value"] for row in option["yAxis"]["data"]] == ["paid", "fixed-ceiling", "keda-2000", "hpa-10000"]
    assert titles(option) == ["USD in 24 h"]
    values = {
        name: [each["value"] if isinstance(each, dict) else each for each in series(option, name)["data"]]
        for name in ("Replicas", "Late messages")
    }
    assert values == {"Replicas": [7.0, 7.75, 9.0, 6.0], "Late messages": [0.5, 0.0, 0.25, 25.0]}
    assert [values["Replicas"], values["Late messages"]] == [
        list(picture.table.column(name)) for name in ("replicas", "late")
    ]
    marks = [mark["value"] for mark in series(option, "Total")["data"]]
    assert marks == [[7.5, 0], [7.75, 1], [9.25, 2], [31.0, 3]]
    assert picture.sentence == (
        "7.50 USD was paid in 24 h; of the scalers that can be told apart, keda-2000 would have cost least, "
        "1.75 USD more."
    )


def test_a_scaler_that_cannot_be_told_apart_has_a_pattern_and_a_word(
    picture_of: Callable[..., Picture], ledger: LedgerStanding
) -> None:
    """The fixed ceiling differs by less than the error of its simulation: it is not said to be dearer."""
    picture = picture_of(ledger)
    option = drawn(picture)
    plain, vague = series(option, "Replicas")["itemStyle"], series(option, "Replicas")["data"][1]["itemStyle"]
    assert (plain["color"], plain["decal"]) != (vague["color"], vague["decal"])
    assert plain["color"] == vague["color"]
    words = [mark["label"]["formatter"] for mark in series(option, "Total")["data"]]
    assert words == ["7.50", "7.75, not distinguishable", "9.25", "31"]
    assert picture.table.column("distinguishable") == ("-", False, True, True)


def test_a_cheaper_scaler_is_named(picture_of: Callable[..., Picture], ledger: LedgerStanding) -> None:
    """A regret is shown unasked: 7.5 - (5 + 0.25) = 2.25."""
    cheap = replace(ledger.accounts[1], replicas=5.0)
    picture = picture_of(replace(ledger, accounts=(ledger.accounts[0], cheap)))
    assert picture.sentence.endswith("keda-2000 would have cost least, 2.25 USD less.")
    assert drawn(picture)["yAxis"]["data"][0]["value"] == "keda-2000"


def test_where_none_can_be_told_apart_none_is_called_the_cheapest(
    picture_of: Callable[..., Picture], ledger: LedgerStanding
) -> None:
    """The first hour of a ledger."""
    picture = picture_of(replace(ledger, accounts=ledger.accounts[:1]))
    assert picture.sentence == "7.50 USD was paid in 24 h; no scaler's cost can be told apart from that."
