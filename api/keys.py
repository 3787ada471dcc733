"""Keys of groups in the paths of REST."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error


class GroupKeyError(ValueError):
    """A key that names no group."""


def group_key(cluster: str, group: str) -> str:
    """The group's key in paths: group ids may contain any character, slashes included, so the key is opaque.

    >>> group_key("prod-eu", "orders")
    'cHJvZC1ldQBvcmRlcnM'
    """
    return urlsafe_b64encode(f"{cluster}\0{group}".encode()).decode().rstrip("=")


def group_of_key(key: str) -> tuple[str, str]:
    """The (cluster, group) of a key of `group_key`.

    Errors: GroupKeyError.

    >>> group_of_key("cHJvZC1ldQBvcmRlcnM")
    ('prod-eu', 'orders')
    """
    try:
        text = urlsafe_b64decode(key + "=" * (-len(key) % 4)).decode()
        cluster, separator, group = text.partition("\0")
    except (Base64Error, ValueError):
        separator = ""
    if not separator or group_key(cluster, group) != key:
        message = f"'{key}' is no group key; the list of groups has the keys"
        raise GroupKeyError(message)
    return cluster, group
