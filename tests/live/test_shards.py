"""Two shards over one PostgreSQL and real Leases: who decides what, and what the loss of one does to its groups."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # ships no types
import httpx2
import pytest

from api.keda.protocol import SERVICE, IsActiveResponse, ScaledObjectRef
from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_lease import KubernetesLease
from recommender.adapters.store_sql import SqlDecisionStore
from recommender.deciding.recommendation import Recommendation
from tests.feature_folder import steady_hour
from tests.live.harness.clients import fresh_name, wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import read_clock
from tests.live.harness.helm import Helm
from tests.live.harness.postgres import running_postgres
from tests.live.harness.replicas import ACCOUNT, LEASE, Replica, ended, kubeconfig_of
from tests.live.harness.scalers import scaler

pytestmark = pytest.mark.kubernetes

GROUPS = tuple(f"orders-{number}" for number in range(6))
# Long enough for every shard to renew its advice on a busy machine, and short enough to be waited for.
VALID_SECONDS = 60
# A start compiles the loops, for a minute where the cores are busy.
START_SECONDS = 180


@pytest.fixture
def namespace(installed: ControlPlane, helm: Helm) -> str:
    """A fresh namespace with the Leases and roles of the chart's two shards, and an object for each group."""
    name = fresh_name("lagcast")
    installed.kubectl("create", "namespace", name)
    for document in helm.rendered("--set=recommender.shards=2,recommender.storeSecret=lagcast-store"):
        if document["kind"] in {"Lease", "Role", "RoleBinding"}:
            installed.apply(json.dumps(document).replace('"namespace": "lagcast"', f'"namespace": "{name}"'))
    installed.apply(ACCOUNT.replace("NAMESPACE", name).replace("NAME", "lagcast-recommender"))
    for group in GROUPS:
        installed.apply(json.dumps(scaler(name, group)))
    return name


@pytest.fixture
def store_url(tools_for_postgres: None) -> Iterator[str]:
    """A PostgreSQL of the test's own."""
    del tools_for_postgres
    with running_postgres() as server:
        yield server.url()


@pytest.fixture
def store(store_url: str) -> Iterator[SqlDecisionStore]:
    """The store that the shards share."""
    store = SqlDecisionStore(store_url)
    yield store
    store.close()


@pytest.fixture
def start(
    installed: ControlPlane, namespace: str, store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], Replica]]:
    """`start("A", "1/2")`: a recommender of that shard, which leads there. All read the same rows, of every group."""
    monkeypatch.setenv("LAGCAST_DECISION__VALID_FOR_SECONDS", str(VALID_SECONDS))
    features = steady_hour(tmp_path / "features", GROUPS, end_at=read_clock())
    with ended([]) as replicas:

        def one(name: str, shard: str) -> Replica:
            replica = Replica(
                *(name, "--shard", shard, "--kubernetes", namespace, "--keda-port", "0"),
                folder=tmp_path,
                features=features,
                store_url=store_url,
                lease=f"{namespace}/{LEASE}",
                kubeconfig=installed.kubeconfig,
            )
            replicas.append(replica)
            wait_until(lambda: replica.is_up() and replica.times_leading() > 0, seconds=START_SECONDS)
            return replica

        yield one


def authors_of(store: SqlDecisionStore, group: str, *, since: datetime) -> list[str]:
    """Who has decided on the group from then on, each decision once; a currency is the name of its author."""
    kept = store.history("c", group, since, read_clock() + timedelta(minutes=1))
    assert all(isinstance(each, Recommendation) for each in kept)
    return [each.currency for each in kept if isinstance(each, Recommendation)]


def newest(store: SqlDecisionStore, group: str) -> Recommendation:
    """The last advice on the group."""
    found = store.latest_recommendation("c", group)
    assert found is not None
    return found


def of_rest(replica: Replica) -> dict[str, str]:
    """The key of each group that this recommender lists over REST."""
    return {each["group_id"]: each["group_key"] for each in replica.get("api/v1/groups").json()["groups"]}


def in_totals(replica: Replica, count: str) -> int:
    """This count of all groups together, over REST."""
    return sum(each[count] for each in replica.get("api/v1/fleet").json()["totals"])


def shown_by(replica: Replica) -> set[str]:
    """The groups with due replicas on its page of metrics."""
    return set(re.findall(r'lagcast_due_replicas\{cluster="c",group="([^"]+)"\}', replica.get("metrics").text))


def statuses(cluster: ControlPlane, namespace: str) -> dict[str, str]:
    """Whose advice is in the status of each object."""
    found: list[dict[str, Any]] = json.loads(cluster.kubectl("-n", namespace, "get", "cgs", "-o", "json"))["items"]
    return {each["metadata"]["name"]: each.get("status", {}).get("costPerHour", {}).get("currency") for each in found}


def shares(store: SqlDecisionStore, *, since: datetime) -> tuple[set[str], set[str]]:
    """The groups that A alone has decided on, and those of B, once all of them have advice."""
    wait_until(lambda: set(store.groups()) == {("c", group) for group in GROUPS}, seconds=START_SECONDS)
    authors = {group: set(authors_of(store, group, since=since)) for group in GROUPS}
    ours, theirs = ({group for group in GROUPS if authors[group] == {name}} for name in ("A", "B"))
    assert ours
    assert theirs
    assert ours | theirs == set(GROUPS)
    return ours, theirs


