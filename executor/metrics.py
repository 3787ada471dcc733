"""The executor's own page for Prometheus: what came of its looks, and whom it found setting counts beside it.

Beside it a probe of Kubernetes is answered.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from executor.carry_out import Outcome
from executor.errors import PortError
from executor.plan import Act, Held, Scale

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# Looks are 15 s apart; one at 200 groups whose API and cluster do not answer takes minutes.
HANGS_AFTER_SECONDS = 900.0


class ExecutorMetrics:
    """Counters of one executor; a page has them while `serving`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._page = make_wsgi_app(self.registry)
        self._looked_seconds = time.monotonic()
        self._executions = Counter(
            "lagcast_executions",
            "Looks at a group by what came of them: acted, would_act in a dry run, failed, or why nothing was done.",
            ("outcome",),
            registry=self.registry,
        )
        self._conflicts = Counter(
            "lagcast_conflicts",
            "Times that another writer of a workload's count was found, by its name.",
            ("writer",),
            registry=self.registry,
        )

    def looked(self, outcomes: Iterable[Outcome], *, dry_run: bool) -> None:
        """Count what came of one look at each group."""
        self._looked_seconds = time.monotonic()
        for outcome in outcomes:
            self._executions.labels(_word(outcome, dry_run=dry_run)).inc()

    def conflicted(self, scale: Scale, held: Held) -> None:
        """Count a conflict that has begun, or has changed."""
        for writer in writers_of(scale, held):
            self._conflicts.labels(writer).inc()

    @contextmanager
    def serving(self, host: str, port: int) -> Iterator[int]:
        """Answer on `/metrics` and `/livez` of this address until the block ends: the port.

        Errors: PortError if it is taken.
        """
        try:
            server = make_server(host, port, self._answer, ThreadingWSGIServer, handler_class=_Silent)
        except OSError as error:
            message = f"--metrics-port {port} of {host} cannot be used: {error.strerror}; give another one"
            raise PortError(message) from error
        thread = Thread(target=server.serve_forever, name="metrics")
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def _answer(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if environ.get("PATH_INFO") != "/livez":
            page: Iterable[bytes] = self._page(environ, start_response)
            return page
        hangs = time.monotonic() - self._looked_seconds > HANGS_AFTER_SECONDS
        start_response("503 Service Unavailable" if hangs else "200 OK", [("Content-Type", "text/plain")])
        return [b"the last look at the groups is 15 min ago\n" if hangs else b"ok\n"]


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Leave no line for a request."""


def writers_of(scale: Scale, held: Held) -> tuple[str, ...]:
    """The writers behind a conflict: kinds of autoscalers, a GitOps tool, or field managers."""
    match held.conflict:
        case "Autoscaled":
            return tuple(dict.fromkeys(writer.split()[0] for writer in scale.other_writers))
        case "DeclaredInGit" if scale.git_owner is not None:
            return (scale.git_owner.split(" (")[0],)
        case "LimitedByCluster":
            return ("the cluster",)
        case _:
            return tuple(dict.fromkeys(owner.manager for owner in scale.strangers)) or ("another client",)


def _word(outcome: Outcome, *, dry_run: bool) -> str:
    if isinstance(outcome, Held):
        return outcome.reason
    if isinstance(outcome, Act):
        return "would_act" if dry_run else "acted"
    return "failed"
