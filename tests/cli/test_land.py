"""`lagcast land` and `lagcast collect --topic` where they cannot begin: one sentence with the next step, and a code."""

from collections.abc import Callable
from pathlib import Path

import pytest

Lagcast = Callable[..., tuple[int, str, str]]


def quick(folder: Path, *lines: str) -> Path:
    """Settings of a client that gives up soon."""
    path = folder / "client.properties"
    path.write_text("".join(f"{line}\n" for line in ("socket.timeout.ms=1000", *lines)), encoding="utf-8")
    return path


def test_samples_need_a_folder_or_a_topic(lagcast: Lagcast) -> None:
    """Without a folder and a topic the command exits 2 before any request."""
    code, _, err = lagcast("collect", "--bootstrap", "127.0.0.1:1")
    assert (code, err) == (2, "lagcast: samples have no destination; give --out DIR, --topic NAME, or both\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["land", "collect"])
def test_an_unreachable_topic_is_an_error_with_the_next_step(
    command: str, lagcast_process: Lagcast, tmp_path: Path
) -> None:
    """Without a broker at the address the command exits 4 and makes no file."""
    out = tmp_path / "samples"
    where = ("--bootstrap", "127.0.0.1:1", "--topic", "samples", "--out", out, "--client-config", quick(tmp_path))
    code, _, err = lagcast_process(command, *where)
    assert code == 4
    assert "lagcast: request to Kafka at 127.0.0.1:1 for the partitions of topic 'samples' failed: " in err
    assert err.endswith("Connection refused); check host and port, and that the broker runs\n")
    assert err.count("\n") == 1
    assert not out.exists()


def test_settings_that_the_client_does_not_take_are_named(lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The command exits 4 as `lagcast collect` does, without the secret beside the setting."""
    config = quick(tmp_path, "sasl.password=sesame", "sasl.user=me")
    where = ("--bootstrap", "127.0.0.1:1", "--topic", "samples", "--out", tmp_path / "samples")
    code, _, err = lagcast_process("land", *where, "--client-config", config)
    assert code == 4
    assert 'No such configuration property: "sasl.user"' in err
    assert "sesame" not in err
    assert err.count("\n") == 1
