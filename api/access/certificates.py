"""The certificate of the service, which is renewed while it runs: cert-manager and others replace the files."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import structlog

from api.access.files import AccessError, Version, require_private, version_of

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Pem:
    """The content of the files: certificates, key, and the authority of the callers (empty: none)."""

    certificate: bytes
    key: bytes
    client_authority: bytes


class Certificate:
    """Certificate and key in two files, and the authority whose certificates callers of KEDA's port have to show.

    A renewed one counts from the next connection on. Files that do not fit together, as between two writes, are left
    alone, and the earlier ones stay. Errors: AccessError, at the start.
    """

    def __init__(self, certificate: Path, key: Path, client_authority: Path | None = None) -> None:
        self._files = (certificate, key) if client_authority is None else (certificate, key, client_authority)
        self._version = self._version_now()
        self._pem, self._context = self._loaded()
        self._complaint = ""

    @property
    def asks_clients(self) -> bool:
        """True if callers of KEDA's port have to show a certificate."""
        return len(self._files) > 2

    def context(self) -> ssl.SSLContext:
        """The TLS context of the next connection to the REST service."""
        self._renew()
        return self._context

    def pem(self) -> Pem:
        """The files' content for the next connection to KEDA's port."""
        self._renew()
        return self._pem

    def _renew(self) -> None:
        try:
            version = self._version_now()
            if version == self._version:
                return
            self._pem, self._context = self._loaded()
        except AccessError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                _log.error("certificate_not_renewed", error=self._complaint)
            return
        self._version, self._complaint = version, ""
        _log.info("certificate_renewed")

    def _version_now(self) -> Version:
        try:
            return version_of(self._files)
        except OSError as error:
            raise _unread(error) from error

    def _loaded(self) -> tuple[Pem, ssl.SSLContext]:
        certificate, key = self._files[:2]
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        try:
            require_private(key, "the key file")
            context.load_cert_chain(certificate, key, password="")  # a passphrase would be asked for on the terminal
            pem = Pem(*(file.read_bytes() for file in self._files), *([b""] if not self.asks_clients else []))
            if self.asks_clients:
                context_of_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context_of_clients.load_verify_locations(cadata=pem.client_authority.decode("ascii"))
        except AccessError:
            raise
        except ssl.SSLError as error:
            names = ", ".join(str(file) for file in self._files)
            message = f"TLS cannot be served with {names} ({error.reason or error}); give PEM files that fit together"
            raise AccessError(message) from error
        except (OSError, ValueError) as error:
            raise _unread(error) from error
        return pem, context


def _unread(error: Exception) -> AccessError:
    return AccessError(
        f"TLS cannot be served: {error}; give a certificate and its key with --tls-cert-file and --tls-key-file"
    )
