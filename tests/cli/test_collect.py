"""`lagcast collect` where it cannot begin: one sentence at once, and an exit code."""

from collections.abc import Callable
from pathlib import Path

import pytest

Lagcast = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("setting", "code", "sentence"),
    [
        ("sasl.password=${env:NO_SUCH_WORD}", 2, "refers to the environment variable NO_SUCH_WORD, which is not set"),
        ("sasl.user=me", 4, 'No such configuration property: "sasl.user"'),
    ],
)
def test_settings_are_refused_before_the_first_round(
    setting: str, code: int, sentence: str, lagcast_process: Lagcast, tmp_path: Path
) -> None:
    """A missing secret and an unknown client setting end the command before it waits or writes."""
    config = tmp_path / "client.properties"
    config.write_text(f"{setting}\n", encoding="utf-8")
    out = tmp_path / "samples"
    given, _, err = lagcast_process("collect", "--bootstrap", "127.0.0.1:1", "--out", out, "--client-config", config)
    assert given == code
    assert sentence in err
    assert err.count("\n") == 1
    assert not out.exists()
