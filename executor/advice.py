"""Reads advice over REST."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import httpx2

from api.schemas import GroupPage, RecommendationV1, RefusalV1
from executor.errors import AdviceError
from executor.plan import Held, read_advice

TIMEOUT_SECONDS = 10.0
PAGE_LIMIT = 500
# A Date header is cut to its second, and servers renew it once a second: it may be up to two seconds late.
DATE_RESOLUTION = timedelta(seconds=2)


class AdviceClient:
    """One API, called repeatedly over the same connection."""

    def __init__(self, url: str) -> None:
        """`url` is the root of the API, such as http://127.0.0.1:8686."""
        self._http = httpx2.Client(base_url=url.rstrip("/") + "/", timeout=TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def keys(self) -> tuple[str, ...]:
        """The keys of all groups. Errors: AdviceError."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            arguments = {"limit": str(PAGE_LIMIT)} | ({} if cursor is None else {"cursor": cursor})
            answer = self._get("api/v1/groups", arguments)
            try:
                page = GroupPage.model_validate_json(answer.content)
            except ValueError as error:
                message = f"{answer.url} answered no page of groups; is it the address of a lagcast API?"
                raise AdviceError(message) from error
            found += [group.group_key for group in page.groups]
            if page.next is None:
                return tuple(found)
            cursor = page.next

    def advice(
        self, key: str, *, clock: Callable[[], datetime]
    ) -> tuple[RecommendationV1 | RefusalV1 | Held, timedelta]:
        """The advice for the group with this key, and the least difference of the clocks.

        Errors: AdviceError.
        """
        asked_at = clock()
        answer = self._get(f"api/v1/groups/{quote(key, safe='')}/recommendation", {})
        return read_advice(answer.content), proven_skew(answer.headers.get("date"), between=(asked_at, clock()))

    def _get(self, path: str, arguments: dict[str, str]) -> httpx2.Response:
        try:
            answer = self._http.get(path, params=arguments)
            answer.raise_for_status()
        except httpx2.HTTPStatusError as error:
            message = f"{error.request.url} answered {error.response.status_code}: {error.response.text.strip()}"
            raise AdviceError(message) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            message = (
                f"{self._http.base_url} does not answer: {error}; start `lagcast serve`, or give its address with --api"
            )
            raise AdviceError(message) from error
        return answer


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
