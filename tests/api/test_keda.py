"""KEDA's external scaler, called as KEDA calls it: over gRPC, with KEDA's own fields."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # ships no types
import pytest
from structlog.testing import capture_logs

from api.access.certificates import Certificate
from api.keda.protocol import SERVICE, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, ScaledObjectRef
from api.keda.scaler import METRIC, MOST_STREAMS
from api.keda.server import MOST_CONNECTIONS, serving_keda
from forecasting.refusal import Refusal
from recommender.adapters.store_sql import SqlDecisionStore, sqlite_url
from recommender.borders import Borders
from recommender.deciding.recommendation import Recommendation
from recommender.ports import UnavailableError
from tests.api.access_files import Authority
from tests.live.harness.clients import wait_until

MakeAdvice = Callable[..., Recommendation]
MakeRefusal = Callable[..., Refusal]
ORDERS = {"cluster": "prod-eu", "groupId": "orders"}
# What ScaledObjectRef(name="o", scalerMetadata={"groupId": "a"}) is on the wire: field 1, then field 3 with an entry.
WIRE = b"\x0a\x01o\x1a\x0c\x0a\x07groupId\x12\x01a"


class Clock:
    """The clock of the service: it returns the time that a test sets."""

    def __init__(self) -> None:
        self.now = datetime.fromisoformat("2026-01-05T12:01:00+00:00")

    def __call__(self) -> datetime:
        """Return that time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at a minute after the advice was issued and a minute before it is due."""
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlDecisionStore]:
    """An empty store."""
    store = SqlDecisionStore(sqlite_url(tmp_path / "decisions.sqlite"))
    yield store
    store.close()


@pytest.fixture
def channel(store: SqlDecisionStore, clock: Clock) -> Iterator[grpc.Channel]:
    """A connection to a running scaler over that store."""
    with (
        serving_keda(store, clock=clock, host="127.0.0.1", port=0) as port,
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield channel


def metrics(channel: grpc.Channel, **metadata: str) -> dict[str, float]:
    """The metric values that GetMetrics returns."""
    get_metrics = channel.unary_unary(
        f"/{SERVICE}/GetMetrics",
        request_serializer=GetMetricsRequest.SerializeToString,
        response_deserializer=GetMetricsResponse.FromString,
    )
    reference = ScaledObjectRef(name="orders", namespace="shop", scalerMetadata=metadata)
    answer = get_metrics(GetMetricsRequest(scaledObjectRef=reference, metricName=METRIC), timeout=10)
    return {value.metricName: value.metricValueFloat for value in answer.metricValues}


def test_messages_are_kedas_byte_for_byte() -> None:
    """A map, which is a list of entries on the wire, is read from bytes that were written by hand."""
    read = ScaledObjectRef.FromString(WIRE)
    assert (read.name, dict(read.scalerMetadata)) == ("o", {"groupId": "a"})
    assert read.SerializeToString() == WIRE


def test_what_is_due_changes_at_its_instant(
    store: SqlDecisionStore, channel: grpc.Channel, clock: Clock, advice: MakeAdvice
) -> None:
    """The metric is 6 until 12:02, and 8 from then on."""
    store.save(advice())
    assert metrics(channel, **ORDERS) == {METRIC: 6.0}
    clock.now += timedelta(minutes=1)
    assert metrics(channel, **ORDERS) == {METRIC: 8.0}


def test_without_advice_there_is_an_error_and_never_a_number(
    store: SqlDecisionStore, channel: grpc.Channel, clock: Clock, advice: MakeAdvice, refusal: MakeRefusal
) -> None:
    """An unknown group, expired advice, a refusal and a trigger without a group are errors with their reasons."""

    def refused(**metadata: str) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as error:
            metrics(channel, **metadata)
        return error.value.code(), error.value.details()

    assert refused(**ORDERS) == (
        grpc.StatusCode.NOT_FOUND,
        "nothing was decided for group 'orders' of cluster 'prod-eu'",
    )
    assert refused(cluster="prod-eu") == (grpc.StatusCode.INVALID_ARGUMENT, "the trigger's metadata lack groupId")
    store.save(advice())
    clock.now += timedelta(minutes=10)
    assert refused(**ORDERS) == (grpc.StatusCode.UNAVAILABLE, "the last advice expired at 2026-01-05T12:05:00Z")
    store.save(refusal())
    code, details = refused(**ORDERS)
    assert code == grpc.StatusCode.UNAVAILABLE
    assert details.startswith("no advice: ")


def test_a_stream_reports_at_once_that_the_group_is_active(
    store: SqlDecisionStore, channel: grpc.Channel, advice: MakeAdvice
) -> None:
    """The stream sends its first message at once, before any change, while KEDA waits."""
    store.save(advice())
    stream_is_active = channel.unary_stream(
        f"/{SERVICE}/StreamIsActive",
        request_serializer=ScaledObjectRef.SerializeToString,
        response_deserializer=IsActiveResponse.FromString,
    )
    stream = stream_is_active(ScaledObjectRef(name="orders", scalerMetadata=ORDERS), timeout=10)
    assert next(stream).result is True
    stream.cancel()


def test_a_port_that_is_taken_is_an_error(store: SqlDecisionStore, clock: Clock) -> None:
    """The error names the option."""
    with (
        serving_keda(store, clock=clock, host="127.0.0.1", port=0) as port,
        pytest.raises(UnavailableError, match="give a free one with --keda-port"),
        serving_keda(store, clock=clock, host="127.0.0.1", port=port),
    ):
        pass


def test_an_address_of_version_6_is_served(store: SqlDecisionStore, clock: Clock) -> None:
    """The colons of an IPv6 address are not taken for the one before the port."""
    with (
        serving_keda(store, clock=clock, host="::1", port=0) as port,
        grpc.insecure_channel(f"[::1]:{port}") as channel,
    ):
        grpc.channel_ready_future(channel).result(timeout=10)


def test_a_recommender_that_does_not_lead_closes_its_port(
    store: SqlDecisionStore, clock: Clock, advice: MakeAdvice
) -> None:
    """A request after the loss of the lead is an error, then the port is closed, and it is open again with the lead."""
    store.save(advice())
    leads = threading.Event()
    leads.set()
    with serving_keda(store, clock=clock, host="127.0.0.1", port=0, leads=leads.is_set) as port:

        def status_code() -> grpc.StatusCode:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                try:
                    metrics(channel, **ORDERS)
                except grpc.RpcError as error:
                    code: grpc.StatusCode = error.code()
                    return code
                return grpc.StatusCode.OK

        assert status_code() == grpc.StatusCode.OK
        leads.clear()
        assert status_code() == grpc.StatusCode.UNAVAILABLE
        wait_until(lambda: not listens(port), seconds=10)
        assert status_code() == grpc.StatusCode.UNAVAILABLE
        leads.set()
        wait_until(lambda: listens(port), seconds=10)
        assert status_code() == grpc.StatusCode.OK


def test_a_port_that_is_taken_when_the_lead_is_back_is_reported_once_and_taken_when_it_is_free(
    store: SqlDecisionStore, clock: Clock
) -> None:
    """KEDA would be answered by another server, or by none: it is a failure of a part, which is counted and logged."""
    failures: list[str] = []
    leads = threading.Event()
    leads.set()
    with (
        capture_logs() as lines,
        serving_keda(
            store, clock=clock, host="127.0.0.1", port=0, leads=leads.is_set, borders=Borders(failures.append)
        ) as port,
    ):
        leads.clear()
        wait_until(lambda: not listens(port), seconds=10)
        with socket.create_server(("127.0.0.1", port)):
            leads.set()
            wait_until(lambda: len(failures) >= 2, seconds=10)
        wait_until(lambda: any(line["event"] == "part_works_again" for line in lines), seconds=10)
        assert listens(port)
    assert [(line["event"], line["name"]) for line in lines] == [("part_failed", "keda"), ("part_works_again", "keda")]
    assert set(failures) == {"part"}


def listens(port: int) -> bool:
    """True if a server accepts a connection at the port."""
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def secured(port: int, authority: Authority, shown: tuple[Path, Path] | None = None) -> grpc.Channel:
    """A channel over TLS, with a client's certificate if one is shown."""
    certificate, key = (None, None) if shown is None else (file.read_bytes() for file in shown)
    credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes(), key, certificate)
    return grpc.secure_channel(f"127.0.0.1:{port}", credentials)


