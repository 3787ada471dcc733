"""Certificates and tokens of tests: an authority, and what it signs."""

import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.certificate = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        subject = ("-days", "2", "-subj", f"/CN={name}")
        self._openssl("req", "-x509", *_KEY, *subject, "-keyout", self._key.name, "-out", self.certificate.name)

    def sign(self, name: str, *, serial: int = 1) -> tuple[Path, Path]:
        """Certificate and key for loopback, for servers and clients; they replace those of the same name."""
        request, names = f"{name}.csr", f"{name}.names"
        key, certificate = self._folder / f"{name}.key", self._folder / f"{name}.crt"
        new_key, new_certificate = f"{key.name}.new", f"{certificate.name}.new"
        self._openssl("req", *_KEY, "-subj", f"/CN={name}", "-keyout", new_key, "-out", request)
        (self._folder / names).write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"
        )
        signed = ("-CA", self.certificate.name, "-CAkey", self._key.name, "-set_serial", str(serial))
        words = (*signed, "-days", "2", "-extfile", names, "-out", new_certificate)
        self._openssl("x509", "-req", "-in", request, *words)
        (self._folder / new_key).chmod(0o600)
        (self._folder / new_key).replace(key)
        (self._folder / new_certificate).replace(certificate)
        return certificate, key

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self._folder)


def token_file(path: Path, *tokens: str) -> Path:
    """A file of these tokens that only its owner reads."""
    path.write_text("".join(f"{token}\n" for token in tokens))
    path.chmod(0o600)
    return path
