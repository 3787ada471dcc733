"""Throughput by replicas with contention between them."""

import pytest

from cost_model.physics.capacity import group_capacity
from cost_model.physics.scalability import Scalability
from forecasting.units import MessagesPerSecond, Partitions, Replicas


def test_contention_lowers_what_the_group_carries() -> None:
    """10 replicas of 100 messages/s with contention 0.05 carry 690 instead of 1,000; one alone keeps all."""
    shared = Scalability(contention=0.05, coherence=0.0)
    carried = [
        group_capacity(Replicas(n), partitions=Partitions(40), capacity=MessagesPerSecond(100.0), contention=shared)
        for n in (1, 10)
    ]
    assert carried == pytest.approx([100.0, 1000.0 / 1.45])


def test_coefficients_below_nothing_are_refused() -> None:
    """Replicas cannot add capacity to each other."""
    with pytest.raises(ValueError, match="cannot be negative"):
        Scalability(contention=-0.1, coherence=0.0)
