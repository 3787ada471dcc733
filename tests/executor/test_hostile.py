"""The executor believes no answer: whatever an API says, a patch is one that the owner's object allows.

The judge of this file is written from the promise, and shares nothing with the executor: which workload, which counts,
which mode and how fresh are read off the object and the answer as they were generated.
"""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes import client

from api.convert import to_wire
from api.keys import group_key
from executor.advice import AdviceClient
from executor.carry_out import Executor
from executor.errors import OutsideError
from executor.kubernetes_claims import KubernetesClaims
from executor.kubernetes_records import KubernetesRecords
from executor.kubernetes_scale import KubernetesScales
from executor.plan import Act, Bounds
from recommender.configuring.settings import GroupSettings, TargetSettings
from recommender.deciding.recommendation import Recommendation

# A class of the conftest beside; test modules cannot import one another.
Cluster = Any
KEY = group_key("prod-eu", "orders")
ANSWERS = 1000
AGE_LIMIT, VALIDITY_LIMIT = timedelta(minutes=15), timedelta(hours=1)
# Between the judge's look at the clock and the executor's.
MEANWHILE = timedelta(seconds=10)
OWNED = GroupSettings(mode="apply", target=TargetSettings(namespace="shop", name="orders-consumer"))


@dataclass
class HostileApi:
    """An API that answers every request for advice with `body`, and lists `listed`."""

    body: bytes = b""
    listed: list[Any] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def hostile() -> Iterator[HostileApi]:
    """A real server on this machine that answers what it is told to."""
    api = HostileApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = api.body if self.path.endswith("/recommendation") else json.dumps({"groups": api.listed}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Log nothing, as pytest shows enough."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield api
    server.shutdown()
    thread.join()
    server.server_close()


INSTANTS = (
    timedelta(days=-300),
    -AGE_LIMIT - MEANWHILE,
    timedelta(hours=-2),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(days=3650),
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "yesterday",
    None,
)
# What the API says of each, in place of what is true; a number of replicas it always makes up.
LIES: dict[str, tuple[Any, ...]] = {
    "group_id": (*["billing"] * 5, "orders\0", "", None),
    "cluster": (*["prod-us"] * 5, ""),
    "recommendation_id": ("r-1", "", 7),
    "namespace": ("bank", "..", "shop/../bank", "", None),
    "target": (
        {"api_version": "apps/v1", "kind": "Deployment", "name": "billing"},
        {"api_version": "apps/v1", "kind": "StatefulSet", "name": "orders-consumer"},
        {"api_version": "apps/v1", "kind": "Deployment", "name": "../billing"},
        {"api_version": "v1", "kind": "Secret", "name": "orders-consumer"},
        None,
    ),
    "mode": ("off", "recommend", "Apply"),
    "scale_to_zero": (True, False),
    "useful_replicas": ([1, 10**6], [], [0]),
    "current_replicas": (7, 0, -6),
    "issued_at": INSTANTS,
    "valid_until": INSTANTS,
    "execute_at": INSTANTS,
    "kind": ("Refusal", "Advert"),
    "schema_version": ("1.9", "2.0", 1),
}
COUNTS = (0, 0, 1, 2, *[3, 4, 5, 7] * 3, 8, 10, 24, 25, 1000, -1, 10**30, "8", 8.0, None)
OWNERS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from([*["Apply"] * 12, "Recommend", "Off", None]),
        "minReplicas": st.sampled_from([None, 1, 3, 0]),
        "maxReplicas": st.sampled_from([None, 7, 10, 24, 24, 24]),
        "scaleToZero": st.sampled_from([None, {"enabled": True}, {"enabled": False}]),
        "hold": st.sampled_from([*[None] * 10, {"replicas": 6}, {"replicas": 6, "until": "2020-01-01T00:00:00Z"}]),
        "groupId": st.sampled_from([*["orders"] * 15, "billing"]),
    }
)
BODIES = st.one_of(
    *[st.none()] * 19, st.binary(max_size=40), st.just(b"[" * 5000), st.just(b'{"schema_version": "1.0"}'), st.just(b"")
)


def spoken(lie: object, now: datetime) -> object:
    return (now + lie).isoformat() if isinstance(lie, timedelta) else lie


def wrongs(patch: dict[str, Any], spec: dict[str, Any], answer: dict[str, Any], bounds: Bounds, seen: int) -> list[str]:
    """What is wrong with a patch, by the object and the answer alone."""
    count, now = patch["body"]["spec"]["replicas"], datetime.now(UTC)  # noqa: TID251  # the executor's clock is real
    lowest = max(spec.get("minReplicas") or 1, bounds.lowest)
    caps = [cap for cap in (spec.get("maxReplicas"), bounds.highest) if cap is not None]
    may_be_zero = (spec.get("scaleToZero") or {}).get("enabled") is True
    issued_at, valid_until = (datetime.fromisoformat(answer[name]) for name in ("issued_at", "valid_until"))
    found = {
        "another workload": patch["path"] != "/apis/apps/v1/namespaces/shop/deployments/orders-consumer/scale",
        "another group's advice": (answer["cluster"], answer["group_id"]) != ("prod-eu", "orders"),
        "another group's object": spec["groupId"] != "orders",
        "mode not apply": spec.get("mode") != "Apply",
        "under a hold": (spec.get("hold") or {"until": 0}).get("until") is None,
        "below the bounds": 0 < count < lowest or count < 0 or (count == 0 and bounds.lowest > 0),
        "above the bounds": count > min([*caps, 24]),
        "without a maximum": not caps,
        "zero without permission": 0 in {count, seen} and not may_be_zero,
        "stale": now - issued_at > AGE_LIMIT + MEANWHILE or valid_until < now - MEANWHILE,
        "from the future": issued_at > now + timedelta(seconds=2),
        "valid for too long": valid_until - issued_at > VALIDITY_LIMIT,
    }
    return [what for what, wrong in found.items() if wrong]


