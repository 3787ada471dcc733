"""A small Prometheus: scrapes texts that it is handed, and answers over HTTP what lagcast asks of the real one."""

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

    `asked` are the requests as (path, words). `refusals` are answered first, one a request: (status, body).
    """

    def __init__(self) -> None:
        self.series: dict[Labels, list[tuple[float, float | None]]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.url = ""

    def scrape(self, text: str, *, at: float, instance: str = "exporter:9308", **labels: str) -> None:
        """Take in an exposition, at this second; series of the target that are not in it any more become stale."""
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
        """Take in an answer of a range query."""
        for entry in json.loads(path.read_text(encoding="utf-8"))["data"]["result"]:
            self.series[_labels(entry["metric"])] = [(at, float(value)) for at, value in entry["values"]]

    def answer(self, path: str, words: Mapping[str, str]) -> object:
        """The `data` of the answer to a question."""
        if path.endswith("/values"):
            return sorted({dict(key)["__name__"] for key in self._in(words)})
        if path.endswith("/series"):
            return [dict(key) for key in self._in(words) if _matches(key, words["match[]"])]
        if path.endswith("/query"):
            vector = self._value(words["query"], float(words["time"]))
            return {"result": [{"metric": dict(key), "value": [0, str(value)]} for key, value in vector.items()]}
        lines: dict[Labels, list[list[object]]] = {}
        for at in range(int(words["start"]), int(words["end"]) + 1, int(words["step"])):
            for key, value in self._value(words["query"], at).items():
                lines.setdefault(key, []).append([at, str(value)])
        return {"result": [{"metric": dict(key), "values": points} for key, points in lines.items()]}

    def _in(self, words: Mapping[str, str]) -> list[Labels]:
        start, end = float(words["start"]), float(words["end"])
        return [key for key, points in self.series.items() if any(start <= at <= end for at, _ in points)]

    def _value(self, expression: str, at: float) -> Vector:
        """The handful of forms that lagcast asks in."""
        if found := re.fullmatch(r"time\(\) - max\(timestamp\((.*)\)\)", expression):
            newest = [points[-1][0] for points in self._points(found[1], at, _LOOKBACK_SECONDS)]
            return {(): at - max(newest)} if newest else {}
        if found := re.fullmatch(r"max\(max_over_time\(count_over_time\((.*)\[10m\]\)\[1h:1m\]\)\)", expression):
            instants = [60 * number for number in range(int(at - 3600) // 60 + 1, int(at) // 60 + 1)]
            counts = [len(points) for instant in instants for points in self._points(found[1], instant, 600)]
            return {(): float(max(counts))} if counts else {}
        if found := re.fullmatch(r"last_over_time\((.*)\[(\d+)s\]\)", expression):
            return self._newest(found[1], at, float(found[2]), stale=False)
        if found := re.fullmatch(r"(max|sum|count) by \(([^)]*)\) \((.*)\)", expression):
            kept, groups = re.split(r",\s*", found[2]), dict[Labels, list[float]]()
            for key, value in self._value(found[3], at).items():
                own = {label: named for label, named in key if label in kept}
                groups.setdefault(_labels(own), []).append(value)
            if found[1] == "max":
                return {key: max(values) for key, values in groups.items()}
            return {key: sum(values) if found[1] == "sum" else float(len(values)) for key, values in groups.items()}
        return self._newest(expression, at, _LOOKBACK_SECONDS, stale=True)

    def _newest(self, selector: str, at: float, seconds: float, *, stale: bool) -> Vector:
        found = {}
        for key, points in self.series.items():
            inside = [point for point in points if at - seconds < point[0] <= at]
            told = [value for _, value in inside if value is not None]
            if _matches(key, selector) and told and not (stale and inside[-1][1] is None):
                found[key] = told[-1]
        return found

    def _points(self, selector: str, at: float, seconds: float) -> Iterator[list[tuple[float, float]]]:
        for key, points in self.series.items():
            told = [(when, value) for when, value in points if at - seconds < when <= at and value is not None]
            if _matches(key, selector) and told:
                yield told


@contextmanager
def serving(memory: MemoryPrometheus) -> Iterator[MemoryPrometheus]:
    """It answers under its `url` until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, form: str) -> None:
            words = {key: values[0] for key, values in parse_qs(form).items()}
            path = urlsplit(self.path).path
            memory.asked.append((path, words))
            memory.headers.append(dict(self.headers.items()))
            status, body = memory.refusals.pop(0) if memory.refusals else (200, "")
            content = (body or json.dumps({"status": "success", "data": memory.answer(path, words)})).encode()
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
