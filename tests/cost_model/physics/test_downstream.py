"""A limit behind the group: scale-outs that bring nothing, told from what looks like them."""

from dataclasses import replace

import numpy as np
import pytest

from cost_model.physics.downstream import downstream_limit, scale_out_gain
from cost_model.physics.profile import GroupProfile
from forecasting.units import MessagesPerSecond, Partitions

PROFILE = GroupProfile(cluster="east", group="orders", partitions=Partitions(40), capacity=None)


def test_b23_a_capped_sink_is_found_after_one_scale_out_in_vain() -> None:
    """8 replicas and then 14 consume 820 messages/s with a backlog: a limit behind the group, and no third try."""
    counts, rates = np.array([8, 8, 14, 14]), np.array([815.0, 825.0, 822.0, 826.0])
    found = downstream_limit(PROFILE, replicas=counts, rates=rates, saturated=np.ones(4, dtype=bool))
    assert found is not None
    assert found.replicas_seen == (8, 14)
    assert found.limit_messages_per_second == pytest.approx(822.0)
    assert "8 and 14 replicas all consumed about 822 messages/s" in found.sentence
    assert "brought 1% of what it should have" in found.sentence


@pytest.mark.parametrize(
    ("counts", "rates", "saturated", "why"),
    [
        ([8, 14], [800.0, 1300.0], [True, True], "the scale-out helped"),
        ([8, 14], [800.0, 810.0], [True, False], "nothing was left to consume"),
        ([20, 30], [2000.0, 2000.0], [True, True], "30 replicas are on the same useful count as 20"),
        ([8], [800.0], [True], "one count is no scale-out"),
        ([8, 14, 20], [400.0, 410.0, 1900.0], [True, True, True], "the last scale-out helped: the limit has moved"),
    ],
)
def test_no_limit_is_claimed_without_a_scale_out_in_vain(
    counts: list[int], rates: list[float], saturated: list[bool], why: str
) -> None:
    """Only a backlog at two counts that should differ, and did not, is evidence."""
    found = downstream_limit(
        PROFILE, replicas=np.array(counts), rates=np.array(rates), saturated=np.array(saturated, dtype=bool)
    )
    assert found is None, why


def test_a_hot_partition_is_not_mistaken_for_a_sink() -> None:
    """Unchanged throughput is no surprise if the weights give 14 replicas the capacity of 8."""
    hot = replace(PROFILE, partition_weights=(1000.0, *(0.01,) * 39))
    counts, rates, full = np.array([8, 14]), np.array([100.0, 100.0]), np.ones(2, dtype=bool)
    assert downstream_limit(hot, replicas=counts, rates=rates, saturated=full) is None
    assert downstream_limit(PROFILE, replicas=counts, rates=rates, saturated=full) is not None
    assert scale_out_gain(MessagesPerSecond(100.0), MessagesPerSecond(100.0), expected=MessagesPerSecond(100.0)) is None
