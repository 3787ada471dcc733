"""Settings of a client of Kafka or Prometheus from a file of `key=value` lines, with references to its secrets.

A value may contain references, as in Kafka's own config providers: `${env:NAME}` is an environment variable,
`${file:/path}` the text of a file. Values that come by reference, and values of secret settings, are never shown.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Self

_REFERENCE = re.compile(r"\$\{(env|file):([^}]+)\}")
# Settings that hold a secret, of librdkafka: `sasl.password`, `ssl.key.pem`, `sasl.oauthbearer.client.secret`;
# and of lagcast, for Prometheus: `bearer.token`, `header.NAME`.
_SECRET_SETTING = re.compile(
    r"password|secret|key\.pem|oauthbearer\.config|assertion\.private\.key|^bearer\.|^header\."
)
_UNSHOWN = "***"


class ClientConfigError(ValueError):
    """The file, or a reference in it, cannot be read; the message names the file, the line and the remedy."""


class Secret(str):
    """A value that is passed to the client and never shown.

    >>> Secret("open sesame")
    ***
    """

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        """The value itself, as a string."""
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return _UNSHOWN


def read_client_config(path: Path, *, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in the file; `#` starts a comment line. Values that came by reference are `Secret`.

    Errors: ClientConfigError naming file, line and what is missing, never a value.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"--client-config {path}: cannot be read ({error}); give a text file of key=value lines"
        raise ClientConfigError(message) from error
    settings = {}
    for number, line in enumerate(lines, start=1):
        key, equals, value = (part.strip() for part in line.strip().partition("="))
        if not key or key.startswith("#"):
            continue
        where = f"--client-config {path}, line {number}"
        if not equals:
            # The line may consist of a secret only: the error does not repeat it.
            message = f"{where} is no key=value; write it as security.protocol=SSL is written"
            raise ClientConfigError(message)
        settings[key] = _resolved(value, environment, where=f"{where}: {key}")
    return settings


def without_secrets(words: str, settings: Mapping[str, str]) -> str:
    """The text with `***` in place of every secret of the settings.

    >>> without_secrets("no user 'me' with 'sesame'", {"sasl.username": "me", "sasl.password": "sesame"})
    "no user 'me' with '***'"
    """
    secrets = {value for key, value in settings.items() if isinstance(value, Secret) or _SECRET_SETTING.search(key)}
    # The longest first: otherwise a secret that is part of a longer one would leave the rest of that one visible.
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        words = words.replace(secret, _UNSHOWN)
    return words


def _resolved(value: str, environment: Mapping[str, str], *, where: str) -> str:
    if not _REFERENCE.search(value):
        return value
    return Secret(_REFERENCE.sub(lambda found: _referred(found[1], found[2], environment, where=where), value))


def _referred(provider: str, name: str, environment: Mapping[str, str], *, where: str) -> str:
    if provider == "file":
        try:
            # Files of secrets usually end with a line feed, and passwords never do.
            return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            message = (
                f"{where} refers to the file {name}, which cannot be read ({reason}); write it or correct the path"
            )
            raise ClientConfigError(message) from None
    if name not in environment:
        message = f"{where} refers to the environment variable {name}, which is not set; export it or correct the name"
        raise ClientConfigError(message)
    return environment[name]