@pytest.mark.slow
def test_of_a_thousand_hostile_answers_none_makes_a_wrong_patch(
    hostile: HostileApi,
    cluster: Cluster,
    wall_clock: Callable[[], datetime],
    due_advice: Callable[..., Recommendation],
) -> None:
    """Other groups', stale, long-lived, unbounded and misdirected advice, to groups in any mode: nothing is patched.

    The patches that are made are all right, and some are made: an executor that did nothing would prove nothing.
    """
    advice = AdviceClient(hostile.url)
    api = client.ApiClient(client.Configuration(host=cluster.url))
    scales, owners, records = KubernetesScales(api), KubernetesClaims(api), KubernetesRecords(api)
    tally = {"answers": 0, "patches": 0}

    @given(data=st.data())
    @settings(max_examples=ANSWERS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def answered(data: st.DataObject) -> None:
        seen = data.draw(st.sampled_from([6, 6, 6, 0]))
        owner = data.draw(OWNERS)
        cluster.patches.clear()
        cluster.add_scaler()
        cluster.owner_sets(**owner)
        cluster.write(seen)
        now = wall_clock()
        decision = due_advice(current_replicas=seen)
        answer = to_wire(decision, OWNED, now=now).model_dump(mode="json", exclude_none=True)
        listed = {"group_key": KEY, "cluster": "prod-eu", "group_id": "orders", "kind": "Recommendation"}
        listed |= {
            "recommendation_id": answer["recommendation_id"],
            "reason_code": "x",
            "issued_at": answer["issued_at"],
        }
        answer["desired_replicas"] = data.draw(st.sampled_from(COUNTS))
        for name in data.draw(st.lists(st.sampled_from(sorted(LIES)), max_size=2)):
            answer[name] = spoken(data.draw(st.sampled_from(LIES[name]), label=name), now)
        body = data.draw(BODIES)
        hostile.body = json.dumps(answer).encode() if body is None else body
        hostile.listed = [listed, {"group_key": 7}, "orders", listed | {"group_key": "no key"}]
        bounds = Bounds(
            lowest=data.draw(st.sampled_from([0, 0, 1, 3])), highest=data.draw(st.sampled_from([None, None, 7, 100]))
        )
        executor = Executor(
            advice=advice,
            scales=scales,
            owners=owners,
            records=records,
            clock=wall_clock,
            mode="apply",
            bounds=bounds,
            dry_run=False,
            show_patch=lambda _: None,
        )
        first, *others = executor.run_once(data.draw(st.sampled_from([None, [KEY]])))
        assert all(isinstance(other, OutsideError) for other in others)
        assert isinstance(first, Act) == bool(cluster.patches)
        spec = cluster.scalers[0]["spec"]
        assert [wrongs(patch, spec, answer, bounds, seen) for patch in cluster.patches] in ([], [[]])
        tally["answers"] += 1
        tally["patches"] += len(cluster.patches)

    answered()
    advice.close()
    print(tally)  # noqa: T201  # shown by `pytest -s`
    assert tally["answers"] >= ANSWERS
    assert tally["patches"] > ANSWERS / 20


def test_the_advice_of_another_group_that_is_old_and_valid_for_years_sets_nothing(
    hostile: HostileApi,
    cluster: Cluster,
    wall_clock: Callable[[], datetime],
    advice: Callable[..., Recommendation],
) -> None:
    """Asked for one group, given another's of 300 days ago that is valid for ten years: six replicas stay six."""
    now = wall_clock()
    old = now - timedelta(days=300)
    given_advice = advice(
        group="billing",
        issued_at=old,
        not_before=old,
        execute_at=old,
        latest_safe=now + timedelta(days=3650),
        valid_until=now + timedelta(days=3650),
        desired_replicas=0,
    )
    answer = to_wire(given_advice, OWNED, now=now).model_copy(update={"scale_to_zero": True})
    hostile.body = answer.model_dump_json(exclude_none=True).encode()
    api = client.ApiClient(client.Configuration(host=cluster.url))
    client_of_advice = AdviceClient(hostile.url)
    (held,) = Executor(
        advice=client_of_advice,
        scales=KubernetesScales(api),
        owners=KubernetesClaims(api),
        records=KubernetesRecords(api),
        clock=wall_clock,
        mode="apply",
        bounds=Bounds(),
        dry_run=False,
        show_patch=lambda _: None,
    ).run_once([KEY])
    client_of_advice.close()
    assert getattr(held, "reason", held) == "not_as_asked"
    assert (cluster.replicas, cluster.patches) == (6, [])
