"""The page of a comparison of forecasters, from its JSON alone."""

from typing import Any

from benchmarks.command import aged, table
from benchmarks.forecasts.summary import FIGURES, held, limits

Document = dict[str, Any]

INTRODUCTION = """# Forecasts, measured

How far off forecasts are on recorded loads, beside what they have to beat. All of this page is written from one JSON
document, [forecasts.json](forecasts.json) beside it, and that by one command:

    make bench-forecasts TRACES=DIR OUT=FILE
    python -m benchmarks.forecasts --page FILE > docs/forecasts.md

- **Terms.**{terms}
- **Origins.** {origins} for each trace, the same for every model, spread evenly from the fifteenth day on, or over the
  last three days (one for the long term) of a shorter trace. Each forecast knows what came before its origin alone; the
  parameters were learnt at most six hours earlier. Loads of finer steps than a minute are averaged, coarser ones
  repeated, which flatters every model alike some minutes ahead.
- **Left out.**{left_out}
- **Losses** are pinball losses as shares of the trace's mean load; the WAPE of the median is relative to what came.
  `inside` is the share of actuals between p05 and p95: 90 % is ideal. Ratios are losses over those of the best rival,
  chosen afterwards for each trace and figure; `all` adds the losses at p50, p90 and p95.
- **statsforecast** (`sf_...`) is fitted anew at each origin, on rates as they are, and gives its own intervals. For the
  hour: AutoETS and AutoCES on the last day of minutes, MSTL with a season of a day (AutoETS for the rest) on the last
  seven, the seasonal naive on fourteen. For the week: MSTL with day and week and the seasonal naive of a week on means
  of five minutes, MSTL again, AutoETS and AutoCES (a season of a day) on means of an hour, each for its twelve steps.
- **Tuned on.** Models and constants were chosen on
  {tuned_on}. They are shown, but overall figures come
  without them first.
- **Time and memory.** Medians of CPU time, on whatever machine ran this. Memory is the peak that Python and numpy
  allocated during one fit; what compiled libraries take by themselves is not in it. A fit may take
  {most_fit_seconds:g} s by the clock; a model that takes longer, or refuses, is not scored on that trace.

Versions: {versions}.
"""

BARS = """## Overall

The bars: loss at most {most_to_naive_mean:.2f} of the better naive rival's on average, on no trace above
{most_to_naive_worst:.2f}; at most {most_to_statsforecast_mean:.2f} of statsforecast's best on average; the 90 % band
holds {least_inside:.0%} to {most_inside:.0%} of each trace and {least_inside_mean:.0%} to {most_inside_mean:.0%} on
average; a short forecast takes at most {most_short_forecast_cpu_ms:g} ms, a long fit at most
{most_long_fit_cpu_ms:g} ms, a fit at most {most_fit_megabytes:g} MB. What misses its bar is marked.

"""


def write_page(document: Document) -> None:
    """The page on stdout."""
    parts = [_introduction(document), *_overall(document)]
    for name, term in document["terms"].items():
        results = [each for each in document["results"] if each["term"] == name]
        if results:
            parts.append(_term(name, term, results, document["tuned_on"]))
    print(aged("\n".join(parts), document), end="")


def _introduction(document: Document) -> str:
    terms = "".join(
        f"\n    - {name}: {term['steps']:,} steps of {term['step_minutes']} min, from "
        f"{term['history_minutes'] // 1440} days of history at most, on traces of {term['least_days']} days or more"
        for name, term in document["terms"].items()
    )
    return INTRODUCTION.format(
        terms=terms,
        origins=document["origins"],
        left_out="".join(f"\n    - {line}" for line in document["left_out"]) or " No trace.",
        tuned_on=" and ".join(f"`{name}`" for name in document["tuned_on"]),
        most_fit_seconds=document["most_fit_seconds"],
        versions=", ".join(f"{name} {version}" for name, version in document["versions"].items()),
    )


