# ruff: noqa: PLC0415 - heavy parts are imported when a study runs, so that `--help` answers in 0.2 s
"""The user's own autoscalers as rivals of a study, read from their manifests."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import InputError
from cli.manifests import text_of

if TYPE_CHECKING:
    from replay.policies.declared import Declared


def own_rivals(paths: Iterable[Path], *, ceiling: int) -> "dict[str, Declared]":
    """The behaviour of each HPA and ScaledObject of the files in a world of at most `ceiling` replicas, by name.

    Errors: InputError naming the file, ManifestError if the file cannot be read.
    """
    from manifests.horizontal import modern
    from manifests.objects import place_of, read_documents
    from replay.policies.declared import DeclaredError, declared_hpa, declared_scaled_object

    found: dict[str, Declared] = {}
    for path in paths:
        makers = {"HorizontalPodAutoscaler": declared_hpa, "ScaledObject": declared_scaled_object}
        documents = [document for document in read_documents(text_of(path)) if document["kind"] in makers]
        if not documents:
            message = f"{path} holds neither a HorizontalPodAutoscaler nor a ScaledObject, so there is nothing to judge"
            raise InputError(message)
        for document in documents:
            place = place_of(document)
            try:
                found[place] = makers[document["kind"]](modern(document)["spec"], ceiling=ceiling)
            except DeclaredError as error:
                message = f"{path}: {place}: {error}"
                raise InputError(message) from error
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                message = f"{path}: {place} does not match {document.get('apiVersion')}: {error!r}"
                raise InputError(message) from error
    return found
