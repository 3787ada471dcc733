"""A lease kept in a thread of its own for as long as a block lasts, so that a long cycle does not cost it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from recommender.cluster.leadership import Elector, LeaseFailedError

# A step is one read and two writes of half a renew deadline each, at most.
_LAST_TRY_SECONDS = 15.0

_log = structlog.get_logger()


@contextmanager
def kept(elector: Elector, *, began: threading.Event) -> Iterator[None]:
    """Call `step` repeatedly until the block ends, then release the lease; `began` is set whenever a term begins.

    Work that must be over before another leads has to end inside the block.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_keep, args=(elector, stop, began), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_LAST_TRY_SECONDS)
        try:
            elector.release()
        except LeaseFailedError as error:
            _log.warning("lease_not_released", error=str(error))


def _keep(elector: Elector, stop: threading.Event, began: threading.Event) -> None:
    failing = False
    term: int | None = None
    holder: str | None = None
    while not stop.is_set():
        try:
            wait_seconds = elector.step()
        except Exception as error:  # noqa: BLE001  # a token that cannot be read, for one: one that gave up never led again
            if not failing:
                _log.warning("lease_failed", error=str(error))
            failing, wait_seconds = True, elector.terms.retry_seconds
        else:
            if failing:
                _log.info("lease_reachable")
            failing = False
        before, term = term, elector.term()
        if term is not None and term != before:
            _log.info("leading", term=term)
            began.set()
        if term is None and (before is not None or elector.holder != holder):
            _log.info("standing_by", leader=elector.holder or "none")
        holder = elector.holder
        stop.wait(wait_seconds)
