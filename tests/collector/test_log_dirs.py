"""The request for the sizes of logs, against a broker of a few lines; real ones answer it in the live tests."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from collector.errors import MalformedError, RejectedError, UnavailableError
from collector.log_dirs import LogDirs

Serve = Callable[[bytes], int]


@pytest.fixture
def answering() -> Iterator[Serve]:
    """`answering(body)`: the port of a broker that answers one request with that body."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(body: bytes) -> int:
        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                request = connection.recv(4096)
                (number,) = struct.unpack_from(">i", request, 8)
                connection.sendall(struct.pack(">ii", 4 + len(body), number) + body)

        threads.append(threading.Thread(target=answer))
        threads[-1].start()
        return int(listener.getsockname()[1])

    yield serve
    for thread in threads:
        thread.join()
    listener.close()


def _folder(size: int) -> bytes:
    partition = struct.pack(">iqqb", 0, size, 0, 0)
    topic = struct.pack(">h", 3) + b"log" + struct.pack(">i", 1) + partition
    return struct.pack(">hh", 0, 2) + b"/d" + struct.pack(">i", 1) + topic


def test_of_a_replica_in_two_folders_the_larger_counts(answering: Serve) -> None:
    """One that is being moved to another folder is whole in the first of them."""
    port = answering(struct.pack(">ii", 0, 2) + _folder(900) + _folder(100))
    assert LogDirs({}).bytes_of([("log", 0)], "127.0.0.1", port) == {("log", 0): 900}


def test_a_broker_that_shows_no_folder_lacks_the_permission(answering: Serve) -> None:
    """The sentence names the permission, and the setting that makes it unnecessary."""
    port = answering(struct.pack(">ii", 0, 0))
    with pytest.raises(RejectedError, match=r"Describe on Cluster 'kafka-cluster', or set streams\.restore_bytes"):
        LogDirs({}).bytes_of([("log", 0)], "127.0.0.1", port)


@pytest.mark.parametrize("body", [b"", struct.pack(">ii", 0, 5), b"HTTP/1.1 400 Bad Request"])
def test_another_answer_is_one_of_something_else(answering: Serve, body: bytes) -> None:
    """Cut off, or not of Kafka at all."""
    with pytest.raises(MalformedError, match="with something else"):
        LogDirs({}).bytes_of([("log", 0)], "127.0.0.1", answering(body))


def test_a_closed_port_is_no_answer() -> None:
    """As is a broker that is down."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnavailableError, match="did not answer"):
        LogDirs({}).bytes_of([("log", 0)], "127.0.0.1", port)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}, "only with PLAIN and SCRAM"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanisms GSSAPI"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "client.p12"}, "name ssl.certificate.location"),
        ({"security.protocol": "SSL", "ssl.ca.location": "nowhere.pem"}, "the files of TLS cannot be read"),
    ],
)
def test_a_login_that_is_not_there_is_refused_in_words(settings: dict[str, str], words: str) -> None:
    """Before any connection, and with the next step."""
    with pytest.raises(RejectedError, match=words):
        LogDirs(settings)
