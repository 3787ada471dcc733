"""C15, `lagcast forecast`: from a feature table to the weeks ahead that the service returns."""

import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest

from forecasting.columns import FLEET_FITS_FOLDER, GROUP_INTERVALS
from recommender.adapters.long_forecasts import LongForecastsFolder
from spark_features.forecasts import ForecastIssue, IssuedGroup

Lagcast = Callable[..., tuple[int, str, str]]

GOLDEN = Path(__file__).with_name("golden")
END_AT = datetime(2026, 5, 4, 12, 7, tzinfo=UTC)


def write_table(table: Path) -> None:
    """Three days of minutes of the group `orders`, and three hours of `young`; of base rows only the newest one."""
    kinds = {
        "string": pa.string(),
        "int": pa.int32(),
        "long": pa.int64(),
        "boolean": pa.bool_(),
        "double": pa.float64(),
    }
    types = kinds | {"timestamp": pa.timestamp("us", tz="UTC")}
    schema = pa.schema([(column.name, types[column.kind]) for column in GROUP_INTERVALS])
    newest = pd.DataFrame({"group": ["orders"], "interval_end_at": [END_AT + timedelta(seconds=15)]})
    parts = []
    for seconds, rows in ((15, newest), (60, pd.concat([minutes_of("orders", 3 * 1440), minutes_of("young", 180)]))):
        for day, of_day in rows.groupby((rows["interval_end_at"] - timedelta(microseconds=1)).dt.date):
            folder = f"versions/v1/interval_seconds={seconds}/date={day}"
            (table / folder).mkdir(parents=True)
            whole = of_day.assign(cluster="c", interval_seconds=seconds).reindex(columns=schema.names)
            pq.write_table(pa.Table.from_pandas(whole, schema, preserve_index=False), table / folder / "part-0.parquet")
            parts.append({"interval_seconds": seconds, "date": str(day), "folder": folder, "rows": len(of_day)})
    manifest = {"format": "lagcast group_intervals", "schema_version": 1, "feature_table_version": 1, "parts": parts}
    (table / "manifest.json").write_text(json.dumps(manifest))


def minutes_of(group: str, minutes: int) -> pd.DataFrame:
    """A day's wave that is at its mean, and falling, at `END_AT`."""
    back = np.arange(minutes)
    ends_at = [END_AT - timedelta(minutes=int(minute)) for minute in back]
    rates = 1000.0 + 300.0 * np.sin(2.0 * np.pi * back / 1440.0)
    return pd.DataFrame({"group": group, "interval_end_at": ends_at, "produce_messages_per_second": rates})


@pytest.mark.spark
def test_a_table_becomes_the_week_ahead(lagcast_process: Lagcast, tmp_path: Path) -> None:
    """A forecast is issued at the last full five minutes, and a group with too short a history is refused."""
    write_table(tmp_path / "features")
    config = tmp_path / "lagcast.yaml"
    config.write_text("groups: {'*': {holidays: {country: DE}}}")
    out = tmp_path / "forecasts"
    code, printed, err = lagcast_process(
        "forecast", "--features", tmp_path / "features", "--out", out, "--config", config
    )
    assert code == 0
    rows = [line.split() for line in printed.splitlines()]
    assert rows[0][:2] == ["Group", "Cluster"]
    assert [row[:2] for row in rows[1:]] == [["orders", "c"], ["young", "c"]]
    assert "not enough history" in printed.splitlines()[2]
    assert "1 groups forecast, 1 refused, as of 2026-05-04 12:05 UTC" in err
    issued_at = END_AT - timedelta(minutes=2)
    week = LongForecastsFolder(out).newest("c", "orders", until=END_AT)
    assert week is not None
    assert (week.origin_at, week.steps, week.history_tier) == (issued_at, 2016, "daily")
    # The forecast continues the wave of three days, to 5 % of its mean.
    ahead = np.arange(2016) * 5.0 + 4.5
    wave = 1000.0 - 300.0 * np.sin(2.0 * np.pi * ahead / 1440.0)
    assert float(np.abs(week.path(0.5) - wave).max()) < 50.0
    (fits,) = (out / FLEET_FITS_FOLDER).rglob("*.parquet")
    reasons = pq.read_table(fits, partitioning=None).select(["group", "refusal_reason"]).to_pylist()
    assert {row["group"]: row["refusal_reason"] for row in reasons} == {"orders": None, "young": "not_enough_history"}


ISSUED = (
    IssuedGroup(
        cluster="c",
        group="orders",
        model="long_term",
        refusal_reason=None,
        refusal_sentence=None,
        scored_steps=2304,
        band_coverage_fraction=0.9123,
    ),
    IssuedGroup(
        cluster="c",
        group="young\x1b[31m",
        model="long_term",
        refusal_reason="not_enough_history",
        refusal_sentence="group 'young' has 3 h of history; 2 d are needed",
        scored_steps=0,
        band_coverage_fraction=None,
    ),
)


@pytest.mark.parametrize("output", ["table", "wide", "csv", "json", "yaml", "md", "html"])
def test_the_groups_of_an_issue_are_an_answer_in_every_format(
    lagcast: Lagcast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """On stdout, and byte for byte in a file instead; what is not known is a dash, or empty, and no name is obeyed."""
    write_table(tmp_path / "features")
    monkeypatch.chdir(tmp_path)
    started: Future[None] = Future()
    started.set_result(None)
    monkeypatch.setattr("cli.spark.spark_beside", lambda *_, **__: nullcontext(started))
    monkeypatch.setattr("cli.spark.tasks_shown", lambda *_: nullcontext())
    monkeypatch.setattr("spark_features.forecasts.issue_forecasts", lambda *_, **__: ForecastIssue(groups=ISSUED))
    words = ("forecast", "--features", "features", "--out", "forecasts", "-o", output)
    code, printed, err = lagcast(*words)
    assert code == 0
    assert "1 groups forecast, 1 refused, as of 2026-05-04 12:05 UTC" in err
    golden = GOLDEN / f"forecast.{output}"
    if os.environ.get("REWRITE"):
        golden.write_bytes(printed.encode())
    assert printed.encode() == golden.read_bytes()
    assert lagcast(*words, "--output-file", "answer")[:2] == (0, "")
    assert Path("answer").read_bytes() == golden.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--features", "nowhere"), "nowhere is no folder"),
        (("--features", "FEATURES", "--at", "soon"), "--at 'soon' is no instant; write it as 2026-05-12T08:40:00Z"),
        (("--features", "FEATURES", "--config", "CONFIG"), "country is 'XX', which is none of the"),
    ],
)
def test_bad_input_is_an_error_before_spark_starts(
    arguments: tuple[str, ...], message: str, lagcast: Lagcast, feature_table: Path, tmp_path: Path
) -> None:
    """For no table, an invalid instant or an unknown country it exits 2 with one sentence, and makes no folder."""
    config = tmp_path / "lagcast.yaml"
    config.write_text("groups: {orders: {holidays: {country: XX}}}")
    places = {"FEATURES": feature_table, "CONFIG": config}
    code, out, err = lagcast(
        "forecast", *(places.get(argument, argument) for argument in arguments), "--out", tmp_path / "o"
    )
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err
    assert not (tmp_path / "o").exists()
