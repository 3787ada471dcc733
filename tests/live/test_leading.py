"""C38: recommenders that share a store and a real Lease: killed, frozen, cut off and stopped."""

import json
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy.engine import make_url

from recommender.adapters.kubernetes_client import connect
from recommender.adapters.kubernetes_lease import KubernetesLease
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.cluster.leadership import CYCLES_WITHOUT_STORE, Elector, LeaseFailedError, LeaseTakenError
from tests.feature_folder import steady_hour
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import read_clock
from tests.live.harness.postgres import running_postgres
from tests.live.harness.replicas import (
    LEASE,
    Link,
    Replica,
    advice_since,
    ended,
    first_advice_of,
    kubeconfig_of,
    lease_namespace,
)
from tests.live.harness.scalers import scaler

pytestmark = pytest.mark.kubernetes

KILLS = 5
# From the kill to the next advice: a lease of 15 s, the last look of the other before it 2 s, and the cycle.
LIMIT = timedelta(seconds=20)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A fresh namespace with the Lease and its roles."""
    return lease_namespace(control_plane)


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, namespace: str) -> Path:
    """The kubeconfig of the recommender's account there."""
    return kubeconfig_of(control_plane, namespace, "lagcast-recommender")


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """SQLite, or the PostgreSQL that a test requests as `param`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield sqlite_url(tmp_path / "decisions.sqlite")
        return
    request.getfixturevalue("tools_for_postgres")
    with running_postgres() as server:
        yield server.url()


@pytest.fixture
def store(store_url: str) -> Iterator[SqlDecisionStore]:
    """The store that all of them share."""
    store = SqlDecisionStore(store_url)
    yield store
    store.close()


@pytest.fixture
def start(namespace: str, kubeconfig: Path, store_url: str, tmp_path: Path) -> Iterator[Callable[..., Replica]]:
    """`start("A")`: a recommender that is up, leading or standing by."""
    features = steady_hour(tmp_path / "features", ("orders",), end_at=read_clock())
    with ended([]) as replicas:

        def one(name: str, *words: str, through: Path | None = None, store_through: str | None = None) -> Replica:
            replica = Replica(
                name,
                *words,
                folder=tmp_path,
                features=features,
                store_url=store_through or store_url,
                lease=f"{namespace}/{LEASE}",
                kubeconfig=through or kubeconfig,
            )
            replicas.append(replica)
            wait_until(replica.is_up)
            return replica

        yield one


def one_history(store: SqlDecisionStore, *, since_first: timedelta = timedelta(hours=1)) -> None:
    """Every id appears once, and every advice names the one before it, from whichever recommender."""
    advice = advice_since(store, since=read_clock() - since_first)
    ids = [each.recommendation_id for each in advice]
    assert len(ids) == len(set(ids)) > 0
    assert [each.supersedes for each in advice[1:]] == ids[:-1]


@pytest.mark.alone
def test_a_killed_leader_is_followed_within_twenty_seconds(
    start: Callable[..., Replica], store: SqlDecisionStore
) -> None:
    """SIGKILL, five times, each at another moment of its cycle; the next advice is the other's and names the last."""
    began = read_clock()
    leader = start("L0")
    first_advice_of(store, leader, since=began, seconds=60)
    other = start("L1")
    took = []
    for number in range(KILLS):
        time.sleep(2 + number * 0.37)
        killed_at = leader.send(signal.SIGKILL)
        advised_at = first_advice_of(store, other, since=killed_at, seconds=30)
        took.append(advised_at - killed_at)
        leader, other = other, start(f"L{number + 2}")
    print("seconds from a kill to the next advice:", *(f"{each.total_seconds():.1f}" for each in took))  # noqa: T201  # the measurement
    assert max(took) < LIMIT
    one_history(store)


@contextmanager
def unlocked(store_url: str) -> Iterator[None]:
    """No write is under way inside this block: SQLite's lock would outlast the freeze of its holder.

    PostgreSQL releases the locks of a frozen process, which may be frozen anywhere there.
    """
    path = make_url(store_url).database if store_url.startswith("sqlite") else None
    if path is None:
        yield
        return
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_a_frozen_leader_that_comes_back_publishes_nothing(
    start: Callable[..., Replica], store: SqlDecisionStore, store_url: str
) -> None:
    """Stopped for longer than its lease while the other takes over, then continued, it stands by; then the other."""
    began = read_clock()
    leader = start("A")
    first_advice_of(store, leader, since=began, seconds=60)
    other = start("B")
    for number in range(2):
        time.sleep(1 + number * 0.5)
        with unlocked(store_url):
            frozen_at = leader.send(signal.SIGSTOP)
        first_advice_of(store, other, since=frozen_at, seconds=30)
        stood_by = leader.logged.count('"standing_by"')
        continued_at = leader.send(signal.SIGCONT)
        wait_until(lambda: leader.logged.count('"standing_by"') > stood_by, seconds=30)  # noqa: B023  # called at once
        assert "lagcast_leader 0.0" in leader.get("metrics").text
        time.sleep(3)
        # A write that it had begun before is as old as the freeze.
        assert {each.currency for each in advice_since(store, since=frozen_at)} == {other.name}
        assert advice_since(store, since=continued_at) != []
        leader, other = other, leader
    one_history(store)


