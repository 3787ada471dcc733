"""Objects for discovered workloads, created again and again until the recommender stops."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from recommender.cluster.creating import EVERY_SECONDS, create_forever
from recommender.cluster.leadership import NotLeadingError
from recommender.cluster.scaler import Document
from recommender.cluster.scaler_status import Status, Transition
from recommender.ports import RejectedError, UnavailableError

ORDERS: Document = {
    "metadata": {"namespace": "shop", "name": "orders"},
    "spec": {"cluster": "prod", "groupId": "orders-consumer", "mode": "Recommend"},
}


class Objects:
    """A namespace, in which each name is taken once it was used; `error` is raised instead where it is set."""

    def __init__(self) -> None:
        self.made: list[Document] = []
        self.error: Exception | None = None

    def create(self, document: Document) -> bool:
        """Keep it."""
        if self.error is not None:
            raise self.error
        if document in self.made:
            return False
        self.made.append(document)
        return True

    def documents(self) -> Sequence[Document]:
        """All of them."""
        return self.made

    def write_status(self, document: Document, status: Status) -> None:
        """Never called."""
        raise NotImplementedError

    def record_event(self, document: Document, event: Transition, *, now: datetime) -> None:
        """Never called."""
        raise NotImplementedError


def rounds(objects: Objects, errors: Sequence[Exception | None]) -> list[str]:
    """The log of a round for each of the errors."""
    left: Iterator[Exception | None] = iter(errors[1:])
    objects.error = errors[0]

    def wait(seconds: float) -> bool:
        assert seconds == EVERY_SECONDS
        objects.error = following = next(left, StopIteration())
        return isinstance(following, StopIteration)

    with capture_logs() as logs:
        create_forever(lambda: [ORDERS], objects, wait=wait)
    return [entry["event"] for entry in logs]


def test_an_object_is_created_and_logged_once() -> None:
    """A name that is taken by then is no failure."""
    objects = Objects()
    assert rounds(objects, [None, None]) == ["scaler_created"]
    assert objects.made == [ORDERS]


@pytest.mark.parametrize("error", [UnavailableError("away"), RejectedError("grant create")])
def test_a_failure_is_logged_when_it_begins_and_when_it_is_over(error: Exception) -> None:
    """The rounds go on, without a line a minute."""
    assert rounds(Objects(), [error, error, None]) == ["discovery_failed", "scaler_created", "discovery_resumed"]


def test_a_standby_creates_nothing() -> None:
    """It is no failure either."""
    objects = Objects()
    assert rounds(objects, [NotLeadingError()]) == []
    assert objects.made == []