def test_with_an_authority_only_its_clients_are_answered(
    store: SqlDecisionStore, clock: Clock, advice: MakeAdvice, tmp_path: Path
) -> None:
    """By KEDA's caCert, tlsClientCert and tlsClientKey; neither plain, nor without a certificate or with another's."""
    store.save(advice())
    ours, others = Authority(tmp_path / "ours"), Authority(tmp_path / "others")
    certificate = Certificate(*ours.sign("server"), ours.certificate)
    with serving_keda(store, clock=clock, host="127.0.0.1", port=0, certificate=certificate) as port:
        with secured(port, ours, ours.sign("keda")) as channel:
            assert metrics(channel, **ORDERS) == {METRIC: 6.0}
        for refused in (
            secured(port, ours),
            secured(port, ours, others.sign("keda")),
            secured(port, others, ours.sign("keda")),
            grpc.insecure_channel(f"127.0.0.1:{port}"),
        ):
            with refused, pytest.raises(grpc.RpcError) as error:
                metrics(refused, **ORDERS)
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_renewed_certificate_is_shown_to_the_next_connection(
    store: SqlDecisionStore, clock: Clock, advice: MakeAdvice, tmp_path: Path
) -> None:
    """Without a restart, and with it a renewed authority of the clients."""
    store.save(advice())
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    certificate, key = first.sign("server")
    files = Certificate(certificate, key)
    with serving_keda(store, clock=clock, host="127.0.0.1", port=0, certificate=files) as port:
        with secured(port, first) as channel:
            assert metrics(channel, **ORDERS) == {METRIC: 6.0}
        for renewed, kept in zip(second.sign("server"), (certificate, key), strict=True):
            renewed.replace(kept)
        with secured(port, second) as channel:
            assert metrics(channel, **ORDERS) == {METRIC: 6.0}


