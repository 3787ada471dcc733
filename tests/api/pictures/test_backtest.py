"""Backtests as lines: the error and the coverage of each model, by how far it looked ahead."""

from math import nan

import numpy as np
import pytest

from api.pictures.backtest import NOMINAL_PERCENT, coverages, errors
from forecasting.backtest import Backtest
from forecasting.forecast import QUANTILES
from tests.api.pictures.laws import drawn, series, titles

STEPS = (1, 2)


def judged(model: str, off: float, *, second: float = 100.0) -> Backtest:
    """Ten origins of a load of 100 messages/s; every quantile is so far above it, but p05, as far below."""
    paths = np.full((10, len(QUANTILES), 2), 100.0 + off)
    paths[:, QUANTILES.index(0.05)] = 100.0 - off
    actuals = np.column_stack([np.full(10, 100.0), np.full(10, second)])
    return Backtest(model=model, origins=np.arange(10), actuals=actuals, paths=paths)


def test_the_error_is_a_share_of_the_mean_load() -> None:
    """Each is off by 10 of 100: its loss at each quantile is 10 (1 - q), and 10 x 0.05 for p05, which is below."""
    losses = [10 * (1 - quantile) if quantile != 0.05 else 0.5 for quantile in QUANTILES]
    picture = errors([judged("blend", 10.0), judged("persistence", 20.0)], steps=STEPS, ours="blend")
    option = drawn(picture)
    assert titles(option) == ["minutes ahead", "pinball loss, % of the mean load"]
    blend = series(option, "blend")
    assert blend["data"] == [[1, pytest.approx(np.mean(losses))], [2, pytest.approx(np.mean(losses))]]
    assert picture.table.column("blend") == tuple(value for _, value in blend["data"])
    assert picture.table.column("minutes_ahead") == STEPS
    assert picture.sentence.startswith("At 2 min ahead blend is off by 3.")
    assert "; the best other model, persistence, by " in picture.sentence


def test_lines_differ_without_their_colours_and_ours_is_the_thick_one() -> None:
    """Each pair of mark and dash is that of one model."""
    models = ["a", "b", "c", "d", "e", "ours"]
    option = drawn(errors([judged(model, 5.0) for model in models], steps=STEPS, ours="ours"))
    assert len({(line["symbol"], line["lineStyle"]["type"]) for line in option["series"]}) == len(models)
    assert [line["name"] for line in option["series"] if line["lineStyle"]["width"] == 3] == ["ours"]


def test_coverage_stands_beside_the_nominal_nine_tenths() -> None:
    """All that came lay in the band of the first model one minute ahead, and above it two minutes ahead."""
    picture = coverages([judged("blend", 10.0, second=150.0)], steps=STEPS, ours="blend")
    option = drawn(picture)
    assert series(option, "blend")["data"] == [[1, 100.0], [2, 0.0]]
    assert series(option, "90 %")["data"] == [[1, NOMINAL_PERCENT], [2, NOMINAL_PERCENT]]
    assert titles(option) == ["minutes ahead", "inside the 90 % band, %"]
    assert picture.sentence == "Of what came, 0 to 100 % lay in the band of blend, and 90 % should."


def test_where_nothing_is_known_of_what_came_the_line_has_a_gap() -> None:
    """Not 0, and no line across it."""
    picture = coverages([judged("blend", 10.0, second=nan)], steps=STEPS, ours="blend")
    assert series(drawn(picture), "blend")["data"] == [[1, 100.0], [2, None]]
    lone = errors([judged("blend", 10.0, second=nan)], steps=STEPS, ours="blend")
    assert series(drawn(lone), "blend")["data"][1] == [2, None]
    assert lone.sentence.startswith("At 1 min ahead blend is off by ")
