"""The bytes of partitions on their brokers' disks: the request DescribeLogDirs, which Kafka's client does not offer.

One connection to each broker, closed after its answer, with the settings of the client that are named here: TLS with
files in PEM, and SASL with PLAIN or SCRAM. Other ways to log in are refused in words: the sizes then stay unknown, and
nothing else does. The requests have the oldest versions that Kafka 4 answers, which Kafka 2 answers too.
"""

import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from collector.errors import MalformedError, RejectedError, UnavailableError

Partition = tuple[str, int]

_DESCRIBE_LOG_DIRS, _SASL_HANDSHAKE, _SASL_AUTHENTICATE = (35, 1), (17, 1), (36, 0)
_CLIENT_ID = "lagcast"
# A broker answers for 1,000 partitions in a few milliseconds; a round of the collector has 15 s.
_ANSWER_SECONDS = 3.0
# Names and sizes of 100,000 partitions are 4 MB. A longer answer is not one of Kafka.
_MOST_BYTES = 100_000_000
# Kafka stores no credential with fewer; with one iteration a false broker could try passwords quickly.
_LEAST_ITERATIONS = 4096
_SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_PLAIN_TEXT, _NEITHER = "plaintext", "none"


class LogDirs:
    """Asks brokers with the settings of Kafka's client. Errors: RejectedError for settings it has no answer to."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._protocol = settings.get("security.protocol", _PLAIN_TEXT).lower()
        self._tls = _tls(settings) if self._protocol.endswith("ssl") else None
        self._login = _login(settings) if self._protocol.startswith("sasl") else None

    def bytes_of(self, partitions: Iterable[Partition], host: str, port: int) -> dict[Partition, int]:
        """The bytes of the segments of these partitions, as far as this broker has them.

        Errors: UnavailableError, RejectedError where the user lacks Describe on the cluster, MalformedError.
        """
        topics: dict[str, list[int]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        request = _array(
            _string(topic) + _array(struct.pack(">i", number) for number in numbers)
            for topic, numbers in topics.items()
        )
        where = f"broker {host}:{port}"
        try:
            with closing(self._connected(host, port)) as broker:
                exchange = _Exchange(broker)
                if self._login is not None:
                    self._login(exchange)
                sizes = _sizes(exchange.ask(_DESCRIBE_LOG_DIRS, request))
        except OSError as error:
            message = f"{where} did not answer the request for the sizes of its logs ({error})"
            raise UnavailableError(message) from error
        except (struct.error, KeyError, ValueError) as error:
            message = f"{where} answered the request for the sizes of its logs with something else ({error})"
            raise MalformedError(message) from error
        if sizes is None:
            message = (
                f"{where} shows no sizes of its logs; grant this user Describe on Cluster 'kafka-cluster', or set "
                "streams.restore_bytes of each application"
            )
            raise RejectedError(message)
        return sizes

    def _connected(self, host: str, port: int) -> socket.socket:
        plain = socket.create_connection((host, port), timeout=_ANSWER_SECONDS)
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=host)
        except OSError:
            plain.close()
            raise


class _Exchange:
    """Requests on one connection, each answered before the next."""

    def __init__(self, broker: socket.socket) -> None:
        self._broker, self._number = broker, 0

    def ask(self, kind: tuple[int, int], body: bytes) -> bytes:
        """The body of the answer. Errors: OSError; ValueError on an answer to something else."""
        self._number += 1
        request = struct.pack(">hhi", *kind, self._number) + _string(_CLIENT_ID) + body
        self._broker.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", self._read(4))
        if not 4 <= length <= _MOST_BYTES:
            message = f"an answer of {length} bytes"
            raise ValueError(message)
        answer = self._read(length)
        if struct.unpack_from(">i", answer)[0] != self._number:
            message = "an answer to another request"
            raise ValueError(message)
        return answer[4:]

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._broker.recv(count - len(parts))
            if not part:
                message = "the connection was closed"
                raise ConnectionError(message)
            parts += part
        return bytes(parts)


def _sizes(answer: bytes) -> dict[Partition, int] | None:
    """Sizes by partition; None where the broker names none of its folders, as for a user without the permission.

    A replica that is being moved to another folder is in both; the larger one is that which is whole.
    """
    sizes: dict[Partition, int] = {}
    (folders,) = struct.unpack_from(">i", answer, 4)
    place = 8
    for _ in range(folders):
        _, place = _text(answer, place + 2)
        (topics,) = struct.unpack_from(">i", answer, place)
        place += 4
        for _ in range(topics):
            topic, place = _text(answer, place)
            (partitions,) = struct.unpack_from(">i", answer, place)
            place += 4
            for _ in range(partitions):
                number, size, _, _ = struct.unpack_from(">iqq?", answer, place)
                place += struct.calcsize(">iqq?")
                sizes[topic, number] = max(size, sizes.get((topic, number), 0))
    return sizes if folders else None


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS of the client's settings. Errors: RejectedError for those in another form than PEM files."""
    if "ssl.keystore.location" in settings:
        message = "sizes of logs cannot be requested with ssl.keystore.location: name ssl.certificate.location (PEM)"
        raise RejectedError(message)
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem") or None
        )
        if "ssl.certificate.location" in settings:
            key, password = settings.get("ssl.key.location"), settings.get("ssl.key.password")
            context.load_cert_chain(settings["ssl.certificate.location"], key, password)
    except (OSError, ValueError) as error:
        message = f"sizes of logs cannot be requested: the files of TLS cannot be read ({error})"
        raise RejectedError(message) from error
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https").lower() != _NEITHER
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _login(settings: Mapping[str, str]) -> Callable[[_Exchange], None]:
    """A login by SASL. Errors: RejectedError for a mechanism that is not there."""
    mechanism = settings.get("sasl.mechanisms", settings.get("sasl.mechanism", "GSSAPI")).upper()
    user, password = settings.get("sasl.username", ""), settings.get("sasl.password", "")
    if mechanism != "PLAIN" and mechanism not in _SCRAM:
        message = (
            f"sizes of logs cannot be requested with sasl.mechanisms {mechanism}, only with PLAIN and SCRAM; set "
            "streams.restore_bytes of each application"
        )
        raise RejectedError(message)

    def login(exchange: _Exchange) -> None:
        if struct.unpack_from(">h", exchange.ask(_SASL_HANDSHAKE, _string(mechanism)))[0]:
            message = f"the broker does not accept sasl.mechanisms {mechanism}"
            raise RejectedError(message)
        if mechanism == "PLAIN":
            _authenticate(exchange, f"\0{user}\0{password}".encode())
        else:
            _scram(exchange, _SCRAM[mechanism], user, password)

    return login


