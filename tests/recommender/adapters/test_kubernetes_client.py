"""Lists of a cluster, page by page."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from recommender.adapters import kubernetes_client
from recommender.adapters.kubernetes_client import entries_of
from recommender.ports import MalformedError


def pages(number: int) -> Any:  # noqa: ANN401  # stands for the client, which ships no types
    """A list of so many pages, each of one entry."""

    def page_of(_namespace: str, **words: object) -> Mock:
        page = int(str(words.get("_continue", 0)))
        following = {} if page + 1 == number else {"continue": str(page + 1)}
        return Mock(status=200, data=json.dumps({"items": [{"page": page}], "metadata": following}))

    return page_of


def test_all_pages_of_a_list_are_read() -> None:
    """Each request names the page after the last one."""
    assert entries_of(pages(3), "shop") == [{"page": 0}, {"page": 1}, {"page": 2}]


def test_a_list_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a loop of the process that reads it."""
    monkeypatch.setattr(kubernetes_client, "MOST_PAGES", 5)
    with pytest.raises(MalformedError, match="has more than 5 pages of 500: it does not end"):
        entries_of(pages(6), "shop")
