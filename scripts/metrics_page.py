# ruff: noqa: INP001 - a script is run, never imported
"""Writes docs/metrics.md from the metrics' own `# HELP`: `python scripts/metrics_page.py > docs/metrics.md`."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from executor.metrics import ExecutorMetrics
from recommender.adapters.metrics import Metrics

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


class _EmptyStore:
    def latest_page(self) -> tuple[()]:
        return ()


def page() -> str:
    """The whole page: a table of the recommender's metrics, and one of the executor's."""
    recommender = Metrics(
        _EmptyStore(),  # type: ignore[arg-type]  # the page calls no other method
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        version="1",
        leads=lambda: True,
    )
    return "".join((HEAD, *_rows(recommender.registry), EXECUTOR, *_rows(ExecutorMetrics().registry)))


def _rows(registry: CollectorRegistry) -> Iterator[str]:
    yield "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n"
    for metric, labels in sorted(_metrics(registry), key=lambda pair: pair[0].name):
        suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
        shown = ", ".join(f"`{label}`" for label in labels)
        yield f"| `{metric.name}{suffix}` | {metric.type} | {shown} | {metric.documentation} |\n"


def _metrics(registry: CollectorRegistry) -> Iterator[tuple[Metric, Iterable[str]]]:
    """Each metric with the names of its labels, which the library keeps to itself while there is no sample."""
    for collector in dict.fromkeys(registry._collector_to_names):  # noqa: SLF001
        for metric in collector.collect():
            source = collector if isinstance(collector, MetricWrapperBase) else metric
            yield metric, getattr(source, "_labelnames", ())


if __name__ == "__main__":
    sys.stdout.write(page())
