"""Authentication at a real broker: every method by settings alone, and the error where it fails."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from collector.client_config import read_client_config
from collector.errors import UnavailableError
from collector.kafka_admin import KafkaAdminCollector
from tests.live.harness.clients import NOON, commit, create_topic, fresh_name
from tests.live.harness.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka

SASL = "security.protocol=SASL_PLAINTEXT\nsasl.username=lagcast\nsasl.password=${env:WORD}\n"
OAUTH = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanisms=OAUTHBEARER
enable.sasl.oauthbearer.unsecure.jwt=true
sasl.oauthbearer.config=principal=lagcast
"""
TLS = "security.protocol=SSL\nssl.ca.location={certificates}/ca.pem\n"
MTLS = f"{TLS}ssl.keystore.location={{certificates}}/client.p12\nssl.keystore.password=${{file:{{folder}}/word}}\n"
# A second is enough for a broker on loopback; with the default of ten, each refusal would take that long.
QUICK = "socket.timeout.ms=2000\n"

WAYS = {
    "PLAIN": f"{SASL}sasl.mechanisms=PLAIN\n",
    "SCRAM": f"{SASL}sasl.mechanisms=SCRAM-SHA-512\n",
    "OAUTH": OAUTH,
    "TLS": TLS,
    "MTLS": MTLS,
}


@pytest.fixture(scope="module")
def group(secured: Secured) -> str:
    """A group with one commit, which the users `lagcast` and `CN=lagcast` may see."""
    topic, group = fresh_name("topic"), fresh_name("group")
    create_topic(secured.address("PLAINTEXT"), topic, partitions=1)
    commit(secured.address("PLAINTEXT"), group, TopicPartition(topic, 0, 0))
    for user in ("lagcast", "CN=lagcast"):
        secured.grant(user, group=group, topic=topic)
    return group


def collector(
    secured: Secured, listener: str, config: str, folder: Path, *, environment: Mapping[str, str]
) -> KafkaAdminCollector:
    """A collector as the command line makes it, from a file of settings."""
    (folder / "word").write_text(f"{PASSWORD}\n", encoding="utf-8")
    text = config.replace("{certificates}", str(secured.certificates)).replace("{folder}", str(folder))
    (folder / "client.properties").write_text(text, encoding="utf-8")
    settings = read_client_config(folder / "client.properties", environment=environment)
    return KafkaAdminCollector(secured.address(listener), cluster="live", client_config=settings)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in(secured: Secured, group: str, way: str, tmp_path: Path) -> None:
    """Settings alone open each listener, with secrets from the environment or a file."""
    collected = collector(secured, way, WAYS[way], tmp_path, environment={"WORD": PASSWORD}).collect([group], now=NOON)
    assert [row.group for row in collected.samples] == [group]
    assert collected.errors == ()


@pytest.mark.parametrize(
    ("listener", "config", "messages"),
    [
        ("PLAIN", WAYS["PLAIN"], ("Invalid username or password", "check user, password or token")),
        ("SCRAM", WAYS["SCRAM"], ("invalid credentials with SASL mechanism", "check user, password or token")),
        (
            "PLAIN",
            WAYS["SCRAM"],
            ("supported mechanisms: PLAIN", "set sasl.mechanisms to one that the broker supports"),
        ),
        ("TLS", "security.protocol=SSL\n", ("certificate verify failed", "set ssl.ca.location to the CA")),
        ("MTLS", TLS, ("alert bad certificate", "name a certificate that the broker trusts: ssl.keystore.location")),
        ("TLS", "", ("brokers are down", "security.protocol is that of this port")),
        ("PLAIN", "", ("brokers are down", "security.protocol is that of this port")),
        ("PLAINTEXT", TLS, ("connecting to a PLAINTEXT broker listener", "this listener does not use TLS")),
        ("PLAINTEXT", WAYS["PLAIN"], ("current SASL state", "this listener does not accept SASL")),
    ],
)
def test_no_way_in(secured: Secured, listener: str, config: str, messages: tuple[str, str], tmp_path: Path) -> None:
    """A wrong password, authority or port is one sentence with its reason and the next step, and without the secret."""
    outside = collector(secured, listener, f"{config}{QUICK}", tmp_path, environment={"WORD": f"not-{PASSWORD}"})
    with pytest.raises(UnavailableError) as caught:
        outside.collect(["any"], now=NOON)
    sentence = str(caught.value)
    assert all(words in sentence for words in messages)
    assert PASSWORD not in sentence
    assert "\n" not in sentence
