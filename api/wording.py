"""What callers are told of errors: sentences without the addresses in them."""

import re

_URL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"),;]+")
# Absolute, and of more than one part: `/` alone is no secret, and names of groups have slashes too.
_PATH = re.compile(r"(?<![\w/])/[\w.@~+-]+(?:/[\w.@~+-]+)+")


def without_addresses(sentence: str) -> str:
    """The sentence with a word in place of each URL and each path of a file: where things are is no caller's business.

    >>> without_addresses("http://prom:9090/x did not answer, see /etc/lagcast/client.properties")
    'ADDRESS did not answer, see FILE'
    """
    return _PATH.sub("FILE", _URL.sub("ADDRESS", sentence))
