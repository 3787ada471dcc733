"""A broker with a listener for each authentication method, and with an authorizer that grants nothing by itself."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # documented, not in __all__
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.live.harness.broker import running_brokers
from tests.live.harness.clients import wait_until

PASSWORD = "open-sesame-1001"  # noqa: S105  # of every user, store and key of a broker that lives for a minute
USERS = ("lagcast", "describer", "topics-only", "groups-only", "reader", "settings-reader", "doctor", "nobody")
_STORE = ("-storepass", PASSWORD, "-storetype", "PKCS12")
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """The ports of the listeners, by name, and the folder of the certificates.

    PLAINTEXT is for the superuser that prepares things; `ca.pem`, `client.p12`: the files of a client of TLS and MTLS.
    """

    ports: Mapping[str, int]
    certificates: Path

    def address(self, listener: str) -> str:
        """`127.0.0.1:PORT` of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def grant(self, user: str, *, group: str | None = None, topic: str | None = None, cluster: bool = False) -> None:
        """Let a user Describe a group, a topic, the cluster or all of them, and nothing more."""
        names = {
            ResourceType.GROUP: group,
            ResourceType.TOPIC: topic,
            ResourceType.BROKER: "kafka-cluster" if cluster else None,  # the client's word for Kafka's CLUSTER
        }
        for kind, name in names.items():
            if name is not None:
                self._grant(user, kind, name, AclOperation.DESCRIBE)

    def grant_read(self, user: str, *, topic: str) -> None:
        """Let a user read a topic, and nothing more."""
        self._grant(user, ResourceType.TOPIC, topic, AclOperation.READ)

    def grant_write(self, user: str, *, topic: str) -> None:
        """Let a user write to a topic, and nothing more."""
        self._grant(user, ResourceType.TOPIC, topic, AclOperation.WRITE)

    def grant_settings(self, user: str, *, group: str) -> None:
        """Let a user see the settings of a group, and nothing more."""
        self._grant(user, ResourceType.GROUP, group, AclOperation.DESCRIBE_CONFIGS)

    def _grant(self, user: str, kind: ResourceType, name: str, may: AclOperation) -> None:
        binding = AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", may, AclPermissionType.ALLOW)
        admin = AdminClient({"bootstrap.servers": self.address("PLAINTEXT")})
        for created in admin.create_acls([binding]).values():
            created.result()
        # The controller answers, and the broker, which answers here, receives it a moment later.
        granted = AclBindingFilter(
            kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", may, AclPermissionType.ALLOW
        )
        wait_until(lambda: admin.describe_acls(granted).result())


@contextmanager
def secured_broker(jars: Path, folder: Path) -> Iterator[Secured]:
    """The broker, running; every user of USERS exists for PLAIN and SCRAM."""
    certificates = _certificates(folder / "certificates")
    listeners = ("PLAIN", "SCRAM", "OAUTH", "TLS", "MTLS")
    with running_brokers(jars, folder, listeners=listeners, properties=_properties(certificates)) as (broker,):
        admin = AdminClient({"bootstrap.servers": broker.address})
        mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, mechanism, PASSWORD.encode()) for user in USERS
        ]
        for stored in admin.alter_user_scram_credentials(wanted).values():
            stored.result()
        yield Secured(ports=broker.ports, certificates=certificates)


def _properties(certificates: Path) -> dict[str, str]:
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    broker_store = {
        "ssl.keystore.location": str(certificates / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
    }
    of_listeners = {
        "plain": {
            "sasl.enabled.mechanisms": "PLAIN",
            "plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {users};",
        },
        "scram": {
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        },
        "oauth": {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required "
            'unsecuredLoginStringClaim_sub="broker";',
        },
        "tls": broker_store,
        "mtls": {
            **broker_store,
            "ssl.truststore.location": str(certificates / "ca.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.client.auth": "required",
        },
    }
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAIN:SASL_PLAINTEXT,"
        "SCRAM:SASL_PLAINTEXT,OAUTH:SASL_PLAINTEXT,TLS:SSL,MTLS:SSL",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        **{
            f"listener.name.{listener}.{key}": value
            for listener, settings in of_listeners.items()
            for key, value in settings.items()
        },
    }


def _certificates(folder: Path) -> Path:
    """A certificate authority, and its certificates for the broker at 127.0.0.1 and for a client called `lagcast`."""
    folder.mkdir(parents=True)
    _keytool(folder, "ca", "-genkeypair", "-dname", "CN=ca", "-keyalg", "EC", "-ext", "bc:c")
    _keytool(folder, "ca", "-exportcert", "-rfc", "-file", "ca.pem")
    for store, name in (("broker", "broker"), ("client", "lagcast")):
        _keytool(folder, store, "-genkeypair", "-dname", f"CN={name}", "-keyalg", "EC")
        _keytool(folder, store, "-certreq", "-file", f"{store}.csr")
        signed = ("-infile", f"{store}.csr", "-outfile", f"{store}.pem", "-ext", "san=ip:127.0.0.1")
        _keytool(folder, "ca", "-gencert", "-rfc", *signed)
        _keytool(folder, store, "-importcert", "-noprompt", "-file", "ca.pem", alias="authority")
        _keytool(folder, store, "-importcert", "-noprompt", "-file", f"{store}.pem")
    return folder


def _keytool(folder: Path, store: str, *words: str, alias: str = "own") -> None:
    command = ["keytool", *words, "-alias", alias, "-keystore", f"{store}.p12", *_STORE]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
