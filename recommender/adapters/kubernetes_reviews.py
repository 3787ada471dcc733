"""TokenReview and SubjectAccessReview: the cluster tells whose a bearer token is, and what its user may read."""

from dataclasses import dataclass, field
from typing import Any

from kubernetes import client

from recommender.adapters.kubernetes_client import TIMEOUT_SECONDS, Connection, translate_error

_GRANT = "create on tokenreviews and subjectaccessreviews, as the ClusterRole system:auth-delegator does"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user as a TokenReview describes it, and as a SubjectAccessReview wants it."""

    username: str
    uid: str | None
    groups: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


class KubernetesReviews:
    """The reviews of one cluster. Errors of each: AdapterError."""

    def __init__(self, api: Connection) -> None:
        self._authentication = client.AuthenticationV1Api(api)
        self._authorization = client.AuthorizationV1Api(api)

    def user_of(self, token: str) -> User | None:
        """The user whose token it is; None if it is none, or has expired."""
        review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token))
        with translate_error("review a bearer token", grant=_GRANT):
            status = self._authentication.create_token_review(review, _request_timeout=TIMEOUT_SECONDS).status
        user = status.user if status is not None and status.authenticated else None
        if user is None or not user.username:
            return None
        return User(username=user.username, uid=user.uid, groups=user.groups or [], extra=user.extra or {})

    def may(self, user: User, verb: str, path: str) -> bool:
        """True if the user has that verb on that non-resource URL, by any authorizer of the cluster."""
        asked = client.V1SubjectAccessReviewSpec(
            user=user.username,
            uid=user.uid,
            groups=user.groups,
            extra=user.extra,
            non_resource_attributes=client.V1NonResourceAttributes(path=path, verb=verb),
        )
        review = client.V1SubjectAccessReview(spec=asked)
        with translate_error("review what a user may read", grant=_GRANT):
            status = self._authorization.create_subject_access_review(review, _request_timeout=TIMEOUT_SECONDS).status
        return status is not None and bool(status.allowed)
