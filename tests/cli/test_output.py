"""The output of commands: the same records as table, JSON and CSV."""

import json

import pytest

from cli.output import Field, Table, csv_text, plain_text, write_json, write_table

TABLE = Table(
    fields=[
        Field(key="policy", heading="Policy", left=True),
        Field(key="cost", heading="Cost", show=lambda cost: f"${cost:,.2f}"),
    ],
    records=[{"policy": "keda", "cost": 1234.5}, {"policy": "a policy with quite a long name " * 5, "cost": None}],
)


def test_unknown_is_a_dash_in_tables_and_empty_in_csv() -> None:
    """None never becomes 0: it is a dash in the table and an empty cell in CSV."""
    assert plain_text(TABLE).splitlines()[-1].endswith("-")
    assert csv_text(TABLE).splitlines()[-1].endswith(",")


def test_csv_holds_values_under_machine_keys() -> None:
    """CSV has machine keys and values that are not rounded."""
    assert csv_text(TABLE).splitlines()[:2] == ["policy,cost", "keda,1234.5"]


def test_without_a_terminal_a_table_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the whole line, however wide, without colour or cursor movement."""
    write_table(TABLE)
    printed = capsys.readouterr().out
    assert max(len(line) for line in printed.splitlines()) > 120
    assert "\x1b" not in printed


def test_json_refuses_nan(capsys: pytest.CaptureFixture[str]) -> None:
    """A document with NaN, which JSON lacks, is a bug of lagcast, and nothing of it is printed."""
    with pytest.raises(ValueError, match="Out of range float"):
        write_json({"lag_seconds": float("nan")})
    write_json({"name": "größer"})
    assert json.loads(capsys.readouterr().out) == {"name": "größer"}
