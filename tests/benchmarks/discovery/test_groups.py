"""The ten groups of the lab, their loads, and what a backlog of theirs shows."""

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.discovery.groups import DEPLOY_SECONDS, GROUPS, LabGroup
from benchmarks.discovery.stage import Look, experiment_of, orders
from recommender.deciding.account import PROFILE_FIGURES, STATE_FIGURES, STREAMS_FIGURES


def test_there_are_ten_groups_of_four_clients_three_protocols_and_streams() -> None:
    """Static members in one, state and its absence, a transactional producer, ids of an application's own."""
    groups = list(GROUPS.values())
    assert len(groups) == 10
    assert len({group.client for group in groups} - {"streams"}) >= 4
    assert {group.figures["protocol"] for group in groups} == {"eager", "cooperative", "kip848"}
    assert any(group.static for group in groups)
    assert {group.figures.get("stateful") for group in groups} >= {True, False}
    assert any(group.transactional for group in groups)
    assert any("client.id" in group.settings for group in groups)


def test_every_truth_is_a_figure_that_is_published() -> None:
    """And each group has the truth of those that Kafka shows of every group."""
    published = {*PROFILE_FIGURES, *STREAMS_FIGURES, *STATE_FIGURES, "members", "work_units", "capacity"}
    for group in GROUPS.values():
        assert group.truth.keys() <= published
        assert group.truth.keys() >= {"protocol", "client", "static_membership", "members", "work_units", "capacity"}


@pytest.mark.parametrize("group", GROUPS.values(), ids=lambda group: group.name)
def test_only_peak_days_ask_for_more_than_the_replicas_do(group: LabGroup) -> None:
    """And each day has as much to do as its replicas can."""
    rates = np.array([group.messages_per_second(share) for share in np.linspace(0.0, 1.0, 1440)])
    most = group.replicas * group.capacity
    assert (rates.max() > 1.1 * most) == (group.day == "peak")
    assert rates.min() > 0.1 * most
    assert rates.mean() < 0.75 * most
    # A replacement leaves a backlog for more than a minute of all that the replicas do.
    assert group.day != "deploy" or DEPLOY_SECONDS * rates.min() / (most - rates.min()) > 60.0


def test_members_join_with_the_settings_of_their_group() -> None:
    """A word each, behind those that every member has."""
    first = orders(GROUPS["stock"])[0].words.split(" ")
    assert first[:8] == ["start", "stock-0", "stock", "stock", "cooperative-sticky", "0", "66667", "stock-0"]
    assert {"session.timeout.ms=30000", "auto.commit.interval.ms=1000"} <= set(first[8:])
    assert len(orders(GROUPS["stock"])) == GROUPS["stock"].replicas


def looks(*lags: float, rate: float = 60.0) -> Sequence[Look]:
    """A look each half minute at a group of three that does 60 messages/s."""
    return [
        Look(minute=number / 2.0, members=3, lag=lag, committed=30.0 * rate * number) for number, lag in enumerate(lags)
    ]


def test_a_natural_experiment_is_a_whole_minute_of_backlog() -> None:
    """Three looks with 5 s of work behind; a backlog between two looks is none, nor one with a replica missing."""
    group = GROUPS["mail"]
    assert experiment_of(looks(0, 400, 400, 0, 0), group) is None
    shown = experiment_of(looks(0, 400, 500, 400, 0), group)
    assert shown is not None
    assert (shown.minutes, shown.first_minute) == (1.0, 1.5)
    assert shown.messages_per_second_per_replica == pytest.approx(20.0)
    with_two = [
        Look(minute=each.minute, members=2, lag=each.lag, committed=each.committed) for each in looks(*[400] * 5)
    ]
    assert experiment_of(with_two, group) is None
