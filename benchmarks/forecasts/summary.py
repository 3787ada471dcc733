"""The summary of the results: each model of ours against the rivals, trace by trace and overall, and the bars."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

Document = dict[str, Any]
Results = Sequence[Document]

# The loads that models and constants were chosen on: reported, but apart from the others.
TUNED_ON = ("production-app-noisy-bursts", "nasa-http-july-flash-crowd", "worldcup98-buildup-weekly-growth")
QUANTILES = ("p50", "p90", "p95")
# `all` is the three losses added up.
FIGURES = ("all", *QUANTILES)
BARS = {
    "most_to_naive_mean": 0.80,
    "most_to_naive_worst": 1.02,
    "most_to_statsforecast_mean": 0.95,
    "least_inside": 0.86,
    "most_inside": 0.94,
    "least_inside_mean": 0.88,
    "most_inside_mean": 0.92,
    "most_short_forecast_cpu_ms": 50.0,
    "most_long_fit_cpu_ms": 2000.0,
    "most_fit_megabytes": 300.0,
}


def summary(results: Results) -> Document:
    """Each model of ours on each trace, overall figures without and with the traces tuned on, and missed bars."""
    scenarios = [
        scenario(result, results) for result in results if result["family"] == "ours" and result["why_not"] is None
    ]
    models = list(dict.fromkeys((each["term"], each["model"]) for each in scenarios))
    chosen = {model: [each for each in scenarios if each["model"] == model] for _, model in models}
    return {
        "bars": BARS,
        "scenarios": scenarios,
        "overall": [
            {
                "term": term,
                "model": model,
                "without_tuned_on": overall([each for each in chosen[model] if not each["tuned_on"]]),
                "with_tuned_on": overall(chosen[model]),
            }
            for term, model in models
        ],
        "missed": [line for each in scenarios for line in missed_by(each)],
    }


def scenario(result: Document, results: Results) -> Document:
    """One model of ours on one trace: its loss over that of the best naive rival and of statsforecast's best.

    The best rival is chosen for each figure separately, afterwards: it could not have been known before.
    """
    beside = [
        each
        for each in results
        if each["trace"] == result["trace"] and each["term"] == result["term"] and each["why_not"] is None
    ]
    return {
        "trace": result["trace"],
        "term": result["term"],
        "model": result["model"],
        "tuned_on": result["trace"] in TUNED_ON,
        "to_naive": ratios(result, [each for each in beside if each["family"] == "naive"]),
        "to_statsforecast": ratios(result, [each for each in beside if each["family"] == "statsforecast"]),
        "inside": result["inside"]["all"],
        "fit_cpu_ms": result["fit_cpu_ms"],
        "forecast_cpu_ms": result["forecast_cpu_ms"],
        "fit_megabytes": result["fit_megabytes"],
    }


def ratios(result: Document, rivals: Results) -> Document | None:
    """For each figure the loss over the least loss of the rivals, with that rival; None where there is no rival."""
    if not rivals:
        return None
    answer = {}
    for figure in FIGURES:
        best = min(rivals, key=lambda rival: loss(rival, figure))
        answer[figure] = {"ratio": loss(result, figure) / loss(best, figure), "rival": best["model"]}
    return answer


def loss(result: Document, figure: str) -> float:
    """The loss at one quantile over all steps, or that of the three together."""
    words = QUANTILES if figure == "all" else (figure,)
    return sum(float(result["losses"][word]["all"]) for word in words)


def overall(scenarios: Results) -> Document | None:
    """Mean and worst ratio of each figure, mean coverage, greatest times and memory; None without scenarios."""
    if not scenarios:
        return None
    return {
        "traces": len(scenarios),
        "to_naive": _mean_and_worst(scenarios, "to_naive"),
        "to_statsforecast": _mean_and_worst(scenarios, "to_statsforecast"),
        "inside_mean": fmean(each["inside"] for each in scenarios),
        "inside_least": min(each["inside"] for each in scenarios),
        "inside_most": max(each["inside"] for each in scenarios),
        "fit_cpu_ms": max(each["fit_cpu_ms"] for each in scenarios),
        "forecast_cpu_ms": max(each["forecast_cpu_ms"] for each in scenarios),
        "fit_megabytes": max(each["fit_megabytes"] for each in scenarios),
    }


def missed_by(figures: Document) -> list[str]:
    """The bars of each trace that are missed, as sentences."""
    where = f"{figures['model']} on {figures['trace']}"
    lines = [
        f"{where}: {figure} is {against['ratio']:.3f} of {against['rival']}'s"
        for figure, against in (figures["to_naive"] or {}).items()
        if not held(against["ratio"], most=BARS["most_to_naive_worst"])
    ]
    if not held(figures["inside"], least=BARS["least_inside"], most=BARS["most_inside"]):
        lines.append(f"{where}: the 90 % band holds {figures['inside']:.1%}")
    lines += [
        f"{where}: {said} {figures[name]:,.0f} {unit}"
        for name, bar, said, unit in limits(figures["term"])
        if not held(figures[name], most=bar)
    ]
    return lines


def limits(term: str) -> Iterable[tuple[str, float, str, str]]:
    """The bars of this term for time and memory: name, bar, words, unit."""
    if term == "short":
        yield "forecast_cpu_ms", BARS["most_short_forecast_cpu_ms"], "a forecast takes", "ms"
    else:
        yield "fit_cpu_ms", BARS["most_long_fit_cpu_ms"], "a fit takes", "ms"
    yield "fit_megabytes", BARS["most_fit_megabytes"], "a fit takes", "MB"


def held(value: float, *, least: float | None = None, most: float | None = None) -> bool:
    """True where the value lies between its bars, ends included."""
    return (least is None or value >= least) and (most is None or value <= most)


def _mean_and_worst(scenarios: Results, against: str) -> Document | None:
    compared = [each for each in scenarios if each[against] is not None]
    if not compared:
        return None
    answer = {}
    for figure in FIGURES:
        found = {each["trace"]: each[against][figure]["ratio"] for each in compared}
        worst = max(found, key=lambda trace: found[trace])
        answer[figure] = {"mean": fmean(found.values()), "worst": found[worst], "worst_trace": worst}
    return answer
