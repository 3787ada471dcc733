"""The week as cells: each the mean of its hour, and none where nothing was measured."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import nan
from zoneinfo import ZoneInfo

import pytest

from api.pictures.calendar import UNKNOWN, calendar
from api.pictures.picture import Column
from tests.api.pictures.laws import drawn, series

RATE = Column(name="produce_messages_per_second", title="Produce rate, messages/s")
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def weeks(count: int) -> Iterator[tuple[datetime, float]]:
    """Every half hour of so many weeks: the number of the week times 100, and the hour of the week."""
    for half in range(count * 7 * 48):
        hour = half // 2
        yield MONDAY + timedelta(minutes=30 * half), 100.0 * (hour // 168) + hour % 168


def test_each_hour_of_the_week_is_the_mean_of_its_values() -> None:
    """Two weeks: Tuesday 01:00 is hour 25, once with 0 and once with 100: 75."""
    picture = calendar(weeks(2), RATE, title="When load comes")
    option = drawn(picture)
    heat = series(option, RATE.title)
    assert len(heat["data"]) == 168
    assert [1, 1, 75.0] in heat["data"]
    assert (option["visualMap"]["min"], option["visualMap"]["max"]) == (50.0, 217.0)
    assert option["visualMap"]["text"] == ["217 Produce rate, messages/s", "50"]
    assert option["xAxis"]["name"] == "hour of the day, UTC"
    assert picture.sentence == "Produce rate, messages/s: 217 at most, Sun 23:00 UTC, and 50 at least, Mon 00:00."


def test_the_table_has_every_cell_and_says_which_are_unknown() -> None:
    """Two hours of a Monday were measured, one of them with no number in it: 167 cells stay empty, none is 0."""
    picture = calendar([(MONDAY, 5.0), (MONDAY, None), (MONDAY + timedelta(hours=1), nan)], RATE, title="Load")
    option = drawn(picture)
    assert series(option, RATE.title)["data"] == [[0, 0, 5.0]]
    struck = series(option, UNKNOWN)["data"]
    assert (len(struck), struck[0]) == (167, [1, 0])
    assert picture.table.column("produce_messages_per_second") == (5.0, *[None] * 167)
    assert picture.sentence.endswith("Nothing was measured in 167 of 168 hours.")


def test_of_nothing_the_picture_is_empty_and_says_so() -> None:
    """No scale is made up that cells would have to lie on."""
    picture = calendar([], RATE, title="Load")
    assert series(drawn(picture), RATE.title)["data"] == []
    assert picture.sentence == "Produce rate, messages/s: nothing was measured."


@pytest.mark.parametrize(("zone", "day"), [("Europe/Berlin", "Mon"), ("America/New_York", "Sun")])
def test_hours_are_those_of_the_zone(zone: str, day: str) -> None:
    """Midnight of a Monday in UTC is one in the morning in Berlin and Sunday evening in New York."""
    picture = calendar([(MONDAY, 5.0)], RATE, title="Load", zone=ZoneInfo(zone), zone_name=zone)
    assert [row[0] for row in picture.table.rows if row[2] is not None] == [day]
    assert drawn(picture)["xAxis"]["name"] == f"hour of the day, {zone}"
