"""What goes wrong around an executor, one thing after another: nothing is set but what advice in force says."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from time import sleep

import pytest
from kubernetes.client import AppsV1Api

from executor.errors import OutsideError
from executor.kubernetes_client import connect
from executor.plan import Act, Held
from tests.live.clients import wait_until
from tests.live.control_plane import ControlPlaneError
from tests.live.executors import executor_in, read_clock
from tests.live.shop import Shop

pytestmark = pytest.mark.kubernetes

SECOND = timedelta(seconds=1)


def outcome(shop: Shop, *, skew: timedelta = timedelta(0)) -> Act | Held | OutsideError:
    """What one look of a new executor comes to, its clock being ahead by `skew`."""
    (found,) = shop.executor(clock=lambda: read_clock() + skew).run_once(None)
    return found


def held(shop: Shop, *, skew: timedelta = timedelta(0)) -> str:
    """Why that look changed nothing."""
    found = outcome(shop, skew=skew)
    assert isinstance(found, Held), found
    return found.reason


def test_p6_advice_that_is_too_old_sets_nothing(shop: Shop) -> None:
    """Past its last safe instant, and past its end: reasons of their own, and the count is what it was."""
    left, now = shop.workload(), read_clock()
    shop.advise(1, latest_safe=now - SECOND)
    assert held(shop) == "too_late"
    shop.advise(2, latest_safe=now - 2 * SECOND, valid_until=now - SECOND)
    assert held(shop) in {"expired", "refused"}  # the service says so itself where it looks first
    assert shop.workload() == left


@pytest.mark.parametrize("skew", [-5 * SECOND, 5 * SECOND])
def test_p19_clocks_that_differ_set_nothing(shop: Shop, skew: timedelta) -> None:
    """Five seconds before or behind the service that advises; with the right time the same advice is carried out."""
    left = shop.workload()
    shop.advise(1)
    assert held(shop, skew=skew) == "clock_skew"
    assert shop.workload() == left
    assert isinstance(outcome(shop), Act)
    assert shop.workload()[0] == 8


@contextmanager
def written_all_the_time(shop: Shop) -> Iterator[list[int]]:
    """Somebody labels the workload again and again: each write makes it another version. How many there were."""
    stop, written = threading.Event(), [0] * 4
    workloads = AppsV1Api(connect(shop.cluster.kubeconfig))

    def write(place: int) -> None:
        while not stop.is_set():
            labels = {"metadata": {"labels": {f"storm-{place}": str(written[place])}}}
            workloads.patch_namespaced_deployment("orders", shop.namespace, labels)
            written[place] += 1

    with ThreadPoolExecutor(len(written)) as writers:
        writing = [writers.submit(write, place) for place in range(len(written))]
        try:
            yield written
        finally:
            stop.set()
    for each in writing:
        each.result()


def test_a_storm_of_writes_lets_one_move_through_or_none(shop: Shop) -> None:
    """Twenty looks while the workload is another version all the time: the count changes once, to what was advised."""
    _, before = shop.workload()
    shop.advise(1)
    with written_all_the_time(shop) as written:
        wait_until(lambda: all(written))
        found = [outcome(shop) for _ in range(20)]
    acts = [each for each in found if isinstance(each, Act)]
    assert len(acts) <= 1
    replicas, after = shop.workload()
    assert (replicas, after - before) == ((8, 1) if acts else (3, 0))
    assert {each.reason for each in found if isinstance(each, Held)} <= {"conflicted", "nothing_to_do"}
    if not acts:
        assert isinstance(outcome(shop), Act)


def test_a_cluster_that_is_away_is_not_caught_up_with(shop: Shop) -> None:
    """Looks while the API server is gone fail in a sentence; when it is back the move is too late, and not made."""
    executor = shop.executor()
    left = shop.workload()
    shop.advise(1, latest_safe=read_clock() + 6 * SECOND)
    found: list[object] = []

    def look() -> None:
        until = read_clock() + 8 * SECOND
        while read_clock() < until:
            found.extend(executor.run_once(None))
            sleep(1.0)

    shop.cluster.restart_api_server(after=look)
    assert found
    failed = [each for each in found if isinstance(each, OutsideError)]
    assert failed
    assert all("\n" not in str(each) for each in failed)
    assert not [each for each in found if isinstance(each, Act)]
    (later,) = executor.run_once(None)
    assert isinstance(later, Held)
    assert later.reason == "too_late"
    assert shop.workload() == left


def test_an_executor_whose_token_is_void_sets_nothing_and_says_so(shop: Shop) -> None:
    """Its service account is deleted: the next look is refused by the API server. With a new token it goes on."""
    left = shop.workload()
    shop.advise(1)
    executor = shop.executor()
    shop.cluster.kubectl("-n", "lagcast-executor", "delete", "serviceaccount", "lagcast-executor")
    refused = partial(_refused, shop)
    wait_until(refused)
    (found,) = executor.run_once(None)
    assert isinstance(found, OutsideError)
    assert shop.workload() == left
    shop.kubeconfig = executor_in(shop.cluster, shop.namespace)
    assert isinstance(outcome(shop), Act)


def _refused(shop: Shop) -> bool:
    """Whether the old token is void by now."""
    try:
        shop.cluster.kubectl(f"--kubeconfig={shop.kubeconfig}", "-n", shop.namespace, "get", "deployment", "orders")
    except ControlPlaneError as error:
        return "Unauthorized" in str(error) or "must be logged in" in str(error)
    return False


def test_p20_a_hold_ends_a_move_that_is_pending_and_leaving_leaves_all_as_it_is(shop: Shop) -> None:
    """Advice for later, mode Recommend before it is due: nothing is set. What was set stays when nobody looks again."""
    now = read_clock()
    shop.advise(1, execute_at=now + 3 * SECOND, not_before=now)
    executor = shop.executor()
    assert executor.run_once(None)[0].reason == "not_due"  # type: ignore[union-attr]  # held, or no attribute
    shop.advise(2, execute_at=now + 3 * SECOND, not_before=now, current_replicas=3, desired_replicas=3)
    sleep((now + 4 * SECOND - read_clock()).total_seconds())
    assert held(shop) == "nothing_to_do"
    assert shop.workload()[0] == 3
    shop.advise(3)
    (act,) = executor.run_once(None)
    assert isinstance(act, Act)
    del executor
    status = shop.status()["lastApplied"]
    assert (status["recommendationId"], status["replicas"]) == ("r-3", 8)
    assert datetime.fromisoformat(status["at"]) <= read_clock()
    events = json.loads(shop.kubectl("get", "events", "-o", "json"))["items"]
    assert [each["message"] for each in events if each["reason"] == "ScaledOnAdvice"] == [
        "3 -> 8 replicas by lagcast's r-3"
    ]
