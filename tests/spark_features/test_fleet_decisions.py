"""The Spark job over a fleet, with work that is a stand-in: what it is given, and what is left when it fails."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
from pyspark.sql import SparkSession

from spark_features.deaths import MOST_TRIES
from spark_features.decided import FOLDER, files_of, publish, read_version
from spark_features.fleet_decisions import FleetJobError, FleetWork, decide_fleet
from spark_features.samples import FeaturesError
from tests.feature_folder import add_rows, steady_row

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def stand_in(
    *, dies_opening: Collection[str] = (), dies_deciding: Collection[str] = (), opened_in: Path | None = None
) -> FleetWork:
    """Work whose decision tells what was given; it is made here, so that Spark sends its code to the workers.

    At some groups it dies. In the file `opened_in` it leaves the name of each group that it opens.
    """

    def die_at(group: str, names: Collection[str]) -> None:
        if group in names:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory is used up

    class Work:
        def open_group(
            self, group: tuple[str, str], rows: pa.Table, kept: pa.Table, *, is_listed: bool, lost: str | None
        ) -> tuple[bytes | None, bytes]:
            if opened_in is not None:
                with opened_in.open("a") as file:
                    file.write(f"{group[1]}\n")
            die_at(group[1], dies_opening)
            ends = sorted(end.isoformat() for end in rows["interval_end_at"].to_pylist())
            said = f"{ends[:1]}..{ends[-1:]} kept={kept['document'].to_pylist()} listed={is_listed} lost={lost}"
            return group[1].encode(), repr((*group, said)).encode()

        def pooled(self, lessons: Iterable[bytes]) -> bytes:
            return b"".join(sorted(lessons))

        def decide_group(self, opened: bytes, prior: bytes) -> pa.Table:
            cluster, group, said = eval(opened)  # noqa: S307  # its own text
            die_at(group, dies_deciding)
            return self.rows((cluster, group), decided=f"{said} prior={prior.decode()}", kept="1")

        def refuse_group(self, group: tuple[str, str], kept: pa.Table, *, deaths: int) -> pa.Table:
            documents = kept["document"].to_pylist()
            return self.rows(group, decided=f"died {deaths} times, kept={documents}", kept="of a refusal")

        def rows(self, group: tuple[str, str], *, decided: str, kept: str) -> pa.Table:
            names = {"cluster": group[0], "group": group[1], "kind": "k", "at": NOW}
            rows = [("decisions", decided), ("kept", kept)]
            return pa.Table.from_pylist([{"table": table, **names, "document": text} for table, text in rows])

    return Work()


@pytest.fixture(name="features")
def features_fixture(tmp_path: Path) -> Path:
    """Rows of `a` and `b`, some of them too old, and one that is to come; `c` has none."""
    ends_at = [NOW - timedelta(days=29), NOW - timedelta(minutes=1), NOW, NOW + timedelta(seconds=15)]
    add_rows(tmp_path / "features", [steady_row(group, at) for group in ("a", "b") for at in ends_at])
    return tmp_path / "features"


@pytest.fixture(name="decide")
def decide_fixture(spark: SparkSession, features: Path) -> Callable[..., dict[str, str]]:
    """`decide(work)`: what the work was given for each group, `a` and `c` being listed."""

    def decide(work: FleetWork, *, now: datetime = NOW) -> dict[str, str]:
        run = decide_fleet(spark, features, work, listed=[("c", "a"), ("c", "c")], now=now, days=28)
        rows = [row for file in run.decisions for row in pq.read_table(file, partitioning=None).to_pylist()]
        return {row["group"]: row["document"] for row in rows}

    return decide


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_work_gets_the_rows_of_the_span_what_was_kept_and_the_lessons_of_all(
    decide: Callable[..., dict[str, str]],
) -> None:
    """Rows of 28 days until now; groups that are not listed are told so; the second run has what the first kept."""
    rows = "['2026-05-04T11:59:00+00:00']..['2026-05-04T12:00:00+00:00']"
    assert decide(stand_in()) == {
        "a": f"{rows} kept=[] listed=True lost=None prior=abc",
        "b": f"{rows} kept=[] listed=False lost=None prior=abc",
        "c": "[]..[] kept=[] listed=True lost=None prior=abc",
    }
    again = decide(stand_in())
    assert again["a"] == f"{rows} kept=['1'] listed=True lost=None prior=abc"
    # A month later all rows are read, so that a group is told how old they are.
    assert decide(stand_in(), now=NOW + timedelta(days=40))["a"].startswith("['2026-04-05T12:00:00+00:00']..")


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize(("where", "prior"), [("dies_opening", "bc"), ("dies_deciding", "abc")])
def test_a_group_that_kills_its_worker_each_time_is_refused_and_the_others_are_decided(
    decide: Callable[..., dict[str, str]], where: str, prior: str
) -> None:
    """What others get is as ever, but for what a group that cannot be opened teaches; and what was kept of it stays."""
    as_ever = decide(stand_in())
    refused = decide(stand_in(**{where: ("a",)}))  # type: ignore[arg-type]  # one of the two
    rows = as_ever["a"].split(" ")[0]
    assert refused == {
        "a": "died 2 times, kept=['1']",
        "b": f"{rows} kept=['1'] listed=False lost=None prior={prior}",
        "c": f"[]..[] kept=['1'] listed=True lost=None prior={prior}",
    }
    assert decide(stand_in())["a"] == f"{rows} kept=['of a refusal'] listed=True lost=None prior=abc"


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_what_is_opened_stays_opened_though_a_worker_dies(spark: SparkSession, tmp_path: Path) -> None:
    """Only groups that a worker was at are opened again: that which kills it, and one beside it on the other core."""
    names = [f"g{number:02}" for number in range(20)]
    add_rows(tmp_path / "features", [steady_row(group, NOW) for group in names])
    work = stand_in(dies_deciding=("g07",), opened_in=tmp_path / "opened")
    listed = [("c", group) for group in names]
    run = decide_fleet(spark, tmp_path / "features", work, listed=listed, now=NOW, days=28)
    decided = [row for file in run.decisions for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert sorted(row["group"] for row in decided) == names
    assert [row["group"] for row in decided if row["document"].startswith("died")] == ["g07"]
    openings = Counter((tmp_path / "opened").read_text().split())
    assert {group for group, times in openings.items() if times == 1} >= {*names} - {
        *[group for group, _ in openings.most_common(2)]
    }


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_where_a_worker_dies_at_each_of_many_groups_the_run_ends(spark: SparkSession, tmp_path: Path) -> None:
    """The job is made ten times, on two cores: it does not go through the fleet group by group."""
    names = [f"g{number:02}" for number in range(40)]
    add_rows(tmp_path / "features", [steady_row(group, NOW) for group in names])
    work = stand_in(dies_opening=names, opened_in=tmp_path / "opened")
    with pytest.raises(FleetJobError, match="workers die whatever group they are at"):
        decide_fleet(spark, tmp_path / "features", work, listed=[("c", group) for group in names], now=NOW, days=28)
    assert len((tmp_path / "opened").read_text().split()) <= 2 * MOST_TRIES


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_where_workers_die_at_every_group_the_run_ends_and_changes_nothing(
    decide: Callable[..., dict[str, str]], features: Path
) -> None:
    """The error is one sentence, the decisions of the run before stay valid, and nothing unfinished is left."""
    decide(stand_in())
    before = files_of(features / FOLDER, version=1, table="kept")
    with pytest.raises(FleetJobError, match="the decisions of the run before stay valid: workers die ") as failure:
        decide(stand_in(dies_deciding=("a", "c")))
    assert len(str(failure.value).splitlines()) == 1
    assert read_version(features / FOLDER) == 1
    assert files_of(features / FOLDER, version=1, table="kept") == before != []
    assert not (features / FOLDER / ".unfinished").exists()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_a_file_of_rows_that_cannot_be_read_loses_nothing_that_was_kept(
    decide: Callable[..., dict[str, str]], features: Path
) -> None:
    """Groups of which nothing was kept are decided without its rows, and are not told that it may have been lost."""
    for file in features.rglob("interval_seconds=15/date=2026-05-04/*.parquet"):
        file.write_bytes(file.read_bytes()[:-100])
    nothing = "[]..[] kept=[] listed=True lost=None prior=ac"
    assert decide(stand_in()) == {"a": nothing, "c": nothing}


def test_two_versions_are_on_the_disk_and_one_is_valid(tmp_path: Path) -> None:
    """A version takes the place of the one before in one step; what a killed run left of the same number is removed."""
    for version in (1, 2, 3):
        (tmp_path / "written" / "table=kept").mkdir(parents=True)
        (tmp_path / "written" / "table=kept" / "part.parquet").touch()
        (tmp_path / "versions" / f"v{version}" / "of-a-killed-run").mkdir(parents=True)
        publish(tmp_path / "written", tmp_path, version=version, decided_at=NOW)
        assert read_version(tmp_path) == version
    assert sorted(folder.name for folder in (tmp_path / "versions").iterdir()) == ["v2", "v3"]
    assert [file.name for file in files_of(tmp_path, version=3, table="kept")] == ["part.parquet"]
    assert not (tmp_path / "versions" / "v3" / "of-a-killed-run").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "another", "schema_version": 1, "version": 1}'])
def test_a_folder_of_something_else_is_not_touched(tmp_path: Path, text: str) -> None:
    """The error names the file."""
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(FeaturesError, match=r"manifest\.json is no manifest of lagcast fleet decisions"):
        read_version(tmp_path)
