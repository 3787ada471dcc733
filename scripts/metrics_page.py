# ruff: noqa: INP001 - a script is run, never imported
"""Writes docs/metrics.md from the metrics' own `# HELP`: `python scripts/metrics_page.py > docs/metrics.md`."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from executor.metrics import ExecutorMetrics
from recommender.adapters.advice_metrics import FAMILIES, GROUP_LABELS
from recommender.adapters.metrics import LEADER, Metrics

HEAD = """\
# Metrics

Every metric, with its meaning as its `# HELP` has it. [api.md](api.md#metrics) says how to read them,
[glossary.md](glossary.md) what others call them. A value that is unknown has no sample: it is neither 0 nor NaN. This
page is made by `make docs`.

## Of the recommender

`GET /metrics` of `lagcast up`, `lagcast serve` and `lagcast demo`. `lagcast_leader` is there with `--lease` alone.

"""
EXECUTOR = """
## Of the executor

`lagcast-executor --metrics-port PORT`.

"""

# Name, kind, labels and meaning.
_Row = tuple[str, str, tuple[str, ...], str]


def page() -> str:
    """The whole page: a table of the recommender's metrics, and one of the executor's."""
    recommender = Metrics(
        None,  # type: ignore[arg-type]  # nothing is read
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        version="1",
    )
    of_groups = [(each.full_name, "gauge", (*GROUP_LABELS, *each.labels), each.meaning) for each in FAMILIES]
    leader: _Row = (LEADER.full_name, "gauge", (), LEADER.meaning)
    counted = _registered(recommender.registry)
    return "".join(
        (HEAD, *_rows([*of_groups, leader, *counted]), EXECUTOR, *_rows(_registered(ExecutorMetrics().registry)))
    )


def _rows(metrics: Iterable[_Row]) -> Iterator[str]:
    yield "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n"
    for name, kind, labels, meaning in sorted(metrics):
        suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
        shown = ", ".join(f"`{label}`" for label in labels)
        yield f"| `{name}{suffix}` | {kind} | {shown} | {meaning} |\n"


def _registered(registry: CollectorRegistry) -> Iterator[_Row]:
    """Each metric with the names of its labels, which the library keeps to itself while there is no sample."""
    for collector in dict.fromkeys(registry._collector_to_names):  # noqa: SLF001
        for metric in collector.collect():
            yield metric.name, metric.type, tuple(getattr(collector, "_labelnames", ())), metric.documentation


if __name__ == "__main__":
    sys.stdout.write(page())
