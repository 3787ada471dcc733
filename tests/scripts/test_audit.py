"""The audit of the lock: a vulnerability is a failure, and a database that does not answer is no clean result."""

import subprocess
from collections.abc import Callable

import pytest

from scripts import audit

Answer = subprocess.CompletedProcess[str]


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, ...]]]:
    """pip-audit gives these answers, one after the other; its calls are noted."""

    def stand_in(*answers: Answer) -> list[tuple[str, ...]]:
        calls: list[tuple[str, ...]] = []

        def answered(*words: str) -> Answer:
            calls.append(words)
            return answers[len(calls) - 1]

        monkeypatch.setattr(audit, "audit", answered)
        return calls

    return stand_in


REACHED = Answer([], 1, "urllib3 1.25.0 PYSEC-2021-108 CVE-2019-11324, CVE-2021-33503", "")


def test_where_nothing_can_be_looked_up_the_audit_is_skipped_with_the_reason(
    answering: Callable[..., list[tuple[str, ...]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """pip-audit says then that there are no known vulnerabilities, and ends with 0."""
    calls = answering(Answer([], 0, "urllib3 Skip Reason: not found", "No known vulnerabilities found"))
    assert audit.main() == 0
    assert len(calls) == 1
    assert "audit skipped: no database here tells CVE-2019-11324 of urllib3==1.25.0" in capsys.readouterr().err


@pytest.mark.parametrize(("found", "code"), [(Answer([], 0, "", ""), 0), (Answer([], 1, "jinja2 3.0 CVE-1", ""), 1)])
def test_the_lock_is_audited_where_it_can_be(
    answering: Callable[..., list[tuple[str, ...]]], capsys: pytest.CaptureFixture[str], found: Answer, code: int
) -> None:
    """The whole of it: `--strict` fails where a single package could not be looked up."""
    calls = answering(REACHED, found)
    assert audit.main() == code
    assert {"--strict", "--require-hashes", str(audit.LOCK)} <= set(calls[1])
    assert found.stdout in capsys.readouterr().err
