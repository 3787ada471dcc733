"""A cluster as the doctor reads it; reads only, access reviews included, which the API server keeps nowhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from recommender.adapters.kubernetes_client import TIMEOUT_SECONDS, translate_error
from recommender.cluster.doctor import Actor, LeaseFacts, Rule
from recommender.cluster.scaler import API_GROUP, API_VERSION, PLURAL, Document
from recommender.configuring.settings import TargetSettings

# Fields of the status that earlier releases did not have: a cluster without them drops their values.
_NEWEST_FIELDS = {"lastApplied", "conflict"}
_AUTOSCALERS = (
    ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject"),
)


class KubernetesDoctor:
    """One cluster; a `ClusterView`. `accounts` are the service accounts of both actors, `namespace/name`."""

    def __init__(self, api: client.ApiClient, *, accounts: Mapping[Actor, str], lease: str) -> None:
        self._version = client.VersionApi(api)
        self._custom = client.CustomObjectsApi(api)
        self._reviews = client.AuthorizationV1Api(api)
        self._accounts, self._lease_name = accounts, lease

    def version(self) -> str:
        """The version of the API server. Errors: AdapterError."""
        with translate_error("read the version of the API server", grant="get on the path /version"):
            return str(self._version.get_code(_request_timeout=TIMEOUT_SECONDS).git_version)

    def definition(self) -> Literal["absent", "outdated", "current"]:
        """State of the definition: absent, or served with or without the newest fields. Errors: AdapterError."""
        name = f"{PLURAL}.{API_GROUP}"
        found = self._cluster_object("apiextensions.k8s.io", "v1", "customresourcedefinitions", name)
        versions = {} if found is None else {each["name"]: each for each in found["spec"]["versions"]}
        if not versions.get(API_VERSION, {}).get("served"):
            return "absent"
        fields = versions[API_VERSION]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        return "current" if fields.keys() >= _NEWEST_FIELDS else "outdated"

    def objects(self, namespace: str) -> Sequence[Document]:
        """The objects of a namespace; none where the resource is not installed. Errors: AdapterError."""
        with translate_error(f"list the {PLURAL} of namespace {namespace}", grant=f"list on {PLURAL}.{API_GROUP}"):
            call = self._custom.list_namespaced_custom_object
            found = _if_there(call, API_GROUP, API_VERSION, namespace, PLURAL)
        items: list[Document] = [] if found is None else found["items"]
        return items

    def may(self, actor: Actor, namespace: str, rule: Rule) -> bool:
        """True if the service account may do that. Errors: AdapterError."""
        account = self._accounts[actor]
        home, _, name = account.partition("/")
        resource, _, part = rule.resource.partition("/")
        review = client.V1SubjectAccessReview(
            spec=client.V1SubjectAccessReviewSpec(
                user=f"system:serviceaccount:{home}:{name}",
                groups=["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"],
                resource_attributes=client.V1ResourceAttributes(
                    namespace=namespace, verb=rule.verb, group=rule.group, resource=resource, subresource=part or None
                ),
            )
        )
        with translate_error(
            f"check the rights of the service account {account}",
            grant="create on subjectaccessreviews.authorization.k8s.io",
        ):
            answer: Any = self._reviews.create_subject_access_review(review, _request_timeout=TIMEOUT_SECONDS)
        return bool(answer.status.allowed)

    def plural(self, target: TargetSettings) -> str | None:
        """Name of the kind in paths; None where it has no `/scale`. Errors: AdapterError."""
        group, _, version = target.api_version.rpartition("/")
        if not group:
            return None
        with translate_error(f"read the resources of {target.api_version}", grant="get on the path /apis"):
            found = _if_there(self._custom.get_api_resources, group, version)
        known = [] if found is None else found.resources
        names = {each.name for each in known}
        return next((e.name for e in known if e.kind == target.kind and f"{e.name}/scale" in names), None)

    def is_there(self, target: TargetSettings) -> bool:
        """True if the workload exists. Errors: AdapterError."""
        group, _, version = target.api_version.rpartition("/")
        plural = self.plural(target)
        if plural is None:
            return False
        where = (group, version, target.namespace, plural, target.name)
        with translate_error(f"read {target.kind} {target.namespace}/{target.name}", grant=f"get on {plural}.{group}"):
            return _if_there(self._custom.get_namespaced_custom_object, *where) is not None

    def autoscalers(self, namespace: str) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Autoscalers of Kubernetes and, where installed, of KEDA, by the workload they claim. Errors: AdapterError."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for group, version, plural, kind in _AUTOSCALERS:
            with translate_error(f"list the {plural} of namespace {namespace}", grant=f"list on {plural}.{group}"):
                answer = _if_there(self._custom.list_namespaced_custom_object, group, version, namespace, plural)
            for each in [] if answer is None else answer["items"]:
                target = each["spec"]["scaleTargetRef"]
                place = target.get("kind", "Deployment"), target["name"]
                found[place].append(f"{kind} {namespace}/{each['metadata']['name']}")
        return {place: tuple(names) for place, names in found.items()}

    def metrics_server(self, api: str) -> str | None:
        """The Service that serves `api`; None where none does. Errors: AdapterError."""
        found = self._cluster_object("apiregistration.k8s.io", "v1", "apiservices", f"v1beta1.{api}")
        service = None if found is None else found["spec"].get("service")
        return None if service is None else f"{service['namespace']}/{service['name']}"

    def lease(self) -> LeaseFacts | None:
        """The Lease of the recommenders; None where there is none, or it never had a holder. Errors: AdapterError."""
        namespace, _, name = self._lease_name.partition("/")
        where = ("coordination.k8s.io", "v1", namespace, "leases", name)
        with translate_error(f"read the Lease {self._lease_name}", grant="get on leases.coordination.k8s.io"):
            found = _if_there(self._custom.get_namespaced_custom_object, *where)
        spec = {} if found is None else found["spec"]
        if not spec.get("holderIdentity") or not spec.get("renewTime"):
            return None
        return LeaseFacts(
            holder=spec["holderIdentity"],
            renewed_at=datetime.fromisoformat(spec["renewTime"]),
            duration_seconds=float(spec["leaseDurationSeconds"]),
        )

    def _cluster_object(self, group: str, version: str, plural: str, name: str) -> Any:  # noqa: ANN401  # JSON
        with translate_error(f"read {plural}/{name}", grant=f"get on {plural}.{group}"):
            return _if_there(self._custom.get_cluster_custom_object, group, version, plural, name)


def _if_there(call: Any, *words: str) -> Any:  # noqa: ANN401  # a method of the client, and its JSON
    """The answer of `call`; None where the object does not exist."""
    try:
        return call(*words, _request_timeout=TIMEOUT_SECONDS)
    except ApiException as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
