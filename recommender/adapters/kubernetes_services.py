"""Services of a namespace, listed once; nothing else is read."""

from typing import Any

from kubernetes import client

from recommender.adapters.kubernetes_client import entries_of, translate_error


def services_in(api: client.ApiClient, namespace: str) -> list[dict[str, Any]]:
    """Every Service of the namespace. Errors: AdapterError, naming the grant that is missing."""
    with translate_error(f"list the services of namespace {namespace}", grant=f"list on services in {namespace}"):
        return entries_of(client.CoreV1Api(api).list_namespaced_service, namespace)
