"""`lagcast discover`: it prints a line for each group, in formats for programs too, and writes nothing."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cli import discover
from collector.errors import UnavailableError
from collector.kafka_requests import Answers, GroupDescription, KafkaRequests
from recommender.adapters import kubernetes_client, kubernetes_workloads
from recommender.cluster.discovery import Pod, Workload
from recommender.cluster.scalers import Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import Settings
from tests.recommender.cluster.test_scalers import MemoryObjects

Lagcast = Callable[..., tuple[int, str, str]]
ORDERS = Workload(namespace="shop", kind="Deployment", name="consumer", api_version="apps/v1", has_scale=True)


@pytest.fixture(autouse=True)
def around(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kafka with three groups, one of which it cannot describe, and a cluster with two pods."""
    hosts = {"orders": ("10.0.0.1", "10.0.0.1"), "audit": ()}

    def descriptions(_: KafkaRequests, names: Sequence[str]) -> Answers[str, GroupDescription]:
        got = {
            name: GroupDescription(
                state="STABLE",
                protocol="classic",
                assignor="range",
                members=len(hosts[name]),
                static_members=0,
                member_ids=frozenset(),
                client_ids=("consumer-orders-1",),
                hosts=hosts[name],
                is_simple=False,
                assigned=frozenset(),
            )
            for name in names
            if name in hosts
        }
        failed = {name: UnavailableError(f"group {name!r} did not answer") for name in names if name not in hosts}
        return Answers(got=got, failed=failed)

    monkeypatch.setattr(KafkaRequests, "group_names", lambda _: (("audit", "away", "orders"), ()))
    monkeypatch.setattr(KafkaRequests, "descriptions", descriptions)
    monkeypatch.setattr(kubernetes_client, "connect", lambda _: None)
    pods = [Pod(namespace="shop", name=f"consumer-{i}", addresses=(f"10.0.0.{i}",), workload=ORDERS) for i in (1, 2)]
    monkeypatch.setattr(kubernetes_workloads, "pods_in", lambda _api, _namespaces: pods)


def test_each_group_is_a_line(lagcast: Lagcast) -> None:
    """Each group is found or has a reason; a group whose description fails is on stderr, and the others go on."""
    code, out, err = lagcast("discover", "--bootstrap", "nowhere:9092", "--kubernetes", "shop")
    assert code == 0
    heads, audit, orders = out.splitlines()
    assert heads.split() == ["Group", "Members", "Pods", "Replicas", "Namespace", "Kind", "Name", "Reason", "Note"]
    assert audit.split()[:8] == ["audit", "0", "-", "-", "-", "-", "-", "NoTarget"]
    assert orders.split() == ["orders", "2", "1", "2", "shop", "Deployment", "consumer", "-", "-"]
    assert "group 'away' did not answer" in err


def test_json_has_the_same_records(lagcast: Lagcast) -> None:
    """Unknown values are null."""
    arguments = ["--bootstrap", "nowhere:9092", "--kubernetes", "shop", "--group", "orders", "-o", "json"]
    code, out, _ = lagcast("discover", *arguments)
    assert code == 0
    assert json.loads(out) == [
        {
            "group": "orders",
            "members": 2,
            "pods": 1,
            "replicas": 2,
            "namespace": "shop",
            "kind": "Deployment",
            "name": "consumer",
            "reason": None,
            "note": None,
        }
    ]


def test_without_a_cluster_no_request_is_made_to_kafka(
    lagcast: Lagcast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command exits with the code of usage and one sentence."""
    monkeypatch.undo()
    arguments = ["--bootstrap", "nowhere:9092", "--kubernetes", "shop", "--kubeconfig", str(tmp_path / "missing")]
    code, out, err = lagcast("discover", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lagcast: no cluster to connect to: ")


def test_objects_are_printed_for_certain_groups(lagcast: Lagcast) -> None:
    """The object is in the mode recommend, and the reason why another group has none is on stderr."""
    arguments = ["--bootstrap", "nowhere:9092", "--kubernetes", "shop", "--cluster", "prod", "--objects"]
    code, out, err = lagcast("discover", *arguments)
    assert code == 0
    assert list(yaml.safe_load_all(out)) == [
        {
            "apiVersion": "lagcast.io/v1alpha1",
            "kind": "ConsumerGroupScaler",
            "metadata": {"name": "consumer", "namespace": "shop"},
            "spec": {
                "cluster": "prod",
                "groupId": "orders",
                "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"},
                "mode": "Recommend",
            },
        }
    ]
    assert "group 'audit': The group has no members now; retry while its consumers run." in err


def test_of_two_groups_of_one_workload_neither_has_an_object(lagcast: Lagcast, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload is scaled for one group, and its owner has to choose which."""
    described = KafkaRequests.descriptions

    def both(kafka: KafkaRequests, names: Sequence[str]) -> Answers[str, GroupDescription]:
        known = described(kafka, names).got["orders"]
        return Answers(got={"orders": known, "billing": known}, failed={})

    monkeypatch.setattr(KafkaRequests, "descriptions", both)
    code, out, err = lagcast("discover", "--bootstrap", "nowhere:9092", "--kubernetes", "shop", "--objects")
    assert (code, out) == (0, "")
    assert "group 'billing': Deployment shop/consumer runs orders too, and is scaled for one." in err


def test_each_shard_makes_objects_for_its_own_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload that runs groups of two shards has none, as one that runs two groups of one recommender."""
    names = ("ours", "theirs", "ours-shared", "theirs-shared")
    hosts = dict(zip(names, (("10.0.0.1",), ("10.0.0.2",), ("10.0.0.3",), ("10.0.0.3",)), strict=True))
    pods = [
        Pod(namespace="shop", name=f"p{i}", addresses=(f"10.0.0.{i}",), workload=replace(ORDERS, name=f"w{i}"))
        for i in (1, 2, 3)
    ]
    monkeypatch.setattr(discover, "_hosts_apart", lambda *_, **__: hosts)
    monkeypatch.setattr(kubernetes_workloads, "pods_in", lambda _api, _namespaces: pods)

    def made(prefix: str) -> list[str]:
        scalers = Scalers(
            objects=MemoryObjects(),
            settings=Settings(state_dir=Path("nowhere")),
            tenants=Tenants(followed=("shop",)),
            owns=lambda _, group: group.startswith(prefix),
        )
        documents = discover.missing_objects("", {}, None, ["shop"], scalers, cluster="prod", groups=None)  # type: ignore[arg-type]  # no cluster is asked
        return [document["spec"]["groupId"] for document in documents]

    assert [made("ours"), made("theirs"), made("")] == [["ours"], ["theirs"], ["ours", "theirs"]]
