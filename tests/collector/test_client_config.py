"""Settings from a file: which are read, which references are resolved, and that no secret is shown."""

import logging
import traceback
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.client_config import ClientConfigError, Secret, read_client_config, without_secrets
from collector.errors import RejectedError, UnavailableError
from collector.kafka_admin import KafkaAdminCollector

SESAME = "open-sesame-1001"


def config(folder: Path, text: str) -> Path:
    path = folder / "client.properties"
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_are_settings(tmp_path: Path) -> None:
    """Blanks around keys and values are dropped, a value may hold `=`, and comments and empty lines are skipped."""
    path = config(tmp_path, "# TLS\n\nsecurity.protocol = SSL\nsasl.oauthbearer.config=principal=me\n")
    assert read_client_config(path, environment={}) == {
        "security.protocol": "SSL",
        "sasl.oauthbearer.config": "principal=me",
    }


def test_references_are_looked_up(tmp_path: Path) -> None:
    """References to the environment and to files are replaced, also within a value, without a file's last line feed."""
    (tmp_path / "password").write_text(f"{SESAME}\n", encoding="utf-8")
    path = config(
        tmp_path,
        f"sasl.username=${{env:WHO}}\nsasl.password=${{file:{tmp_path}/password}}\n"
        "sasl.oauthbearer.config=principal=${env:WHO} scope=${env:WHERE}\n",
    )
    settings = read_client_config(path, environment={"WHO": "lagcast", "WHERE": "prod"})
    assert settings == {
        "sasl.username": "lagcast",
        "sasl.password": SESAME,
        "sasl.oauthbearer.config": "principal=lagcast scope=prod",
    }
    assert all(isinstance(value, Secret) for value in settings.values())
    assert SESAME not in repr(settings)


def test_other_dollars_stay(tmp_path: Path) -> None:
    """A password may hold dollars and braces, because only `env` and `file` are references."""
    path = config(tmp_path, "sasl.password=a${b}c${vault:d}$\n")
    assert read_client_config(path, environment={}) == {"sasl.password": "a${b}c${vault:d}$"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "security.protocol=SSL\nsasl.password=${env:KAFKA_WORD}\n",
            "line 2: sasl.password refers to the environment variable KAFKA_WORD, which is not set; export it or",
        ),
        (
            "sasl.password=${file:/no/word}\n",
            "line 1: sasl.password refers to the file /no/word, which cannot be read (No such file or directory)",
        ),
        (f"{SESAME}\n", "line 1 is no key=value; write it as security.protocol=SSL is written"),
    ],
)
def test_a_missing_reference_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """The error names variable or file, setting, line and next step, and no value."""
    with pytest.raises(ClientConfigError) as caught:
        read_client_config(config(tmp_path, text), environment={"OTHER": SESAME})
    assert sentence in str(caught.value)
    assert SESAME not in "".join(traceback.format_exception(caught.value))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The error names the settings file when it cannot be read."""
    with pytest.raises(ClientConfigError, match=r"none\.properties: cannot be read .* key=value lines"):
        read_client_config(tmp_path / "none.properties", environment={})


@pytest.mark.parametrize("setting", ["security.protocol", "sasl.mechanisms", "ssl.key.pem", "sasl.password"])
def test_refused_settings_do_not_show_secrets(tmp_path: Path, setting: str) -> None:
    """Wherever a secret is put by mistake, neither the error nor its traceback shows it."""
    path = config(tmp_path, f"security.protocol=SASL_SSL\n{setting}=${{env:WORD}}\nno.such.setting=1\n")
    settings = read_client_config(path, environment={"WORD": SESAME})
    with pytest.raises(RejectedError) as caught:
        KafkaAdminCollector("127.0.0.1:1", cluster="c", client_config=settings)
    assert SESAME not in "".join(traceback.format_exception(caught.value))


def test_the_clients_log_does_not_reach_ours(tmp_path: Path) -> None:
    """Kafka's client writes unused settings into its log; a program that logs everything receives none of it."""
    settings = read_client_config(config(tmp_path, "sasl.mechanisms=${env:WORD}\n"), environment={"WORD": SESAME})
    log = StringIO()
    handler = logging.StreamHandler(log)
    logging.root.addHandler(handler)
    try:
        away = KafkaAdminCollector("127.0.0.1:1", cluster="c", client_config={**settings, "socket.timeout.ms": "1000"})
        with pytest.raises(UnavailableError) as caught:
            away.collect(["orders"], now=datetime(2026, 1, 5, tzinfo=UTC))
    finally:
        logging.root.removeHandler(handler)
    assert SESAME not in str(caught.value)
    assert log.getvalue() == ""


@given(
    st.text(min_size=1, max_size=6),
    st.dictionaries(st.sampled_from(["sasl.password", "ssl.key.password"]), st.text("ab*", min_size=1, max_size=3)),
)
def test_no_secret_is_left_in_texts(text: str, settings: dict[str, str]) -> None:
    """No text contains a secret afterwards, unless the secret consists of the stars that replace it."""
    cleaned = without_secrets(f"{text} {' '.join(settings.values())}", settings)
    assert all(secret not in cleaned for secret in settings.values() if set(secret) != {"*"} and "*" not in secret)
