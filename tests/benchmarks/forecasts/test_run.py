"""The comparison of forecasters: origins, the summary of results, and the command from traces to page."""

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.forecasts import run
from benchmarks.forecasts.judge import MOST_FIT_SECONDS, MinuteLoad, NoAnswerError, granted, limited, origins_of
from benchmarks.forecasts.models import MODELS, TERMS
from benchmarks.forecasts.summary import summary
from forecasting.backtest import history_of
from replay.workload import START_AT, orders_workload

Document = dict[str, Any]


def result_of(trace: str, model: str, family: str, losses: tuple[float, float, float], **others: object) -> Document:
    """A hand-made result of the short term; `losses` at p50, p90 and p95."""
    spans = ("all", "1-5 min", "6-20 min", "21-60 min")
    return {
        "trace": trace,
        "model": model,
        "term": "short",
        "family": family,
        "code": "0",
        "why_not": None,
        "origins": 50,
        "losses": {
            word: dict.fromkeys(spans, value) for word, value in zip(("p50", "p90", "p95"), losses, strict=True)
        },
        **{figure: dict.fromkeys(spans, 0.9) for figure in ("inside", "under_p90", "wape")},
        "ramps": 0,
        "ramp_under_p90": None,
        "fit_cpu_ms": 80.0,
        "forecast_cpu_ms": 1.0,
        "fit_megabytes": 20.0,
        **others,
    }


RESULTS = [
    result_of("calm", "persistence", "naive", (0.10, 0.06, 0.04)),
    result_of("calm", "seasonal_naive", "naive", (0.20, 0.05, 0.05)),
    result_of("calm", "sf", "statsforecast", (0.10, 0.04, 0.02)),
    result_of("calm", "blend", "ours", (0.07, 0.04, 0.03)),
    result_of("nasa-http-july-flash-crowd", "persistence", "naive", (0.10, 0.05, 0.05)),
    result_of("nasa-http-july-flash-crowd", "blend", "ours", (0.11, 0.05, 0.04), fit_megabytes=301.0),
]


# The summary of results


def test_each_loss_is_compared_with_the_best_rival_of_its_own_figure() -> None:
    """0.07 / 0.10 to persistence at p50, 0.04 / 0.05 to the season at p90, 0.14 / 0.20 for all three together."""
    assert summary(RESULTS)["scenarios"][0]["to_naive"] == {
        "all": {"ratio": pytest.approx(0.70), "rival": "persistence"},
        "p50": {"ratio": pytest.approx(0.70), "rival": "persistence"},
        "p90": {"ratio": pytest.approx(0.80), "rival": "seasonal_naive"},
        "p95": {"ratio": pytest.approx(0.75), "rival": "persistence"},
    }


def test_overall_figures_come_with_and_without_the_traces_tuned_on() -> None:
    """Without them it is the calm trace alone; with them the mean of 0.7 and 1.1, the flash crowd's being worst."""
    (blend,) = summary(RESULTS)["overall"]
    assert blend["without_tuned_on"]["to_naive"]["p50"]["mean"] == pytest.approx(0.7)
    assert blend["with_tuned_on"]["to_naive"]["p50"] == {
        "mean": pytest.approx(0.9),
        "worst": pytest.approx(1.1),
        "worst_trace": "nasa-http-july-flash-crowd",
    }


def test_a_trace_without_a_rival_is_left_out_of_that_mean() -> None:
    """The other library was only on the calm trace: 0.14 over 0.16."""
    (blend,) = summary(RESULTS)["overall"]
    assert blend["with_tuned_on"]["to_statsforecast"]["all"]["mean"] == pytest.approx(0.14 / 0.16)
    assert summary(RESULTS)["scenarios"][1]["to_statsforecast"] is None


def test_a_missed_bar_is_named() -> None:
    """The model is 10 % over the better rival's median and a megabyte too large; the calm trace holds every bar."""
    assert summary(RESULTS)["missed"] == [
        "blend on nasa-http-july-flash-crowd: p50 is 1.100 of persistence's",
        "blend on nasa-http-july-flash-crowd: a fit takes 301 MB",
    ]


def test_a_model_that_gave_no_answer_is_no_rival() -> None:
    """It is no scenario of ours either; the page names it instead."""
    silent = {**result_of("calm", "slow", "naive", (0, 0, 0)), "why_not": "a fit took more than 120 s", "losses": {}}
    assert summary([*RESULTS, silent]) == summary(RESULTS)


# Origins and naive forecasts


def test_origins_are_spread_evenly_and_leave_room_for_the_last_forecast() -> None:
    """Fifty over the second two weeks of four, each 4.5 to 4.9 hours after the one before."""
    (load,) = run.own_loads()
    term = TERMS["short"]
    origins = origins_of(load, term, count=50)
    assert len(origins) == 50
    assert (origins[0], origins[-1]) == (14 * 1440, 28 * 1440 - 61)
    assert np.ptp(np.diff(origins)) <= 1


