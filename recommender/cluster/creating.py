"""What is looked for in Kafka and cluster together, again and again: missing objects, and where members run."""

from collections.abc import Callable, Sequence

import structlog

from recommender.cluster.leadership import NotLeadingError
from recommender.cluster.scaler import Document, place_of
from recommender.cluster.scalers import ScalerObjects
from recommender.ports import AdapterError

# A new group has rows after a minute, and needs three minutes of them for advice.
EVERY_SECONDS = 60.0

_log = structlog.get_logger()


def create_forever(
    missing: Callable[[], Sequence[Document]], objects: ScalerObjects, *, wait: Callable[[float], bool]
) -> None:
    """Create what is missing, now and once a minute, until `wait(seconds)` is true.

    Each object is logged, and a failure when it begins and when it is over. A recommender that stands by creates none.
    """

    def create() -> None:
        for document in missing():
            if objects.create(document):
                spec = document["spec"]
                _log.info("scaler_created", object="/".join(place_of(document)), group=spec["groupId"])

    look_forever(create, what="discovery", wait=wait)


def look_forever(look: Callable[[], object], *, what: str, wait: Callable[[float], bool]) -> None:
    """Look now and once a minute, until `wait(seconds)` is true.

    A failure of Kafka or the cluster is logged as one of `what`, when it begins and when it is over.
    """
    failing = False
    while True:
        try:
            look()
        except NotLeadingError:
            pass
        except AdapterError as error:
            if not failing:
                _log.warning(f"{what}_failed", error=str(error))
            failing = True
        else:
            if failing:
                _log.info(f"{what}_resumed")
            failing = False
        if wait(EVERY_SECONDS):
            return
