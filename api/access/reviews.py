"""Reviews by Kubernetes, remembered for a short time: whose a bearer token is, and what its user may read."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Generic, Protocol, TypeVar

# Seconds that a yes holds, and thereby a right that was withdrawn; a no is asked again sooner, as it may be mended.
YES_SECONDS = 60.0
NO_SECONDS = 10.0
# Answers that are kept of each kind; the oldest goes for one more.
MOST_ANSWERS = 1000

_User = TypeVar("_User")
_Answer = TypeVar("_Answer")


class Verdict(Enum):
    """What became of a token."""

    UNKNOWN = "unknown"
    DENIED = "denied"
    ALLOWED = "allowed"


class Reviewer(Protocol[_User]):
    """Kubernetes: TokenReview and SubjectAccessReview. Errors of both: AdapterError."""

    def user_of(self, token: str) -> _User | None:
        """The user whose token it is; None if it is none."""

    def may(self, user: _User, verb: str, path: str) -> bool:
        """True if the user has that verb on that non-resource URL."""


class Reviews(Generic[_User]):
    """The verdicts of `reviewer`; `clock` counts seconds. Answers to tokens that are none displace no others."""

    def __init__(self, reviewer: Reviewer[_User], *, clock: Callable[[], float]) -> None:
        self._reviewer = reviewer
        self._users: _Remembered[_User] = _Remembered(clock, YES_SECONDS)
        self._strangers: _Remembered[bool] = _Remembered(clock, NO_SECONDS)
        self._allowed: _Remembered[bool] = _Remembered(clock, YES_SECONDS)
        self._denied: _Remembered[bool] = _Remembered(clock, NO_SECONDS)

    def verdict(self, token: str, verb: str, path: str) -> Verdict:
        """Whether the token's user may do that. Errors: those of the reviewer."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        if self._strangers.get(digest):
            return Verdict.UNKNOWN
        asked = digest, verb, path
        if self._users.get(digest) is not None:
            if self._allowed.get(asked):
                return Verdict.ALLOWED
            if self._denied.get(asked):
                return Verdict.DENIED
        user = self._user_of(token, digest)
        if user is None:
            return Verdict.UNKNOWN
        may = self._reviewer.may(user, verb, path)
        (self._allowed if may else self._denied).keep(asked, value=True)
        return Verdict.ALLOWED if may else Verdict.DENIED

    def _user_of(self, token: str, digest: bytes) -> _User | None:
        user = self._users.get(digest)
        if user is None:
            user = self._reviewer.user_of(token)
            if user is None:
                self._strangers.keep(digest, value=True)
            else:
                self._users.keep(digest, user)
        return user


class _Remembered(Generic[_Answer]):
    """At most `MOST_ANSWERS` answers, each for so many seconds."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._answers: OrderedDict[Hashable, tuple[float, _Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _Answer | None:
        with self._lock:
            until, answer = self._answers.get(key, (0.0, None))
            return answer if self._clock() < until else None

    def keep(self, key: Hashable, value: _Answer) -> None:
        with self._lock:
            self._answers.pop(key, None)
            self._answers[key] = self._clock() + self._seconds, value
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