def test_streams_have_a_limit_and_polling_goes_on(
    store: SqlDecisionStore, channel: grpc.Channel, advice: MakeAdvice
) -> None:
    """One stream more than the limit is refused with a sentence; when one ends, another one is taken."""
    store.save(advice())
    stream = channel.unary_stream(
        f"/{SERVICE}/StreamIsActive", ScaledObjectRef.SerializeToString, IsActiveResponse.FromString
    )
    asked = ScaledObjectRef(name="orders", scalerMetadata=ORDERS)
    streams = [stream(asked, timeout=120) for _ in range(MOST_STREAMS)]
    assert all(next(each).result for each in streams)
    with pytest.raises(grpc.RpcError) as error:
        next(stream(asked, timeout=30))
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.value.details() == f"{MOST_STREAMS} streams are open, the limit; use triggers of type external"
    assert metrics(channel, **ORDERS) == {METRIC: 6.0}
    streams[0].cancel()

    def taken() -> bool:
        try:
            return bool(next(stream(asked, timeout=30)).result)
        except grpc.RpcError:
            return False

    wait_until(taken)
    for each in streams:
        each.cancel()


def test_connections_have_a_limit_too(store: SqlDecisionStore, clock: Clock, advice: MakeAdvice) -> None:
    """Connections that say nothing are closed beyond it, and KEDA is answered once they are gone."""
    store.save(advice())
    with serving_keda(store, clock=clock, host="127.0.0.1", port=0) as port:
        with ExitStack() as idle:
            for _ in range(MOST_CONNECTIONS + 8):
                last = idle.enter_context(socket.create_connection(("127.0.0.1", port)))
            last.settimeout(5)  # half of what a connection may take for its first words
            with suppress(ConnectionResetError):
                while last.recv(4096):
                    pass
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            wait_until(lambda: answers(channel))


def answers(channel: grpc.Channel) -> bool:
    try:
        return metrics(channel, **ORDERS) == {METRIC: 6.0}
    except grpc.RpcError:
        return False
