"""Shards: each group is in exactly one, in every process the same one, and none has many more than the others."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.shards import Shard, shard_of

NAMES = st.text(max_size=50)


@given(cluster=NAMES, group=NAMES, count=st.integers(min_value=1, max_value=100))
def test_each_group_is_in_exactly_one_shard(cluster: str, group: str, count: int) -> None:
    """Whatever its name and that of its cluster, and however many shards there are."""
    owners = [number for number in range(1, count + 1) if Shard(number, count).owns(cluster, group)]
    assert owners == [shard_of(cluster, group, count=count)]


@pytest.mark.parametrize("count", range(2, 11))
@pytest.mark.parametrize("form", ["orders-{n}", "{n:05}", "team-{t:02}.service-{n}.consumer"])
def test_no_shard_is_more_than_a_tenth_from_its_share(form: str, count: int) -> None:
    """Of 10,000 names that differ in a few digits, as generated ones do."""
    names = {form.format(n=number, t=number % 40) for number in range(10_000)}
    sizes = Counter(shard_of("prod", name, count=count) for name in names)
    share = len(names) / count
    assert all(abs(sizes[number] - share) <= 0.1 * share for number in range(1, count + 1))


def test_a_child_process_chooses_as_its_parent_does() -> None:
    """The collector's is given the choice itself."""
    shard = Shard(2, 3)
    choice = pickle.loads(pickle.dumps(shard.owns))  # noqa: S301  # our own bytes
    assert [choice("prod", str(number)) for number in range(50)] == [
        shard.owns("prod", str(number)) for number in range(50)
    ]


@pytest.mark.parametrize("text", ["0/3", "4/3", "a", "1/0", "", "1", "-1/3", "1/3/3", "1.0/3", "٢/3"])
def test_what_is_no_shard_is_refused_with_a_sentence(text: str) -> None:
    """It has the value, the form and an example."""
    with pytest.raises(ValueError, match=r"is no shard; give K/N with 1 <= K <= N, such as 2/3") as refused:
        Shard.of(text)
    assert repr(text) in str(refused.value)