def _overall(document: Document) -> list[str]:
    whole = document["summary"]
    bars = whole["bars"]
    head = (
        *("model", "traces", "figure", "/ naive, mean", "worst", "/ statsforecast, mean", "worst"),
        *("inside, mean", "inside, range", "fit ms", "forecast ms", "MB"),
    )
    rows = []
    for each in whole["overall"]:
        for words, key in (("not tuned on", "without_tuned_on"), ("all", "with_tuned_on")):
            group = each[key]
            if group is None:
                continue
            rows += [
                (
                    *(each["model"], f"{words} ({group['traces']})", figure),
                    *_ratios(group["to_naive"], figure, bars["most_to_naive_mean"], bars["most_to_naive_worst"]),
                    *_ratios(group["to_statsforecast"], figure, bars["most_to_statsforecast_mean"], None),
                    *(_costs(group, each["term"], bars) if figure == "all" else ("",) * 5),
                )
                for figure in FIGURES
            ]
    missed = "".join(f"- {line}\n" for line in whole["missed"]) or "None.\n"
    return [BARS.format(**bars) + table(head, rows, words=3), f"## Bars missed on a trace\n\n{missed}"]


def _ratios(group: Document | None, figure: str, mean_bar: float, worst_bar: float | None) -> tuple[str, str]:
    if group is None:
        return "-", "-"
    found = group[figure]
    worst = marked(f"{found['worst']:.3f}", good=held(found["worst"], most=worst_bar))
    mean = marked(f"{found['mean']:.3f}", good=held(found["mean"], most=mean_bar))
    return mean, f"{worst} ({found['worst_trace']})"


def _costs(group: Document, term: str, bars: Document) -> tuple[str, ...]:
    bar_of = {name: bar for name, bar, _, _ in limits(term)}
    mean = held(group["inside_mean"], least=bars["least_inside_mean"], most=bars["most_inside_mean"])
    spread = held(group["inside_least"], least=bars["least_inside"]) and held(
        group["inside_most"], most=bars["most_inside"]
    )
    return (
        marked(f"{group['inside_mean']:.1%}", good=mean),
        marked(f"{group['inside_least']:.1%} to {group['inside_most']:.1%}", good=spread),
        *(
            marked(f"{group[name]:,.1f}", good=held(group[name], most=bar_of.get(name)))
            for name in ("fit_cpu_ms", "forecast_cpu_ms", "fit_megabytes")
        ),
    )


def marked(text: str, *, good: bool) -> str:
    """The figure, marked where it misses its bar.

    >>> marked("0.812", good=False)
    '**0.812** (missed)'
    """
    return text if good else f"**{text}** (missed)"


def _term(name: str, term: Document, results: list[Document], tuned_on: list[str]) -> str:
    parts = [f"## {name.capitalize()} term\n"]
    for trace in dict.fromkeys(each["trace"] for each in results):
        here = [each for each in results if each["trace"] == trace]
        scored = [each for each in here if each["why_not"] is None]
        words = " (tuned on)" if trace in tuned_on else ""
        parts.append(f"### {trace}{words}, {name} term\n")
        parts += [_scores(scored), _spans(scored, list(term["spans"]))]
        parts += [f"{each['model']} is not scored: {each['why_not']}.\n" for each in here if each["why_not"]]
    return "\n".join(parts)


def _scores(results: list[Document]) -> str:
    head = ("model", "p50", "p90", "p95", "WAPE", "inside", "under p90", "at ramps", "fit ms", "forecast ms", "MB")
    return table(
        head,
        [
            (
                each["model"],
                *(f"{each['losses'][word]['all']:.4f}" for word in ("p50", "p90", "p95")),
                _share(each["wape"]["all"]),
                _share(each["inside"]["all"]),
                _share(each["under_p90"]["all"]),
                "-" if each["ramp_under_p90"] is None else f"{each['ramp_under_p90']:.1%} of {each['ramps']}",
                f"{each['fit_cpu_ms']:,.0f}",
                f"{each['forecast_cpu_ms']:,.2f}",
                f"{each['fit_megabytes']:,.1f}",
            )
            for each in results
        ],
    )


def _spans(results: list[Document], spans: list[str]) -> str:
    head = ("model", *(f"{figure}, {span}" for figure in ("p50", "p90", "p95", "inside", "WAPE") for span in spans))
    return table(
        head,
        [
            (
                each["model"],
                *(f"{each['losses'][word][span]:.4f}" for word in ("p50", "p90", "p95") for span in spans),
                *(_share(each[figure][span]) for figure in ("inside", "wape") for span in spans),
            )
            for each in results
        ],
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
