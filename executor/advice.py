"""Reads advice over REST. What comes back is read group by group: one unreadable answer is the error of its group."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from pydantic_core import from_json

from api.schemas import GroupKeyError, GroupSummary, RecommendationV1, RefusalV1, group_of_key
from executor.connection import Connection, Credentials, shown
from executor.errors import AdviceError
from executor.plan import Asked, Held, read_advice

PAGE_LIMIT = 500
# Fifty thousand groups; an API that goes on for ever is none.
PAGES_LIMIT = 100
# A Date header is cut to its second, and servers renew it once a second: it may be up to two seconds late.
DATE_RESOLUTION = timedelta(seconds=2)


class AdviceClient:
    """One API, called repeatedly over the same connection, from any thread."""

    def __init__(self, url: str, credentials: Credentials | None = None) -> None:
        """`url` is the root of the API, such as http://127.0.0.1:8686. Errors: AddressError."""
        self._server = Connection(url, credentials)

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def groups(self) -> tuple[Asked | AdviceError, ...]:
        """All groups that the API lists, each once, or the error of one. Errors: AdviceError if it lists none."""
        found: dict[object, Asked | AdviceError] = {}
        cursor: str | None = None
        for _ in range(PAGES_LIMIT):
            arguments = {"limit": str(PAGE_LIMIT)} | ({} if cursor is None else {"cursor": cursor})
            entries, cursor = _page(self._server.get("api/v1/groups", arguments).body)
            for entry in entries:
                listed = _listed(entry)
                found.setdefault(listed.key if isinstance(listed, Asked) else len(found), listed)
            if cursor is None:
                return tuple(found.values())
        message = f"the API lists more than {PAGES_LIMIT} pages of {PAGE_LIMIT} groups; is it a lagcast API?"
        raise AdviceError(message)

    def advice(
        self, asked: Asked, *, clock: Callable[[], datetime]
    ) -> tuple[RecommendationV1 | RefusalV1 | Held, timedelta]:
        """The API's answer for the group, and the least difference of the clocks. Errors: AdviceError."""
        asked_at = clock()
        answer = self._server.get(f"api/v1/groups/{quote(asked.key, safe='')}/recommendation", {})
        return read_advice(answer.body), proven_skew(answer.headers.get("date"), between=(asked_at, clock()))


def group_asked(key: str) -> Asked | AdviceError:
    """The group that a key names, or the error of a key that names none."""
    try:
        cluster, group_id = group_of_key(key)
    except GroupKeyError as error:
        return AdviceError(shown(str(error)))
    return Asked(key=key, cluster=cluster, group_id=group_id)


def _page(body: bytes) -> tuple[list[Any], str | None]:
    """The entries of a page of groups, and the cursor of the next one."""
    try:
        page = from_json(body)
    except ValueError:
        page = None
    entries, cursor = (page.get("groups"), page.get("next")) if isinstance(page, Mapping) else (None, None)
    if not isinstance(entries, list) or not isinstance(cursor, str | None):
        message = "the API answered no page of groups; is --api the address of a lagcast API?"
        raise AdviceError(message)
    return entries, cursor


def _listed(entry: object) -> Asked | AdviceError:
    try:
        group = GroupSummary.model_validate(entry)
    except ValueError as error:
        return AdviceError(f"a group on a page of groups cannot be read: {shown(str(error))}")
    asked = group_asked(group.group_key)
    if isinstance(asked, AdviceError):
        return asked
    # Cluster and group are those that the key names, whatever stands beside it.
    return Asked(
        key=asked.key,
        cluster=asked.cluster,
        group_id=asked.group_id,
        listed_id=group.recommendation_id,
        listed_at=group.issued_at,
    )


def proven_skew(date_header: str | None, *, between: tuple[datetime, datetime]) -> timedelta:
    """The least by which our clock differs from that of the server; zero where the header proves nothing.

    `between` are the instants of the request and of its answer: a slow answer does not count as a difference.

    >>> noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    >>> at = [noon + timedelta(seconds=seconds) for seconds in (2, 4, 5)]
    >>> proven_skew("Mon, 05 Jan 2026 12:00:00 GMT", between=(at[1], at[2])).total_seconds()
    2.0
    >>> proven_skew("Mon, 05 Jan 2026 12:00:00 GMT", between=(at[0], at[2])).total_seconds()
    0.0
    """
    if date_header is None:
        return timedelta(0)
    try:
        earliest = parsedate_to_datetime(date_header)
    except ValueError:
        return timedelta(0)
    if earliest.tzinfo is None:
        earliest = earliest.replace(tzinfo=UTC)
    asked_at, answered_at = between
    return max(timedelta(0), earliest - answered_at, asked_at - (earliest + DATE_RESOLUTION))
