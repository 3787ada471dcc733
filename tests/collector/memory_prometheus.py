"""A small Prometheus: scrapes given expositions, and answers over HTTP the requests that lagcast makes."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from prometheus_client.parser import text_string_to_metric_families

EXPOSITIONS = Path(__file__).parent / "expositions"
_LOOKBACK_SECONDS = 300
_MATCHER = re.compile(r'(\w+)(=~|!=|=)"((?:[^"\\]|\\.)*)"')
Labels = tuple[tuple[str, str], ...]
Vector = dict[Labels, float]


class MemoryPrometheus:
    """Series as lists of (second, value), None for a stale marker.

    `requests` are those that came, as (path, parameters). `refusals` are sent first, one a request: (status, body).
    """

    def __init__(self) -> None:
        self.series: dict[Labels, list[tuple[float, float | None]]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.url = ""

    def scrape(self, text: str, *, at: float, instance: str = "exporter:9308", **labels: str) -> None:
        """Scrape an exposition at this second; series of the target that it no longer has become stale."""
        target = {"instance": instance, **labels}
        found = {
            _labels({"__name__": sample.name, **sample.labels, **target}): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        for key, points in self.series.items():
            if target.items() <= dict(key).items() and key not in found and points[-1][1] is not None:
                points.append((at, None))
        for key, value in found.items():
            self.series.setdefault(key, []).append((at, value))

    def load(self, path: Path) -> None:
        """Add the series of an answer to a range query."""
        for entry in json.loads(path.read_text(encoding="utf-8"))["data"]["result"]:
            self.series[_labels(entry["metric"])] = [(at, float(value)) for at, value in entry["values"]]

    def answer(self, path: str, parameters: Mapping[str, str]) -> object:
        """The `data` of the answer to a request."""
        if path.endswith("/values"):
            return sorted({dict(key)["__name__"] for key in self._in(parameters)})
        if path.endswith("/series"):
            return [dict(key) for key in self._in(parameters) if _matches(key, parameters["match[]"])]
        if path.endswith("/query"):
            vector = self._value(parameters["query"], float(parameters["time"]))
            return {"result": [{"metric": dict(key), "value": [0, str(value)]} for key, value in vector.items()]}
        lines: dict[Labels, list[list[object]]] = {}
        for at in range(int(parameters["start"]), int(parameters["end"]) + 1, int(parameters["step"])):
            for key, value in self._value(parameters["query"], at).items():
                lines.setdefault(key, []).append([at, str(value)])
        return {"result": [{"metric": dict(key), "values": points} for key, points in lines.items()]}

    def _in(self, parameters: Mapping[str, str]) -> list[Labels]:
        start, end = float(parameters["start"]), float(parameters["end"])
        return [key for key, points in self.series.items() if any(start <= at <= end for at, _ in points)]

    def _value(self, expression: str, at: float) -> Vector:  # noqa: PLR0911  # one for each form
        """The value of an expression, in one of the few forms that lagcast sends."""
        if "\nor " in expression:
            return {key: value for part in expression.split("\nor ") for key, value in self._value(part, at).items()}
        if found := re.fullmatch(r'label_replace\((.*), "(\w+)", "(.*?)", "(\w*)", "(.*)"\)', expression):
            return _relabelled(self._value(found[1], at), *found.groups()[1:])
        if found := re.fullmatch(r"timestamp\((.*)\)", expression):
            return self._newest(found[1], at, _LOOKBACK_SECONDS, stale=True, instants=True)
        if found := re.fullmatch(r"time\(\) - max\(timestamp\((.*)\)\)", expression):
            newest = [points[-1][0] for points in self._points(found[1], at, _LOOKBACK_SECONDS)]
            return {(): at - max(newest)} if newest else {}
        if found := re.fullmatch(r"max\(max_over_time\(count_over_time\((.*)\[10m\]\)\[1h:1m\]\)\)", expression):
            instants = [60 * number for number in range(int(at - 3600) // 60 + 1, int(at) // 60 + 1)]
            counts = [len(points) for instant in instants for points in self._points(found[1], instant, 600)]
            return {(): float(max(counts))} if counts else {}
        if found := re.fullmatch(r"rate\((.*)\[(\d+)s\]\) > 0", expression):
            # Prometheus carries the slope between the first and the last scrape on to the ends of the time.
            spans = self._spans(found[1], at, float(found[2]))
            rates = {key: (span[-1][1] - span[0][1]) / (span[-1][0] - span[0][0]) for key, span in spans if span[1:]}
            return {key: rate for key, rate in rates.items() if rate > 0.0}
        if found := re.fullmatch(r"min_over_time\((.*)\[(\d+)s\]\) > 0", expression):
            least = {key: min(value for _, value in span) for key, span in self._spans(found[1], at, float(found[2]))}
            return {key: value for key, value in least.items() if value > 0.0}
        if found := re.fullmatch(r"last_over_time\((.*)\[(\d+)s\]\)", expression):
            return self._newest(found[1], at, float(found[2]), stale=False)
        if found := re.fullmatch(r"(max|sum|count|avg) by \(([^)]*)\) \((.*)\)", expression):
            return _aggregated(found[1], re.split(r",\s*", found[2]), self._value(found[3], at))
        return self._newest(expression, at, _LOOKBACK_SECONDS, stale=True)

    def _newest(self, selector: str, at: float, seconds: float, *, stale: bool, instants: bool = False) -> Vector:
        found = {}
        for key, points in self.series.items():
            inside = [point for point in points if at - seconds < point[0] <= at]
            values = [when if instants else value for when, value in inside if value is not None]
            if _matches(key, selector) and values and not (stale and inside[-1][1] is None):
                found[key] = values[-1]
        return found

    def _points(self, selector: str, at: float, seconds: float) -> Iterator[list[tuple[float, float]]]:
        return (span for _, span in self._spans(selector, at, seconds))

    def _spans(self, selector: str, at: float, seconds: float) -> Iterator[tuple[Labels, list[tuple[float, float]]]]:
        for key, points in self.series.items():
            present = [(when, value) for when, value in points if at - seconds < when <= at and value is not None]
            if _matches(key, selector) and present:
                yield key, present


@contextmanager
def serving(memory: MemoryPrometheus) -> Iterator[MemoryPrometheus]:
    """Serve under the `url` of `memory` until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, form: str) -> None:
            parameters = {key: values[0] for key, values in parse_qs(form).items()}
            path = urlsplit(self.path).path
            memory.requests.append((path, parameters))
            memory.headers.append(dict(self.headers.items()))
            status, body = memory.refusals.pop(0) if memory.refusals else (200, "")
            content = (body or json.dumps({"status": "success", "data": memory.answer(path, parameters)})).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    memory.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield memory
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def exposition(name: str) -> str:
    """One of the texts beside this file."""
    return (EXPOSITIONS / f"{name}.txt").read_text(encoding="utf-8")


