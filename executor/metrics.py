"""The executor's own page for Prometheus: what came of its looks, and whom it found setting counts beside it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, start_http_server

from executor.carry_out import Outcome
from executor.errors import PortError
from executor.plan import Act, Held, Scale


class ExecutorMetrics:
    """Counters of one executor; a page has them while `serving`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
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
        for outcome in outcomes:
            self._executions.labels(_word(outcome, dry_run=dry_run)).inc()

    def conflicted(self, scale: Scale, held: Held) -> None:
        """Count a conflict that has begun, or has changed."""
        for writer in writers_of(scale, held):
            self._conflicts.labels(writer).inc()

    @contextmanager
    def serving(self, host: str, port: int) -> Iterator[int]:
        """Answer on `/metrics` of this address until the block ends: the port. Errors: PortError if it is taken."""
        try:
            server, thread = start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            message = f"--metrics-port {port} of {host} cannot be used: {error.strerror}; give another one"
            raise PortError(message) from error
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


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