def told_keda(replica: Replica, group: str) -> str:
    """What this recommender tells KEDA about the group: whether it is active, or an error."""
    found = re.search(r"external triggers on (\S+)", replica.logged)
    assert found is not None
    asked = ScaledObjectRef(name=group, scalerMetadata={"cluster": "c", "groupId": group})
    with grpc.insecure_channel(found[1]) as channel:
        is_active = channel.unary_unary(
            f"/{SERVICE}/IsActive", ScaledObjectRef.SerializeToString, IsActiveResponse.FromString
        )
        try:
            return str(is_active(asked, timeout=10).result)
        except grpc.RpcError as error:
            return str(error)


def test_each_group_is_decided_shown_and_written_by_one_shard_and_told_by_both(
    start: Callable[[str, str], Replica], store: SqlDecisionStore, installed: ControlPlane, namespace: str
) -> None:
    """Its decisions, its metrics and the status of its object are of one author; REST and KEDA read the store."""
    began = read_clock()
    first, second = start("A", "1/2"), start("B", "2/2")
    ours, theirs = shares(store, since=began)
    written = dict.fromkeys(ours, "A") | dict.fromkeys(theirs, "B")
    wait_until(lambda: statuses(installed, namespace) == written, seconds=60)
    for replica, own in ((first, ours), (second, theirs)):
        wait_until(lambda: shown_by(replica) == own)  # noqa: B023  # called at once
        assert set(of_rest(replica)) == set(GROUPS)
        assert in_totals(replica, "groups") == len(GROUPS)
        # The port is closed for as long as its shard has no leader, as KEDA knows from a single recommender.
        wait_until(lambda: {told_keda(replica, group) for group in GROUPS} == {"True"})  # noqa: B023  # called at once
    assert shares(store, since=began) == (ours, theirs)


def test_a_shard_that_is_lost_takes_the_advice_on_its_own_groups_with_it(
    start: Callable[[str, str], Replica], store: SqlDecisionStore, installed: ControlPlane, namespace: str
) -> None:
    """Killed, its last advice stays until it ends and is refused from then on; a new start goes on from it."""
    began = read_clock()
    first, second = start("A", "1/2"), start("B", "2/2")
    ours, theirs = shares(store, since=began)
    wait_until(lambda: None not in statuses(installed, namespace).values(), seconds=60)
    second.send(signal.SIGKILL)
    second.process.wait()
    killed_at = read_clock()
    last, keys = {group: newest(store, group) for group in theirs}, of_rest(first)

    def due(group: str) -> httpx2.Response:
        return first.get(f"api/v1/groups/{keys[group]}/due-replicas")

    answers = {group: due(group) for group in theirs}
    assert read_clock() < min(each.valid_until for each in last.values())
    assert {answer.status_code for answer in answers.values()} == {200}
    wait_until(lambda: all(newest(store, group).issued_at > killed_at for group in ours), seconds=60)
    wait_until(lambda: read_clock() > max(each.valid_until for each in last.values()), seconds=2 * VALID_SECONDS)
    for group, advice in last.items():
        assert newest(store, group) == advice
        answer = due(group)
        assert answer.status_code == 503
        assert f"the last advice expired at {advice.valid_until:%Y-%m-%dT%H:%M:%SZ}" in answer.json()["detail"]
        wait_until(lambda: "the last advice expired" in told_keda(first, group))  # noqa: B023  # called at once
    wait_until(lambda: in_totals(first, "expired") == len(theirs))
    assert shown_by(first) == ours
    assert {statuses(installed, namespace)[group] for group in theirs} == {"B"}

    restarted_at = read_clock()
    start("C", "2/2")
    wait_until(lambda: all(newest(store, group).currency == "C" for group in theirs), seconds=START_SECONDS)
    for group, advice in last.items():
        following = store.history("c", group, restarted_at, read_clock() + timedelta(minutes=1))[0]
        assert isinstance(following, Recommendation)
        assert following.supersedes == advice.recommendation_id
        assert due(group).status_code == 200
    assert {author for group in ours for author in authors_of(store, group, since=began)} == {"A"}
    wait_until(lambda: {statuses(installed, namespace)[group] for group in theirs} == {"C"}, seconds=60)


def test_the_account_may_use_the_leases_of_its_shards_and_no_other(installed: ControlPlane, namespace: str) -> None:
    """Each shard's Lease is free by itself; that of a single recommender, or of a third shard, may not be read."""
    kubeconfig = kubeconfig_of(installed, namespace, "lagcast-recommender")
    for number in (1, 2):
        name = f"{LEASE}-{number}"
        wait_until(lambda: installed.may(kubeconfig, namespace, "update", f"lease/{name}"))  # noqa: B023  # called at once
        leases = KubernetesLease(connect(kubeconfig), namespace, name, clock=read_clock)
        assert leases.write(leases.read(), holder=name, lease_seconds=15.0).holder == name
    assert not any(installed.may(kubeconfig, namespace, "get", f"lease/{name}") for name in (LEASE, f"{LEASE}-3"))
