"""Errors of the sources of samples, as a tree.

    AdapterError            names the source, the request and the answer
    ├── UnavailableError    no answer in time; a retry may help
    ├── RejectedError       the request was refused: ACL, unknown group, unsupported request; a retry is useless
    │   └── UnsupportedError    a group of a kind that has nothing to sample
    └── MalformedError      an answer outside the agreed schema

Raised in adapters only, always `from` the cause where there is one.
"""

from typing import ClassVar

# The outcome of a request that was answered, beside those of `outcome_of`.
ANSWERED = "answered"


class AdapterError(Exception):
    """A source failed; `group` is the consumer group that the failure concerns, None for the whole source.

    `remedy` is the next step for the user.
    """

    remedy: ClassVar[str] = "Correct what the sentence names; the request is repeated every 15 s."

    def __init__(self, message: str, *, group: str | None = None) -> None:
        super().__init__(message)
        self.group = group


class UnavailableError(AdapterError):
    """No answer in time; a retry may help."""


class RejectedError(AdapterError):
    """The request was refused; a retry is useless until a permission, a name or a version is changed."""


class UnsupportedError(RejectedError):
    """The group is of a kind that has nothing to sample, and never will."""

    remedy: ClassVar[str] = "Leave it out, or scale it by another signal."


class MalformedError(AdapterError):
    """The answer lacks a required part."""


def outcome_of(error: AdapterError) -> str:
    """The kind of an error as one word, for metrics.

    >>> outcome_of(UnavailableError("no answer")), outcome_of(UnsupportedError("a share group"))
    ('unavailable', 'unsupported')
    """
    return type(error).__name__.removesuffix("Error").lower()
