"""Set-up behind a proxy whose certificates are signed by a private authority."""

import os
import shutil
import ssl
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")

ROOT = Path(__file__).parents[2]
UV = Path(sysconfig.get_path("scripts")) / "uv"
# Parts of the names of all variables that set trusted authorities or the sources of packages.
NAME_PARTS = ("CERT", "CA_BUNDLE", "PROXY", "UV_", "INDEX", "PIP_", "TLS")
WHEEL = "nothing-1-py3-none-any.whl"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the authority `ca.pem`, and `server.pem` that it signed for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificates")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(folder, "req", "-x509", *key, "-days", "2", "-subj", "/CN=proxy", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(folder, "req", *key, "-subj", "/CN=127.0.0.1", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n", encoding="utf-8")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    openssl(folder, "x509", "-req", "-in", "server.csr", *signed, "-out", "server.pem")
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path, certificates: Path) -> Iterator[str]:
    """Serve files over TLS until the block ends, and yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def index(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an index, served with that certificate, of one empty package, and the hash of its file."""
    folder = tmp_path_factory.mktemp("index")
    place = folder / "simple" / "nothing"
    place.mkdir(parents=True)
    about = {
        "METADATA": "Metadata-Version: 2.1\nName: nothing\nVersion: 1\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(place / WHEEL, "w") as wheel:
        for name, text in about.items():
            wheel.writestr(f"nothing-1.dist-info/{name}", text)
    digest = sha256((place / WHEEL).read_bytes()).hexdigest()
    (place / "index.html").write_text(f'<a href="{WHEEL}#sha256={digest}">{WHEEL}</a>', encoding="utf-8")
    with served(folder, certificates) as url:
        yield f"{url}/simple {digest}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which `scripts/setup` finds an environment and a uv that does the first of its two calls."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    uv = tmp_path / ".venv" / "bin" / "uv"
    uv.write_text(f'#!/bin/sh\nenv > environment\n[ "$2" != sync ] || exec {UV} "$@"\n', encoding="utf-8")
    uv.chmod(0o755)
    return tmp_path


def set_up(checkout: Path, index: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the script without the variables of the caller that set trusted authorities, but with these."""
    url, digest = index.split()
    pinned = f"nothing==1 --hash=sha256:{digest}\n"
    (checkout / "requirements" / "dev.txt").write_text(pinned, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not any(part in name.upper() for part in NAME_PARTS)}
    own = {"UV_INDEX_URL": url, "UV_CACHE_DIR": str(checkout / "cache"), "UV_HTTP_RETRIES": "0", "NO_PROXY": "*"}
    return subprocess.run(
        ["scripts/setup"], check=False, capture_output=True, text=True, cwd=checkout, env=kept | own | environment
    )


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_an_authority_that_a_variable_names_is_trusted(
    checkout: Path, index: str, certificates: Path, variable: str
) -> None:
    """A variable that sets pip's authority sets uv's, and packages come from an index that is not trusted otherwise."""
    done = set_up(checkout, index, **{variable: str(certificates / "ca.pem")})
    assert done.returncode == 0, done.stderr
    environment = (checkout / "environment").read_text(encoding="utf-8").splitlines()
    assert f"PIP_CERT={certificates / 'ca.pem'}" in environment
    assert list((checkout / ".venv").glob("lib/*/site-packages/nothing-1.dist-info"))


def test_the_authorities_of_the_system_are_trusted(checkout: Path, index: str) -> None:
    """The system's authorities are trusted by uv too, and a certificate of another one is refused with an error."""
    done = set_up(checkout, index)
    assert done.returncode != 0
    assert "certificate" in done.stderr
    assert "UV_SYSTEM_CERTS=true" in (checkout / "environment").read_text(encoding="utf-8").splitlines()
