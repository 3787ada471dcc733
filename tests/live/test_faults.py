"""C36: faults around an executor, one after another: it sets only the count of advice in force."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from time import sleep

import pytest

from api.schemas import Target
from executor.errors import OutsideError
from executor.kubernetes_client import connect
from executor.kubernetes_scale import KubernetesScales
from executor.plan import Act, Held, Scale
from forecasting.refusal import Refusal
from recommender.adapters.kubernetes_scalers import KubernetesScalers
from recommender.cluster.scalers import Scalers
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import Settings
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlaneError
from tests.live.harness.executors import executor_in, read_clock
from tests.live.harness.shop import Shop

pytestmark = pytest.mark.kubernetes

SECOND = timedelta(seconds=1)


def outcome(shop: Shop, *, skew: timedelta = timedelta(0)) -> Act | Held | OutsideError:
    """The outcome of one look of a new executor whose clock is ahead by `skew`."""
    (found,) = shop.executor(clock=lambda: read_clock() + skew).run_once(None)
    return found


def held(shop: Shop, *, skew: timedelta = timedelta(0)) -> str:
    """The reason for which that look changed nothing."""
    found = outcome(shop, skew=skew)
    assert isinstance(found, Held), found
    return found.reason


def test_p6_advice_that_is_too_old_sets_nothing(shop: Shop) -> None:
    """Past its last safe instant, and past its end, it has a reason of its own, and the count stays."""
    left, now = shop.workload(), read_clock()
    shop.advise(1, latest_safe=now - SECOND)
    assert held(shop) == "too_late"
    shop.advise(2, latest_safe=now - 2 * SECOND, valid_until=now - SECOND)
    assert held(shop) in {"expired", "refused"}  # the service refuses it itself if it looks first
    assert shop.workload() == left


@pytest.mark.parametrize("skew", [-5 * SECOND, 5 * SECOND])
def test_p19_clocks_that_differ_set_nothing(shop: Shop, skew: timedelta) -> None:
    """Five seconds before or behind the advising service nothing is set; with the right time the move is made."""
    left = shop.workload()
    shop.advise(1)
    assert held(shop, skew=skew) == "clock_skew"
    assert shop.workload() == left
    assert isinstance(outcome(shop), Act)
    assert shop.workload()[0] == 8


class WrittenMeanwhile(KubernetesScales):
    """A cluster whose workload is written after each read, so that every patch meets another version."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(connect(shop.kubeconfig))
        self._shop, self._written = shop, 0

    def read(self, namespace: str, target: Target) -> Scale:
        """The workload, which changes before this returns."""
        found = super().read(namespace, target)
        self._written += 1
        self._shop.kubectl("label", "--overwrite", "deployment", "orders", f"storm={self._written}")
        return found


def test_a_storm_of_writes_is_answered_with_patience(shop: Shop) -> None:
    """Five patches are refused for the version of another writer, and none is forced; after the storm one is made."""
    left = shop.workload()
    shop.advise(1)
    executor = replace(shop.executor(), scales=WrittenMeanwhile(shop))
    for _ in range(5):
        (found,) = executor.run_once(None)
        assert isinstance(found, Held), found
        assert found.reason == "conflicted"
        assert "another client changed it" in found.sentence or "409" in found.sentence, found.sentence
        assert shop.workload() == left
    assert isinstance(outcome(shop), Act)
    assert shop.workload()[0] == 8


def test_an_executor_whose_token_is_void_sets_nothing_and_reports_it(shop: Shop) -> None:
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
    """True if the old token is void by now."""
    try:
        shop.cluster.kubectl(f"--kubeconfig={shop.kubeconfig}", "-n", shop.namespace, "get", "deployment", "orders")
    except ControlPlaneError as error:
        return "Unauthorized" in str(error) or "must be logged in" in str(error)
    return False


def test_p20_a_hold_ends_a_pending_move_and_a_move_that_was_made_stays(
    shop: Shop, objects: KubernetesScalers, refusal: Callable[..., Refusal]
) -> None:
    """The owner writes `hold` before the move is due: within a look nothing is advised, and nothing is set.

    Without it the move is made, recorded and reported, and stays after the last executor has stopped.
    """
    left, now = shop.workload(), read_clock()
    shop.advise(1, execute_at=now + 15 * SECOND, not_before=now)
    executor = shop.executor()
    assert executor.run_once(None)[0].reason == "not_due"  # type: ignore[union-attr]  # held, or no attribute
    shop.kubectl("patch", "cgs", "orders", "--type=merge", "-p", '{"spec":{"hold":{"replicas":3}}}')
    scalers = Scalers(
        objects=objects, settings=Settings(state_dir=Path("nowhere")), tenants=Tenants(followed=(shop.namespace,))
    )
    group = ("prod-eu", "orders")
    wait_until(lambda: group in scalers.look([group], now=read_clock()))
    found = scalers.look([group], now=read_clock())[group]
    assert found.reason == "paused"
    shop.store.save(refusal(reason=found.reason, sentence=found.sentence, refused_at=read_clock()))
    sleep(max(0.0, (now + 16 * SECOND - read_clock()).total_seconds()))
    (withheld,) = executor.run_once(None)
    assert isinstance(withheld, Held)
    assert withheld.reason == "refused"
    assert shop.workload() == left
    shop.kubectl("patch", "cgs", "orders", "--type=json", "-p", '[{"op":"remove","path":"/spec/hold"}]')
    wait_until(lambda: group not in scalers.look([group], now=read_clock()))
    now = read_clock()
    shop.advise(3, issued_at=now, not_before=now, execute_at=now)
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
