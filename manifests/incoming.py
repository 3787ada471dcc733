"""Objects of other autoscalers as ConsumerGroupScalers; nothing is dropped without notice."""

from collections.abc import Callable, Sequence
from functools import partial

from manifests import alameda, horizontal, keda
from manifests.objects import SCALED_KINDS, Document, Imported, ManifestError, place_of, read_documents

# Objects with credentials that a trigger of KEDA refers to; the collector has its own credentials.
_LEFT_TO_KEDA = ("TriggerAuthentication", "ClusterTriggerAuthentication")


def imported(text: str, *, cluster: str | None, group: str | None) -> Imported:
    """The ConsumerGroupScalers for the objects of a file. Workloads in the file are used to resolve selectors.

    `cluster` is the name of the Kafka cluster for objects without one; `group` is the consumer group of an HPA that
    names none. Errors: ManifestError for a text that cannot be read or has no object that can be imported.
    """
    documents = read_documents(text)
    made, read = Imported(), 0
    for document in documents:
        read_it = _reader_of(document, documents, cluster=cluster, group=group)
        if read_it is None:
            if document["kind"] not in (*SCALED_KINDS, *_LEFT_TO_KEDA):
                made += Imported(warnings=(f"{place_of(document)}: it scales no consumer group, and is left out",))
            continue
        read += 1
        try:
            found = read_it()
        except (KeyError, TypeError, AttributeError) as error:
            message = (
                f"{place_of(document)}: it does not match {document['apiVersion']}: {error!r} is missing or invalid"
            )
            raise ManifestError(message) from error
        warnings = tuple(f"{place_of(document)}: {sentence}" for sentence in found.warnings)
        made += Imported(documents=found.documents, warnings=warnings)
    if not read:
        message = (
            "no object here is an AlamedaScaler, a ScaledObject or a HorizontalPodAutoscaler; it holds "
            f"{', '.join(sorted({str(document['kind']) for document in documents})) or 'nothing'}"
        )
        raise ManifestError(message)
    return made


def _reader_of(
    document: Document, documents: Sequence[Document], *, cluster: str | None, group: str | None
) -> Callable[[], Imported] | None:
    """The reader of an object of this version and kind; None if there is none."""
    api_group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    named = cluster or "default"
    match api_group, document["kind"], version:
        case alameda.API_GROUP, "AlamedaScaler", "v1alpha1":
            return partial(alameda.first_version, document, documents, cluster=named)
        case alameda.API_GROUP, "AlamedaScaler", _:
            return partial(alameda.second_version, document, cluster=cluster)
        case keda.API_GROUP, "ScaledObject", _:
            return partial(keda.scaled_object, document, cluster=named)
        case keda.API_GROUP, "ScaledJob", _:
            return lambda: Imported(warnings=(keda.NO_JOBS,))
        case horizontal.API_GROUP, "HorizontalPodAutoscaler", _:
            return partial(horizontal.horizontal, document, cluster=named, group=group)
    return None