def offsets_text(
    ends: Sequence[int], commits: Sequence[int | None], *, group: str = "orders", members: int | None = None
) -> str:
    """The kafka_exporter text of a group that reads `orders-in`, by partition; None: that commit is absent."""
    lines = [
        f'kafka_topic_partition_current_offset{{partition="{number}",topic="orders-in"}} {end}'
        for number, end in enumerate(ends)
    ]
    lines += [
        f'kafka_consumergroup_current_offset{{consumergroup="{group}",partition="{number}",topic="orders-in"}} {commit}'
        for number, commit in enumerate(commits)
        if commit is not None
    ]
    lines += [f'kafka_consumergroup_members{{consumergroup="{group}"}} {members}'] if members is not None else []
    return "".join(f"{line}\n" for line in lines)


def _aggregated(function: str, kept: Sequence[str], vector: Vector) -> Vector:
    """The vector's values together, of those that agree in the labels that are kept."""
    groups = dict[Labels, list[float]]()
    for key, value in vector.items():
        groups.setdefault(_labels({label: named for label, named in key if label in kept}), []).append(value)
    if function == "max":
        return {key: max(values) for key, values in groups.items()}
    if function == "count":
        return {key: float(len(values)) for key, values in groups.items()}
    return {key: sum(values) / (len(values) if function == "avg" else 1) for key, values in groups.items()}


def _relabelled(vector: Vector, target: str, replacement: str, source: str, pattern: str) -> Vector:
    """The vector with a label that is made of another one: `$1` and `$2` are its groups."""
    found: Vector = {}
    for key, value in vector.items():
        match = re.fullmatch(pattern.replace("\\\\", "\\"), dict(key).get(source, ""))
        if match is not None:
            named = re.sub(r"\$(\d)", lambda each, match=match: match[int(each[1])] or "", replacement)  # type: ignore[misc]  # a default
            found[_labels({**dict(key), target: named})] = value
    return found


def _labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _matches(key: Labels, selector: str) -> bool:
    labels = dict(key)
    name, _, matchers = selector.partition("{")
    if name and labels["__name__"] != name:
        return False
    for label, operator, quoted in _MATCHER.findall(matchers):
        wanted, value = json.loads(f'"{quoted}"'), labels.get(label, "")
        is_it = bool(re.fullmatch(wanted, value)) if operator == "=~" else value == wanted
        if is_it == (operator == "!="):
            return False
    return True
