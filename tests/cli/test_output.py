"""The output of commands: the same figures in every format, and nothing that its reader would obey."""

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from cli.errors import InputError
from cli.output import Answer, Field, OutputFormat, Table, csv_text, json_text, plain_text, write_answer

TABLE = Table(
    fields=[
        Field(key="policy", heading="Policy", left=True),
        Field(key="cost", heading="Cost", show=lambda cost: f"${cost:,.2f}"),
        Field(key="note", heading="Note", left=True, wide=True),
    ],
    records=[
        {"policy": "keda", "cost": 1234.5, "note": "of the owner"},
        {"policy": "a policy with quite a long name " * 5, "cost": None, "note": None},
    ],
)
ANSWER = Answer(
    title="League",
    document={"policies": TABLE.records},
    records=TABLE,
    shown=(("one sentence", " - an item", " - another"), TABLE),
    remarks=("lagcast lost a day",),
)
HOSTILE = "x\x1b[2J|<script>alert(1)</script>\n# *y* [a](b) &amp;"


def written(answer: Answer, output: OutputFormat, capsys: pytest.CaptureFixture[str]) -> str:
    """What a pipe gets."""
    write_answer(answer, output)
    return capsys.readouterr().out


def test_unknown_is_a_dash_in_tables_and_empty_in_csv() -> None:
    """None never becomes 0: it is a dash in the table and an empty cell in CSV."""
    assert plain_text(TABLE.narrow()).splitlines()[-1].endswith("-")
    assert csv_text(TABLE).splitlines()[-1].endswith(",,")


def test_csv_holds_values_under_machine_keys() -> None:
    """CSV has machine keys and values that are not rounded."""
    assert csv_text(TABLE).splitlines()[:2] == ["policy,cost,note", "keda,1234.5,of the owner"]


def test_without_a_terminal_a_table_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the whole line, however wide, without colour or cursor movement."""
    printed = written(ANSWER, OutputFormat.TABLE, capsys)
    assert max(len(line) for line in printed.splitlines()) > 120
    assert "\x1b" not in printed


def test_wide_has_the_columns_that_a_terminal_has_no_room_for(capsys: pytest.CaptureFixture[str]) -> None:
    """And everything else that the table has."""
    assert "of the owner" not in written(ANSWER, OutputFormat.TABLE, capsys)
    wide = written(ANSWER, OutputFormat.WIDE, capsys)
    assert "of the owner" in wide
    assert wide.startswith("one sentence\n - an item\n")


def test_json_refuses_nan() -> None:
    """A document with NaN, which JSON lacks, is a bug of lagcast, and nothing of it is printed."""
    with pytest.raises(ValueError, match="Out of range float"):
        json_text({"lag_seconds": float("nan")})
    assert json.loads(json_text({"name": "größer"})) == {"name": "größer"}


def test_yaml_and_json_are_the_same_document(capsys: pytest.CaptureFixture[str]) -> None:
    """In the same order."""
    as_json = json.loads(written(ANSWER, OutputFormat.JSON, capsys))
    as_yaml = yaml.safe_load(written(ANSWER, OutputFormat.YAML, capsys))
    assert as_yaml == as_json
    assert list(as_yaml["policies"][0]) == ["policy", "cost", "note"]


def test_markdown_has_the_sentences_the_table_and_the_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    """As GitHub shows them."""
    lines = written(ANSWER, OutputFormat.MD, capsys).splitlines()
    assert lines[:6] == ["# League", "", "one sentence", "", "- an item", "- another"]
    assert lines[7:10] == ["| Policy | Cost | Note |", "| --- | ---: | --- |", "| keda | $1,234.50 | of the owner |"]
    assert lines[-1] == "lagcast lost a day"


def test_html_is_a_page_that_loads_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Every cell is there, and every element is closed."""
    page = written(ANSWER, OutputFormat.HTML, capsys)
    assert page.count("<tr>") == 3
    assert '<td class="figure">$1,234.50</td>' in page
    assert "<ul>\n<li>an item</li>\n<li>another</li>\n</ul>" in page
    assert "lagcast lost a day" in page
    assert "http" not in page
    assert _unclosed(page) == []


@pytest.mark.parametrize(
    "output", [each for each in OutputFormat if each not in {OutputFormat.JSON, OutputFormat.YAML}]
)
def test_no_name_is_obeyed(output: OutputFormat, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither by a terminal, nor by a browser, nor as Markdown; and it makes no second line."""
    table = Table(fields=TABLE.fields, records=[{"policy": HOSTILE, "cost": 1.0, "note": HOSTILE}])
    answer = Answer(title=HOSTILE, document=[], records=table, shown=((HOSTILE,), table), remarks=(HOSTILE,))
    printed = written(answer, output, capsys)
    assert "\x1b" not in printed
    assert "\n#" not in printed
    if output in {OutputFormat.HTML, OutputFormat.MD}:
        assert "<script" not in printed.replace("\\<", "")
    if output is OutputFormat.MD:
        assert "[a](b)" not in printed
        row = printed.splitlines()[6]
        assert row.replace("\\|", "").count("|") == 4
    if output is OutputFormat.CSV:
        assert len(list(csv.reader(io.StringIO(printed)))) == 2


@pytest.mark.parametrize("output", list(OutputFormat))
def test_a_file_has_the_bytes_of_a_pipe(
    output: OutputFormat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And stdout has nothing then; what was in the file before is replaced."""
    file = tmp_path / "answer"
    file.write_text("before")
    write_answer(ANSWER, output, file)
    assert capsys.readouterr().out == ""
    assert file.read_bytes() == written(ANSWER, output, capsys).encode()
    assert [each.name for each in tmp_path.iterdir()] == ["answer"]


def test_a_file_is_for_all_whom_the_umask_lets_read_it(tmp_path: Path) -> None:
    """As one that a shell has made."""
    (tmp_path / "shell").touch()
    write_answer(ANSWER, OutputFormat.CSV, tmp_path / "answer")
    assert (tmp_path / "answer").stat().st_mode == (tmp_path / "shell").stat().st_mode


def test_a_file_that_is_not_finished_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption leaves neither half an answer nor a file of its own."""
    file = tmp_path / "answer"
    file.write_text("before")

    def interrupted(_file: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.output.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_answer(ANSWER, OutputFormat.JSON, file)
    assert file.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["answer"]


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """With its name and the reason."""
    with pytest.raises(InputError, match="nowhere/answer cannot be written \\(No such file or directory\\)"):
        write_answer(ANSWER, OutputFormat.JSON, tmp_path / "nowhere" / "answer")


def _unclosed(page: str) -> list[str]:
    """The elements of a page that are not closed in order."""
    still_open: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            del attributes
            if tag != "meta":
                still_open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if still_open[-1:] == [tag]:
                still_open.pop()

    Reader().feed(page)
    return still_open