def test_a_leader_that_is_cut_off_stops_before_another_begins(
    start: Callable[..., Replica], store: SqlDecisionStore, control_plane: ControlPlane, kubeconfig: Path
) -> None:
    """It reaches its store all the time, and the API server no more: 5 s lie between its last advice and the other's.

    Requests that it had sent arrive when the network is mended, and change nothing.
    """
    link = Link(urlsplit(control_plane.url).port or 0)
    try:
        began = read_clock()
        leader = start("A", through=link.kubeconfig(kubeconfig))
        first_advice_of(store, leader, since=began, seconds=60)
        other = start("B")
        time.sleep(2)
        cut_at = link.cut()
        begun_at = first_advice_of(store, other, since=cut_at, seconds=40)
        last_at = max(each.issued_at for each in advice_since(store, since=began) if each.currency == leader.name)
        assert begun_at - last_at >= timedelta(seconds=4)
        assert last_at - cut_at <= timedelta(seconds=10)
        assert "lagcast_leader 0.0" in leader.get("metrics").text
        assert '"lease_failed"' in leader.logged
        mended_at = read_clock()
        link.mend()
        wait_until(lambda: '"lease_reachable"' in leader.logged, seconds=20)
        time.sleep(5)
        assert {each.currency for each in advice_since(store, since=mended_at)} == {other.name}
        one_history(store)
    finally:
        link.close()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_leader_that_has_lost_its_store_hands_over_to_one_that_reaches_it(
    start: Callable[..., Replica], store: SqlDecisionStore, store_url: str
) -> None:
    """It reaches the API server all the time, and the database no more: it refuses for some cycles, and stands by."""
    direct = make_url(store_url)
    link = Link(direct.port or 0)
    try:
        began = read_clock()
        leader = start("A", store_through=direct.set(port=link.port).render_as_string(hide_password=False))
        first_advice_of(store, leader, since=began, seconds=60)
        other = start("B")
        cut_at = read_clock()
        link.close()
        advised_at = first_advice_of(store, other, since=cut_at, seconds=60)
        without_store = leader.logged[leader.logged.index('"name": "store"') :]
        # The step that gives the Lease up is due in 2 s, that is in two more cycles of a second each.
        assert CYCLES_WITHOUT_STORE <= without_store.count('"event": "cycle"') <= CYCLES_WITHOUT_STORE + 4
        assert '"handing_over"' in without_store
        assert "lagcast_leader 1.0" in other.get("metrics").text
        assert leader.times_leading() == 1
        assert {each.currency for each in advice_since(store, since=advised_at)} == {other.name}
        one_history(store)
    finally:
        link.close()


@pytest.mark.alone
def test_a_leader_that_is_stopped_hands_over_at_once(start: Callable[..., Replica], store: SqlDecisionStore) -> None:
    """SIGTERM ends it with 0 and releases the Lease; the other was ready, answered, and leads in some seconds."""
    began = read_clock()
    leader = start("A")
    first_advice_of(store, leader, since=began, seconds=60)
    other = start("B")
    assert other.get("readyz").status_code == 200
    groups = other.get("api/v1/groups").json()["groups"]
    assert [group["group_id"] for group in groups] == ["orders"]
    assert "lagcast_leader 0.0" in other.get("metrics").text
    assert "lagcast_due_replicas{" not in other.get("metrics").text
    assert "lagcast_due_replicas{" in leader.get("metrics").text
    stopped_at = leader.send(signal.SIGTERM)
    assert leader.process.wait(timeout=60) == 0
    advised_at = first_advice_of(store, other, since=stopped_at, seconds=30)
    assert advised_at - stopped_at < timedelta(seconds=6)
    wait_until(lambda: "lagcast_due_replicas{" in other.get("metrics").text)
    one_history(store)


