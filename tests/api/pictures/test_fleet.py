"""The fleet as boxes: as large as what a group costs by the hour, as dark as what its advice saves."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from api.parts import Ledger, LedgerItems
from api.pictures.fleet import BOXES, fleet
from api.pictures.picture import MOST_POINTS
from api.schemas import GroupLedger, GroupSummary
from tests.api.pictures.laws import drawn

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def summary(group: str, saving: float | None = None, currency: str = "USD") -> GroupSummary:
    """The last decision on a group."""
    return GroupSummary(
        group_key=group,
        cluster="prod-eu",
        group_id=group,
        kind="Recommendation",
        recommendation_id="r",
        reason_code="ramp_ahead",
        issued_at=NOW,
        saving=saving,
        currency=currency,
    )


def ledgers(paid: Iterable[tuple[str, float]], *, hours: float = 24, currency: str = "USD") -> dict[str, GroupLedger]:
    """A ledger of so many hours for each group."""
    return {
        group: GroupLedger(
            group_key=group,
            cluster="prod-eu",
            group_id=group,
            issued_at=NOW,
            ledger=Ledger(
                since_at=NOW - timedelta(hours=hours),
                currency=currency,
                paid=LedgerItems(replicas=total, late=0.0, total=total),
                accounts=(),
            ),
        )
        for group, total in paid
    }


def test_a_box_is_as_large_as_its_group_costs_by_the_hour() -> None:
    """24 in a day is 1 an hour, and 2 in the first two hours as well: a young ledger does not look cheap."""
    kept = ledgers([("orders", 48.0), ("old", 24.0)]) | ledgers([("new", 2.0)], hours=2)
    (picture,) = fleet([summary("new"), summary("old", 0.25), summary("orders", 0.5)], kept)
    option = drawn(picture)
    (tree,) = option["series"]
    assert [(box["name"], box["value"]) for box in tree["data"]] == [
        ("orders", [2.0, 0.5]),
        ("new", [1.0, None]),
        ("old", [1.0, 0.25]),
    ]
    table = zip(*(picture.table.column(name) for name in ("group_id", "cost_per_hour", "saving")), strict=True)
    assert list(table) == [("orders", 2.0, 0.5), ("new", 1.0, None), ("old", 1.0, 0.25)]
    assert option["visualMap"]["max"] == 0.5
    assert tree["data"][0]["label"]["formatter"] == "{b}\n2 USD/h\nsaves 0.500"
    assert tree["data"][1]["label"]["formatter"] == "{b}\n1 USD/h\nsaving unknown"
    assert picture.sentence == (
        "3 groups cost 4 USD/h together; the advice in force would save 0.750 USD over its horizon, "
        "most of it in orders."
    )


def test_groups_without_a_price_are_a_picture_of_their_own_in_pod_hours() -> None:
    """Dollars and pod-hours have no sum, and their boxes are not beside each other."""
    kept = ledgers([("orders", 48.0)]) | ledgers([("audit", 72.0)], currency="pod-hours")
    pictures = fleet([summary("orders"), summary("audit", 0.1, "pod-hours")], kept)
    assert [[box["name"] for box in drawn(each)["series"][0]["data"]] for each in pictures] == [["orders"], ["audit"]]
    assert [each.table.columns[3].title for each in pictures] == ["Cost, USD/h", "Cost, pod-hours/h"]


def test_a_group_without_a_ledger_is_said_to_be_missing() -> None:
    """It has no box of size 0."""
    (picture,) = fleet([summary("orders"), summary("new")], ledgers([("orders", 24.0)]))
    assert picture.sentence == (
        "1 group costs 1 USD/h together; the advice in force would save 0 USD over its horizon. "
        "Nothing is counted yet for 1 more."
    )
    assert fleet([summary("new")], {}) == ()


def test_a_saving_in_another_currency_than_the_ledger_is_not_known() -> None:
    """The price of replicas became known after the ledger began."""
    (picture,) = fleet([summary("orders", 0.5, "USD")], ledgers([("orders", 24.0)], currency="pod-hours"))
    assert picture.table.column("saving") == (None,)


@pytest.mark.parametrize("count", [BOXES + 1, MOST_POINTS * 2])
def test_of_many_groups_the_cheapest_are_one_box(count: int) -> None:
    """Nothing is left out of the sum; the table has them all."""
    groups = [f"g{number}" for number in range(count)]
    (picture,) = fleet([summary(group, 1.0) for group in groups], ledgers((group, 24.0) for group in groups))
    boxes = drawn(picture)["series"][0]["data"]
    assert len(boxes) == BOXES + 1
    assert (boxes[-1]["name"], boxes[-1]["value"][0]) == (f"{count - BOXES} others", count - BOXES)
    assert len(picture.table.rows) == count