def _authenticate(exchange: _Exchange, words: bytes) -> bytes:
    """One step of a login. Errors: RejectedError where the broker refuses it."""
    answer = exchange.ask(_SASL_AUTHENTICATE, struct.pack(">i", len(words)) + words)
    if struct.unpack_from(">h", answer)[0]:
        message = "the broker refused the login for the sizes of its logs; check user and password"
        raise RejectedError(message)
    (said,) = struct.unpack_from(">h", answer, 2)
    place = 4 + max(said, 0)
    (length,) = struct.unpack_from(">i", answer, place)
    return answer[place + 4 : place + 4 + max(length, 0)]


def _scram(exchange: _Exchange, digest: str, user: str, password: str) -> None:
    """A login by SCRAM, RFC 5802, in which the broker proves too that it knows the password. Errors: RejectedError."""
    nonce = secrets.token_hex(16)
    first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = _authenticate(exchange, f"n,,{first}".encode()).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    if not fields["r"].startswith(nonce) or int(fields["i"]) < _LEAST_ITERATIONS:
        message = "the broker's part of the login is not one of SCRAM; is this the right broker?"
        raise RejectedError(message)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), b64decode(fields["s"]), int(fields["i"]))
    last = f"c=biws,r={fields['r']}"
    words = f"{first},{challenge},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), words, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = _authenticate(exchange, f"{last},p={b64encode(proof).decode()}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), words, digest)
    if not hmac.compare_digest(answer, b"v=" + b64encode(expected)):
        message = "the broker did not prove that it knows the password; is this the right broker?"
        raise RejectedError(message)


def _string(words: str) -> bytes:
    return struct.pack(">h", len(words.encode())) + words.encode()


def _array(entries: Iterable[bytes]) -> bytes:
    parts = list(entries)
    return struct.pack(">i", len(parts)) + b"".join(parts)


def _text(data: bytes, place: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, place)
    end = place + 2 + length
    return data[place + 2 : end].decode(), end