def test_objects_are_written_by_the_leader_alone(
    start: Callable[..., Replica], store: SqlDecisionStore, installed: ControlPlane, namespace: str
) -> None:
    """Two follow the same object; it has one Event and the leader's status, and after a kill the other's."""
    installed.apply(json.dumps(scaler(namespace)))

    def currency() -> str:
        path = "jsonpath={.status.costPerHour.currency}"
        return installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", path)

    def changes() -> int:
        events = json.loads(installed.kubectl("-n", namespace, "get", "events", "-o", "json"))["items"]
        return sum(event["involvedObject"]["name"] == "orders" for event in events)

    leader, other = (start(name, "--kubernetes", namespace, through=installed.kubeconfig) for name in ("A", "B"))
    wait_until(lambda: currency() == leader.name, seconds=60)
    time.sleep(3)
    assert changes() == 1
    killed_at = leader.send(signal.SIGKILL)
    first_advice_of(store, other, since=killed_at, seconds=30)
    installed.apply(json.dumps(scaler(namespace, maxReplicas=12)))
    wait_until(lambda: currency() == other.name, seconds=20)
    # The count is the same: the owner has had an Event for it.
    assert changes() == 1
    one_history(store)


def test_a_lease_is_written_by_version_and_read_by_kubectl(
    control_plane: ControlPlane, namespace: str, kubeconfig: Path
) -> None:
    """Of two that write the same version one is refused; its holder, its start and its changes are shown."""
    first, second = (KubernetesLease(connect(kubeconfig), namespace, LEASE, clock=read_clock) for _ in range(2))
    before = first.read()
    assert before.holder is None
    second.read()
    first.write(before, holder="a", lease_seconds=15.0)
    with pytest.raises(LeaseTakenError):
        second.write(before, holder="b", lease_seconds=15.0)
    found = second.read()
    assert (found.holder, found.lease_seconds) == ("a", 15.0)
    second.write(found, holder="b", lease_seconds=15.0)
    control_plane.kubectl("-n", namespace, "label", "lease", LEASE, "team=shop")
    second.write(second.read(), holder="", lease_seconds=15.0)
    lease = json.loads(control_plane.kubectl("-n", namespace, "get", "lease", LEASE, "-o", "json"))
    assert lease["metadata"]["labels"] == {"team": "shop"}
    assert lease["spec"]["leaseTransitions"] == 2
    assert second.read().holder == ""


@pytest.mark.parametrize(
    ("verb", "does"), [("get", "read the Lease"), ("update", "write the Lease")], ids=["get", "update"]
)
def test_each_right_is_needed_and_named_where_it_is_missing(
    control_plane: ControlPlane, namespace: str, kubeconfig: Path, verb: str, does: str
) -> None:
    """Without `get` its state is unknown, without `update` it cannot be taken; with both it is taken."""
    leases = KubernetesLease(connect(kubeconfig), namespace, LEASE, clock=read_clock)
    now = [0.0]
    elector = Elector(leases, identity="a", clock=lambda: now[0])

    def may(*verbs: str) -> None:
        rule = {"op": "replace", "path": "/rules/0/verbs", "value": list(verbs)}
        words = ("patch", "role", "lagcast-lease-holder", "--type=json", "-p", json.dumps([rule]))
        control_plane.kubectl("-n", namespace, *words)

    def is_named() -> bool:
        try:
            elector.step()
            now[0] += 15
        except LeaseFailedError as error:
            return f"could not {does} {namespace}/{LEASE}" in str(error) and (
                f"grant {verb} on leases.coordination.k8s.io" in str(error)
            )
        return False

    may({"get": "update", "update": "get"}[verb])
    # A role that was changed holds a moment later.
    wait_until(is_named)
    may("get", "update")

    def leads() -> bool:
        now[0] += 2
        try:
            elector.step()
        except LeaseFailedError:
            return False
        return elector.term() is not None

    wait_until(leads)


def test_the_rights_are_on_this_one_lease(control_plane: ControlPlane, namespace: str, kubeconfig: Path) -> None:
    """No other Lease may be read, and none may be made, deleted or listed; the executor may read it and no more."""
    control_plane.kubectl("-n", namespace, "create", "-f", "-", given=OTHER)
    reader = kubeconfig_of(control_plane, namespace, "lagcast-executor")

    def may(who: Path, *words: str) -> bool:
        return control_plane.may(who, namespace, *words)

    wait_until(lambda: may(kubeconfig, "update", f"lease/{LEASE}") and may(reader, "get", f"lease/{LEASE}"))
    assert not any(may(kubeconfig, verb, "lease/other") for verb in ("get", "update", "delete"))
    assert not any(may(kubeconfig, verb, "leases") for verb in ("create", "list", "watch"))
    assert not any(may(kubeconfig, verb, f"lease/{LEASE}") for verb in ("delete", "patch"))
    assert not any(may(reader, verb, f"lease/{LEASE}") for verb in ("update", "patch", "delete"))


OTHER = """
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: other}
"""
