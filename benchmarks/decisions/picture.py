"""Draws the cost of pods against the share of late messages, one panel for each world."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes

from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.standings import FIXED, ScenarioSummary, standing_of
from benchmarks.decisions.worlds import ALL_WORLDS
from benchmarks.drawing import drawn
from replay.hindsight import HINDSIGHT
from replay.policies.catalogue import CATALOGUE

# Zero cannot be drawn on a logarithmic axis: one message in a million stands for none.
LEAST_LATE_SHARE = 1e-6
COLUMNS = 3


class Point(NamedTuple):
    """One policy in one world: means over the traces."""

    policy: str
    late_share: float
    pods_to_fixed: float


def draw(scenarios: Sequence[ScenarioSummary], path: Path) -> None:
    """The picture as SVG; the same scenarios give the same bytes."""
    worlds = [name for name in ALL_WORLDS if any(scenario.world == name for scenario in scenarios)]
    columns = min(COLUMNS, len(worlds))
    rows = -(-len(worlds) // columns)
    with drawn(path, size=(3.6 * columns, 3.2 * rows + 0.8)) as figure:
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axis, world in zip(axes.flat, worlds, strict=False):
            _panel(axis, world, points_of([scenario for scenario in scenarios if scenario.world == world]))
        for axis in axes.flat[len(worlds) :]:
            axis.set_visible(False)
        figure.supylabel("cost of pods over that of 40 for ever")
        figure.supxlabel("share of messages later than 10 s, mean over traces (left edge: none)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=3 * columns, loc="outside upper center")


def points_of(scenarios: Sequence[ScenarioSummary]) -> list[Point]:
    """One point for each policy that played in all of these scenarios."""
    policies = set.intersection(*({standing.policy for standing in scenario.standings} for scenario in scenarios))
    points = []
    for policy in sorted(policies):
        standings = [standing_of(scenario, policy) for scenario in scenarios]
        fixed = [
            standing_of(scenario, FIXED).pods if FIXED in policies else standing_of(scenario, HINDSIGHT).pods
            for scenario in scenarios
        ]
        late = max(fmean(standing.late_share for standing in standings), LEAST_LATE_SHARE)
        pods = fmean(standing.pods / base for standing, base in zip(standings, fixed, strict=True))
        points.append(Point(policy, late, pods))
    return points


def front_of(points: Sequence[Point]) -> list[Point]:
    """The points that no other point beats in both respects, the fewest late first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.late_share, point.pods_to_fixed)):
        if not front or point.pods_to_fixed < front[-1].pods_to_fixed:
            front.append(point)
    return front


def _panel(axis: Axes, world: str, points: Sequence[Point]) -> None:
    families: dict[str, list[Point]] = {}
    for point in points:
        if point.policy in CATALOGUE:
            families.setdefault(CATALOGUE[point.policy].family, []).append(point)
    colours = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]  # a listed map has them
    order = list(dict.fromkeys(entry.family for entry in CATALOGUE.values()))
    for family, members in sorted(families.items(), key=lambda item: order.index(item[0])):
        axis.plot(*_xy(members), "o", markersize=4, color=colours[order.index(family)], label=family)
    rivals = front_of([point for point in points if point.policy in CATALOGUE])
    axis.plot(*_xy(rivals), drawstyle="steps-post", linewidth=0.8, color="grey", label="rivals' front")
    for policy, marker in ((LAGCAST, "*"), (HINDSIGHT, "x")):
        axis.plot(
            *_xy([point for point in points if point.policy == policy]),
            marker,
            markersize=9,
            color="black",
            label=policy,
        )
    axis.set_xscale("log")
    axis.set_title(f"{world} ({ALL_WORLDS[world].pauses} pauses)")


def _xy(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [point.late_share for point in points], [point.pods_to_fixed for point in points]
