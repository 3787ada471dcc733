"""The ways in which the outside world fails a collector, drawn as a tree.

    AdapterError            names who was asked, what for, and what came back
    ├── UnavailableError    no answer in time; asking again may help
    ├── RejectedError       a clear no: ACL, unknown group, unsupported request; asking again is useless
    │   └── UnsupportedError    a group of a kind that has nothing to sample
    └── MalformedError      an answer outside the agreed schema

Raised in adapters only, always `from` the cause where there is one.
"""

from typing import ClassVar


class AdapterError(Exception):
    """A source failed; `group` is the consumer group it failed for, None where the whole source is meant.

    `remedy` is what its user can do.
    """

    remedy: ClassVar[str] = "Mend what the sentence names; it is asked again every 15 s."

    def __init__(self, message: str, *, group: str | None = None) -> None:
        super().__init__(message)
        self.group = group


class UnavailableError(AdapterError):
    """No answer in time; asking again may help."""


class RejectedError(AdapterError):
    """A clear no; asking again is useless until somebody changes a permission, a name or a version."""


class UnsupportedError(RejectedError):
    """The group is of a kind that has nothing to sample, and never will."""

    remedy: ClassVar[str] = "Leave it out, or scale it by another signal."


class MalformedError(AdapterError):
    """An answer came, and it lacks something that such an answer has to hold."""
