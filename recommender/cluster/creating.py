"""Creation of ConsumerGroupScalers for the workloads that discovery has found, again and again."""

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
    failure: str | None = None
    while True:
        try:
            for document in missing():
                if objects.create(document):
                    spec = document["spec"]
                    _log.info("scaler_created", object="/".join(place_of(document)), group=spec["groupId"])
        except NotLeadingError:
            pass
        except AdapterError as error:
            if failure is None:
                _log.warning("discovery_failed", error=str(error))
            failure = str(error)
        else:
            if failure is not None:
                _log.info("discovery_resumed")
            failure = None
        if wait(EVERY_SECONDS):
            return