def test_a_short_trace_is_judged_on_its_last_days() -> None:
    """Origins are in the last three days; a week ahead leaves one day of fifteen, at whole five minutes."""
    load = MinuteLoad.of(orders_workload(days=15))
    hour, week = (origins_of(load, term, count=50) for term in TERMS.values())
    assert (hour[0], week[0]) == (12 * 1440 - 1, 7 * 1440 - 1)
    assert {(START_AT + timedelta(minutes=origin + 1)).minute % 5 for origin in week} == {0}
    assert run.left_out_of(load) == []


def test_the_week_before_is_repeated_in_phase() -> None:
    """Of a load that repeats each week every quantile is the week itself, in means of five minutes."""
    assert MODELS["naive_week"].term == "long"
    week = 1_000.0 + np.random.default_rng(3).uniform(0.0, 500.0, 7 * 1440)
    history = history_of(np.tile(week, 2), end_at=START_AT)
    fitted = granted(MODELS["naive_week"].make().fit(history))
    forecast = granted(fitted.forecast(history, steps=2016))
    assert forecast.step_seconds == 300
    assert forecast.paths == pytest.approx(np.tile(week.reshape(-1, 5).mean(axis=1), (8, 1)))


def test_rivals_from_elsewhere_give_ascending_paths_that_are_never_negative() -> None:
    """An hour of minutes, or a week of five minutes, from two weeks of the project's own workload."""
    assert {each.family for name, each in MODELS.items() if name.startswith("sf_")} == {"statsforecast"}
    load = MinuteLoad.of(orders_workload(days=14))
    history = load.until(len(load.rates) - 1, minutes=14 * 1440)
    for name in ("sf_auto_ets", "sf_seasonal_naive", "sf_mstl_hours", "sf_auto_ets_long"):
        term = TERMS[MODELS[name].term]
        paths = granted(granted(MODELS[name].make().fit(history)).forecast(history, steps=term.steps)).paths
        assert paths.shape == (8, term.steps)
        assert paths.min() >= 0.0
        assert np.diff(paths, axis=0).min() >= 0.0


def test_a_fit_that_takes_too_long_is_stopped() -> None:
    """The sentence has the time limit."""
    assert MOST_FIT_SECONDS == 120
    with pytest.raises(NoAnswerError, match=r"more than 0\.01 s"), limited(0.01):
        time.sleep(10.0)


# The command


def test_an_unknown_model_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The error lists all models, and the exit code is 2."""
    monkeypatch.setattr("sys.argv", ["forecasts", "--models", "persistence,oracle"])
    with pytest.raises(SystemExit, match="2"):
        run.main()
    assert "there is no 'oracle'; there are persistence, seasonal_naive" in capsys.readouterr().err


def test_the_page_comes_from_the_json_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the same twice, marks each missed bar and names what was not scored."""
    silent = {**result_of("calm", "slow", "naive", (0, 0, 0)), "why_not": "a fit took more than 120 s", "losses": {}}
    out = tmp_path / "forecasts.json"
    out.write_text(run.text_of([*RESULTS, silent], ["brief lasts 2.0 days"], 50))
    pages = []
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["forecasts", "--page", str(out)])
        assert run.main() == 0
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1]
    assert "| blend | not tuned on (1) | p50 | 0.700 | 0.700 (calm) |" in pages[0]
    assert (
        "| blend | all (2) | p50 | **0.900** (missed) | **1.100** (missed) (nasa-http-july-flash-crowd) |" in pages[0]
    )
    assert "slow is not scored: a fit took more than 120 s." in pages[0]
    assert "  - brief lasts 2.0 days\n" in pages[0]


@pytest.mark.slow
def test_the_command_judges_and_continues_from_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace of ten days, one too short, two models: JSON, a line each; a second run has nothing left to do."""
    monkeypatch.setattr(run, "own_loads", list)
    rates = orders_workload(days=10).messages_per_second
    for name, minutes in (("ten-days", 14_400), ("one-day", 1_440)):
        rows = [f"{(START_AT + timedelta(minutes=m)).isoformat()},{rates[m]}" for m in range(minutes)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["timestamp,messages_per_second", *rows, ""]))
    out = tmp_path / "new" / "forecasts.json"
    argv = ["forecasts", "--traces", str(tmp_path), "--out", str(out), "--jobs", "1", "--origins", "5"]
    monkeypatch.setattr("sys.argv", [*argv, "--models", "persistence,seasonal_short_blend,naive_week"])
    assert run.main() == 0
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == f"0 of 2 are in {out}"
    assert "left out: one-day lasts 1.0 days; the short term needs 9" in printed
    assert "2/2" in printed[-1]

    document = json.loads(out.read_text())
    assert [each["model"] for each in document["results"]] == ["persistence", "seasonal_short_blend"]
    for each in document["results"]:
        assert each["origins"] == 5
        assert 0.0 <= each["inside"]["all"] <= 1.0
        assert min(each["fit_cpu_ms"], each["forecast_cpu_ms"], each["fit_megabytes"]) > 0.0
    (scenario,) = document["summary"]["scenarios"]
    assert (scenario["trace"], scenario["model"], scenario["tuned_on"]) == ("ten-days", "seasonal_short_blend", False)

    written = out.read_bytes()
    assert run.main() == 0
    assert capsys.readouterr().err.splitlines()[0] == f"2 of 2 are in {out}"
    assert out.read_bytes() == written
