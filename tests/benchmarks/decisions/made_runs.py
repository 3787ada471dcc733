"""Runs with figures of one's choice, for tests of what is computed from runs."""

from dataclasses import replace

from benchmarks.decisions.tournament import Run, family_of


def run(policy: str, cost: float, *, world: str = "fine", seed: int = 0, **figures: float) -> Run:
    """A run with this cost, all of it for pods."""
    blank = Run(
        trace="load",
        world=world,
        seed=seed,
        day="2026-01-05T00:00:00+00:00",
        policy=policy,
        family=family_of(policy),
        cost=cost,
        pods=cost,
        late=0.0,
        duplicates_cost=0.0,
        mean_replicas=10.0,
        mean_lag_messages=100.0,
        wait_p95=0.0,
        wait_p99=0.0,
        late_share=0.0,
        moves=0,
        rebalances=0,
        rebalancing_minutes=0.0,
        paused_partition_seconds=0.0,
        seconds_of_cpu=0.0,
        note="",
    )
    return replace(blank, **figures)  # type: ignore[arg-type]  # figures are numbers, all of them
