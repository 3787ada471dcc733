"""`lagcast serve`, as a process: it decides, answers over HTTP, and stops on SIGTERM."""

import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # ships no types
import httpx2
import pytest

from api.keda.protocol import SERVICE, IsActiveResponse, ScaledObjectRef
from cli.instants import read_clock
from tests.api.access_files import Authority, token_file
from tests.feature_folder import steady_hour

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(feature_table: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A running `lagcast serve` on free ports, its address, and its address for KEDA."""
    with serving(feature_table, tmp_path) as running:
        yield running


@contextmanager
def serving(table: Path, tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The same, over any table."""
    arguments = ["--features", str(table), "--forecasts", str(tmp_path / "forecasts"), "--port", "0"]
    arguments += ["--keda-port", "0", *options]
    command = [sys.executable, "-m", "cli.main", "serve", *arguments]
    environment = {**os.environ, "LAGCAST_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        scaler = re.search(r"external triggers on (\S+)", process.stderr.readline())
        address = re.search(r"https?://\S+", process.stderr.readline())
        assert scaler is not None
        assert address is not None
        yield process, address[0], scaler[1]
        process.kill()


@pytest.mark.slow
@pytest.mark.alone
def test_it_decides_answers_and_stops(server: tuple[subprocess.Popen[str], str, str]) -> None:
    """It is ready after the first cycle, with a decision and a JSON log line for each group, and exits 0 on SIGTERM.

    The missing folder of long forecasts is noted only in the answer to a request for one.
    """
    process, url, scaler = server
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(2)]  # a line for each of the two groups ends the first cycle
    groups = httpx2.get(f"{url}/api/v1/groups", timeout=10).json()["groups"]
    assert [group["group_id"] for group in groups] == ["a/b ü", "orders"]
    assert httpx2.get(f"{url}/readyz", timeout=10).status_code == 200
    week = httpx2.get(f"{url}/api/v1/groups/{groups[1]['group_key']}/forecast", timeout=10)
    assert week.status_code == 404
    assert "no long forecast of this group was issued" in week.json()["detail"]
    assert (
        'lagcast_refusal{cluster="c",group="orders",reason="HistoryStale"} 1.0'
        in httpx2.get(f"{url}/metrics", timeout=10).text
    )
    assert all('"refused": "history_stale"' in line for line in lines)
    orders = ScaledObjectRef(name="orders", scalerMetadata={"cluster": "c", "groupId": "orders"})
    with grpc.insecure_channel(scaler) as channel:
        get_metrics = channel.unary_unary(
            f"/{SERVICE}/IsActive", ScaledObjectRef.SerializeToString, IsActiveResponse.FromString
        )
        with pytest.raises(grpc.RpcError, match="no advice: "):
            get_metrics(orders, timeout=10)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


@pytest.mark.slow
@pytest.mark.alone
def test_it_answers_what_would_be_recommended(tmp_path: Path) -> None:
    """REST reads what the loop of the same process has decided from; the advice in force stays what it was."""
    table = steady_hour(tmp_path / "features", ("orders",), end_at=read_clock())
    with serving(table, tmp_path) as (process, url, _):
        assert process.stderr is not None
        process.stderr.readline()  # the group's decision
        process.stderr.readline()  # the cycle is over
        key = httpx2.get(f"{url}/api/v1/groups", timeout=10).json()["groups"][0]["group_key"]
        advice = httpx2.get(f"{url}/api/v1/groups/{key}/recommendation", timeout=10).json()
        changes = {"capacity_messages_per_second_per_replica": 2500.0, "price_per_move": 0.0}
        answer = httpx2.post(f"{url}/api/v1/groups/{key}/what-if", json=changes, timeout=10).json()
        assert answer["recommendation_id"] == advice["recommendation_id"]
        assert answer["in_force"]["desired_replicas"] == advice["desired_replicas"]
        assert answer["what_if"]["desired_replicas"] < advice["desired_replicas"]
        assert httpx2.get(f"{url}/api/v1/groups/{key}/recommendation", timeout=10).json() == advice
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_publishing_needs_a_broker(feature_table: Path, lagcast: Lagcast) -> None:
    """A topic without a broker's address is refused, as nothing would be published."""
    code, out, err = lagcast("serve", "--features", feature_table, "--publish", "advice", "--port", "0")
    assert (code, out) == (2, "")
    assert err == (
        "lagcast: --publish and --client-config are about Kafka brokers that are not named; add --bootstrap HOST:PORT\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kubeconfig", "FILE"], "--kubeconfig is about a cluster that is not followed; add --kubernetes NAMESPACE"),
        (["--kubernetes", "shop", "--kubeconfig", "FILE"], "no cluster to connect to: "),
        (["--lease", "shop/lagcast", "--kubeconfig", "FILE"], "no cluster to connect to: "),
        (
            ["--lease", "lagcast"],
            "--lease is 'lagcast'; give namespace and name of a Lease, such as lagcast/lagcast-rec",
        ),
        (["--kubernetes", "shop"], "run inside one, or give --kubeconfig FILE"),
    ],
)
def test_an_unreachable_cluster_is_one_sentence(
    lagcast: Lagcast, feature_table: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    """The command ends before it serves anything."""
    given = [str(tmp_path / "missing") if argument == "FILE" else argument for argument in arguments]
    code, out, err = lagcast("serve", "--features", feature_table, "--port", 0, *given)
    assert (code, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--host", "0.0.0.0"],  # noqa: S104  # what is refused
            "other machines reach --host 0.0.0.0, and no caller would be asked who it is; give --token-file or ",
        ),
        (
            ["--host", "0.0.0.0", "--keda-port", "9095", "--token-file", "FILE"],  # noqa: S104  # what is refused
            "other machines reach --keda-port 9095 on 0.0.0.0, and no caller would be asked who it is; give --keda-cli",
        ),
        (["--token-file", "FILE"], "; give a file with a bearer token, or a folder of such files"),
        (["--tls-cert-file", "FILE"], "--tls-cert-file and --tls-key-file go together; give both, or neither"),
        (
            ["--keda-client-ca", "FILE"],
            "--keda-client-ca is about TLS on KEDA's port; add --keda-port, --tls-cert-file and --tls-key-file",
        ),
        (
            ["--tls-cert-file", "FILE", "--tls-key-file", "FILE"],
            "; give a certificate and its key with --tls-cert-file and --tls-key-file",
        ),
        (["--token-review"], "no cluster to connect to: "),
        (["--token-review", "--kubeconfig", "FILE"], "no cluster to connect to: "),
    ],
)
def test_unprotected_service_and_unusable_protection_are_one_sentence(
    lagcast: Lagcast, feature_table: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    """The command ends before it serves anything."""
    given = [str(tmp_path / "missing") if word == "FILE" else word for word in arguments]
    code, out, err = lagcast("serve", "--features", feature_table, "--port", "0", *given)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.alone
def test_tokens_and_tls_are_those_of_the_options(feature_table: Path, tmp_path: Path) -> None:
    """On every address of the machine: REST asks for the token over TLS, KEDA's port for a client's certificate."""
    authority = Authority(tmp_path / "authority")
    certificate, key = authority.sign("server")
    options = ["--host", "0.0.0.0", "--allowed-host", "lagcast.lagcast.svc"]  # noqa: S104  # the pod's own address
    options += ["--token-file", str(token_file(tmp_path / "tokens", "secret")), "--keda-client-ca"]
    options += [str(authority.certificate), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    with serving(feature_table, tmp_path, *options) as (process, *addresses):
        url, scaler = (address.replace("0.0.0.0", "127.0.0.1") for address in addresses)  # noqa: S104  # as above
        assert url.startswith("https://")
        trusted = ssl.create_default_context(cafile=authority.certificate)
        with httpx2.Client(verify=trusted, base_url=url, timeout=10) as client:
            assert client.get("/livez").status_code == 200
            assert client.get("/metrics").status_code == 401
            client.headers["Authorization"] = "Bearer secret"
            assert client.get("/metrics").status_code == 200
            assert client.get("/metrics", headers={"Host": "lagcast.lagcast.svc:8686"}).status_code == 200
            assert client.get("/metrics", headers={"Host": "evil.example"}).status_code == 421
        client_certificate, client_key = authority.sign("keda")
        files = (authority.certificate, client_key, client_certificate)
        credentials = grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))
        with grpc.secure_channel(scaler, credentials) as channel:
            grpc.channel_ready_future(channel).result(timeout=10)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
