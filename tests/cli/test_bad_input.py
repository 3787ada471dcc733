"""Commands that cannot connect to Kafka: one sentence with the next step, an exit code, and no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

Lagcast = Callable[..., tuple[int, str, str]]

NO_BROKER = "127.0.0.1:1"
# `collect` makes its first request within 15 s, and `up` has a JVM to end.
COMMANDS = [
    pytest.param("history", id="history"),
    pytest.param("collect", id="collect", marks=pytest.mark.slow),
    pytest.param("up", id="up", marks=[pytest.mark.slow, pytest.mark.spark]),
]


def arguments(command: str, folder: Path, *settings: str) -> list[object]:
    """The command, with settings of a client that gives up soon."""
    config = folder / "client.properties"
    config.write_text("".join(f"{line}\n" for line in ("socket.timeout.ms=1000", *settings)), encoding="utf-8")
    place = ["--state-dir", folder / "state", "--port", "0"] if command == "up" else ["--out", folder / "samples"]
    return [command, "--bootstrap", NO_BROKER, "--client-config", config, *place]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_broker_that_is_not_there(command: str, lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The command exits 4 with the cluster, the request, the error and what to check, and writes no sample."""
    code, out, err = lagcast_process(*arguments(command, tmp_path))
    assert (code, out) == (4, "")
    last = err.splitlines()[-1]
    assert last.startswith(f"lagcast: request to cluster 'default' at {NO_BROKER} for its list of groups failed: ")
    assert last.endswith("Connection refused); check host and port, and that the broker runs")
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_setting_that_the_client_does_not_take(command: str, lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The command exits 4 with the setting's name, and without the secret beside it."""
    code, out, err = lagcast_process(*arguments(command, tmp_path, "sasl.password=sesame", "sasl.user=me"))
    assert (code, out) == (4, "")
    assert 'No such configuration property: "sasl.user"' in err.splitlines()[-1]
    assert "sesame" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["history", "collect", pytest.param("up", marks=pytest.mark.slow)])
def test_a_secret_that_is_not_there(command: str, lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The command exits 2, with file, line and variable, before it starts anything."""
    code, out, err = lagcast_process(*arguments(command, tmp_path, "sasl.password=${env:NO_SUCH_NAME}"))
    assert (code, out) == (2, "")
    assert err.startswith("lagcast: --client-config ")
    assert err.endswith(
        "line 2: sasl.password refers to the environment variable NO_SUCH_NAME, which is not set; export it or correct "
        "the name\n"
    )
    assert err.count("\n") == 1


def test_samples_are_kept_for_longer_than_history_is_read(lagcast: Lagcast, tmp_path: Path) -> None:
    """A shorter time is refused, as the oldest days would come and go with each start."""
    code, _, err = lagcast(*arguments("up", tmp_path), "--keep-days", "14")
    assert code == 2
    assert err == (
        "lagcast: --keep-days is 14 and --days 14: the oldest history would be removed and read again at each start; "
        "give --keep-days 15 or more\n"
    )


@pytest.mark.parametrize("shard", ["0/3", "4/3", "a", "1/0"])
@pytest.mark.parametrize("command", ["collect", "up", "serve"])
def test_what_is_no_shard_is_refused_before_anything_starts(
    command: str, shard: str, lagcast: Lagcast, tmp_path: Path
) -> None:
    """One sentence has the value, the form and an example."""
    words = ["serve", "--features", tmp_path] if command == "serve" else arguments(command, tmp_path)
    code, out, err = lagcast(*words, "--shard", shard)
    assert (code, out) == (2, "")
    assert err == (
        f"lagcast: --shard: {shard!r} is no shard; give K/N with 1 <= K <= N, such as 2/3 for the second of three\n"
    )


def test_a_sample_file_that_is_torn_is_named(lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The command exits 2, with the file and the next step, before Spark is started."""
    torn = tmp_path / "samples" / "date=2026-01-05" / "torn.parquet"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"PAR1")
    code, out, err = lagcast_process("features", "--samples", tmp_path / "samples", "--out", tmp_path / "features")
    assert (code, out) == (2, "")
    assert err.startswith(f"lagcast: {torn} is no readable parquet file (")
    assert err.endswith("); remove it, or write it again\n")
    assert "Traceback" not in err
