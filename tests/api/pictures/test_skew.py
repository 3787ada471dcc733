"""Partitions as bars, the busiest first, beside what one replica consumes."""

from api.pictures.picture import LIGHT, MOST_POINTS
from api.pictures.skew import CAPACITY, LAG, PARTITIONS, partition_skew, skew
from api.schemas import GroupPartitions
from tests.api.pictures.laws import drawn, series

RATES = [("orders-0", 100.0), ("orders-1", 500.0), ("orders-2", None), ("orders-3", 300.0)]


def test_partitions_are_sorted_by_what_they_get_and_the_unknown_is_last() -> None:
    """500, 300 and 100 messages/s; what is not known is no bar of 0."""
    picture = skew(RATES, 400.0)
    option = drawn(picture)
    assert option["xAxis"]["data"] == ["orders-1", "orders-3", "orders-0", "orders-2"]
    bars = [bar["value"] if isinstance(bar, dict) else bar for bar in series(option, PARTITIONS)["data"]]
    assert bars == [500.0, 300.0, 100.0, None]
    assert list(picture.table.column("produce_messages_per_second")) == bars
    assert [axis["name"] for axis in option["yAxis"]] == ["messages/s", "lag, messages"]


def test_a_partition_that_no_replica_can_follow_is_seen_and_told() -> None:
    """500 of 400: another colour and a pattern; 500 over the mean of 300 is 1.7."""
    picture = skew(RATES, 400.0)
    option = drawn(picture)
    marked = [bar for bar in series(option, PARTITIONS)["data"] if isinstance(bar, dict)]
    assert [bar["itemStyle"]["color"] for bar in marked] == [LIGHT.bad]
    assert marked[0]["itemStyle"]["decal"] != series(option, PARTITIONS)["itemStyle"]["decal"]
    assert series(option, CAPACITY)["data"] == [400.0] * 4
    assert picture.sentence == (
        "The busiest of 4 partitions, orders-1, gets 500 messages/s, 1.7 times the mean; one replica consumes 400, "
        "and 1 gets more than that."
    )


def test_without_a_capacity_there_is_no_line() -> None:
    """Not one at 0, which every partition would be above."""
    picture = skew(RATES, None)
    option = drawn(picture)
    assert series(option, CAPACITY)["data"] == [None] * 4
    assert not any(isinstance(bar, dict) for bar in series(option, PARTITIONS)["data"])
    assert picture.sentence.endswith("; what one replica consumes is not known.")


def test_where_nothing_is_produced_no_partition_is_the_busiest() -> None:
    """Nor does the mean of nothing end in an error."""
    for rates in ([], [("orders-0", None)], [("orders-0", 0.0)]):
        assert skew(rates, 400.0).sentence == "Nothing is known to be produced into any partition."


def test_of_very_many_partitions_the_busiest_are_drawn() -> None:
    """The table has them all."""
    picture = skew(((f"t-{number}", float(number)) for number in range(MOST_POINTS + 500)), 1.0)
    assert drawn(picture)["xAxis"]["data"][0] == f"t-{MOST_POINTS + 499}"
    assert len(picture.table.rows) == MOST_POINTS + 500


def test_a_group_on_the_wire_has_its_lags_beside_its_rates() -> None:
    """In the order of the bars, on an axis of their own; what was left out is counted."""
    loads = [
        {"topic": "t", "partition": 0, "produce_messages_per_second": 100.0, "lag_messages": 700},
        {"topic": "t", "partition": 1, "produce_messages_per_second": 500.0, "lag_messages": 100},
        {"topic": "t", "partition": 2},
    ]
    instant = "2026-01-05T12:00:00Z"
    words = {"group_key": "k", "cluster": "c", "group_id": "g", "since_at": instant, "until_at": instant}
    sent = GroupPartitions.model_validate({**words, "partitions": 5, "loads": loads})
    picture = partition_skew(sent)
    option = drawn(picture)
    assert option["xAxis"]["data"] == ["t-1", "t-0", "t-2"]
    assert (series(option, LAG)["data"], series(option, LAG)["yAxisIndex"]) == ([100, 700, None], 1)
    assert picture.table.column("lag_messages") == (100, 700, None)
    assert picture.sentence.endswith(" Of 800 waiting messages 700 are in t-0. The 2 least busy ones are left out.")
    assert "no message waits" in skew([("t-0", 1.0)], None, {"t-0": 0}).sentence.lower()
