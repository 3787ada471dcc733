"""`lagcast recommend --on-spark` on three workers: the documents of one process, whatever is lost meanwhile."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest

import cli.main
from collector.sample import OffsetSample
from collector.sinks import write_samples
from recommender.adapters.feature_table import FeatureTable
from spark_features.decided import FOLDER, files_of
from spark_features.table import read_manifest
from tests.feature_folder import add_rows
from tests.fleet_of_kinds import BEGAN_AT, CONFIG, DECIDED, FIRST_AT, SECOND_AT, rows_between
from tests.live.harness.clients import wait_until
from tests.live.harness.spark_cluster import SparkCluster, spark_cluster, submit

pytestmark = pytest.mark.spark

Answer = TypeVar("Answer")
Lagcast = Callable[..., tuple[int, str, str]]
# So many groups that a run on the cluster takes some seconds.
COPIES = 2


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Three workers."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=3) as running:
        yield running


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """The feature table of the fleet until the first run, several groups of each kind."""
    add_copies(tmp_path / "features", BEGAN_AT, FIRST_AT)
    (tmp_path / "lagcast.yaml").write_text(CONFIG)
    return tmp_path / "features"


def add_copies(features: Path, since: datetime, until: datetime) -> None:
    rows = list(rows_between(since, until))
    named = [[replace(row, group=row.group + "'" * copy) for row in rows] for copy in range(COPIES)]
    add_rows(features, [row for copy in named for row in copy])


def words_of(features: Path, now: datetime, *words: str) -> tuple[object, ...]:
    config = features.parent / "lagcast.yaml"
    return ("recommend", "--features", features, "--config", config, "--now", now.isoformat(), "-o", "json", *words)


def run_and_lose_a_machine(
    cluster: SparkCluster, run_on_spark: Callable[[], Answer], features: Path, *, version: int
) -> Answer:
    """A run that loses its oldest executor, with worker and Python, when the second pass has begun.

    It has written, and holds opened groups; the machines that are left make all of it.
    """
    with ThreadPoolExecutor(max_workers=1) as beside:
        run = beside.submit(run_on_spark)
        unfinished = features / FOLDER / ".unfinished"
        wait_until(lambda: run.done() or any(unfinished.glob("version/**/*.parquet")), seconds=600.0)
        cluster.lose_a_machine()
        assert not files_of(features / FOLDER, version=version, table="decisions"), "the run was over before"
        answer = run.result()
    cluster.add_worker()
    return answer


def test_two_runs_are_those_of_one_process_though_a_machine_is_lost_in_each(
    lagcast_process: Lagcast, features: Path, cluster: SparkCluster
) -> None:
    """Every byte of the output is equal, and the loss of a machine in the middle of the job has cost nothing.

    The first run is submitted by spark-submit, the second one is the command's own.
    """
    first, out = lagcast_process(*words_of(features, FIRST_AT)), features.parent / "decisions.json"
    # Without a file they would be mixed with messages: spark-submit prints a program's stderr to its own stdout.
    words = words_of(features, FIRST_AT, "--on-spark", "--output-file", str(out))
    submitted = partial(submit, cluster, Path(cli.main.__file__), *words)
    done = run_and_lose_a_machine(cluster, submitted, features, version=1)
    assert (done.returncode, out.read_text()) == first[:2], done.stdout[-2000:]

    add_copies(features, FIRST_AT, SECOND_AT)
    second = lagcast_process(*words_of(features, SECOND_AT))
    own = partial(lagcast_process, *words_of(features, SECOND_AT, "--on-spark", "--master", cluster.master))
    assert run_and_lose_a_machine(cluster, own, features, version=2)[:2] == second[:2]
    groups = {document["group_id"] for document in json.loads(second[1])}
    assert len(groups) == COPIES * len(DECIDED) + COPIES - 1  # the group `off` is off, its copies are not


def test_groups_that_kill_their_worker_are_refused_and_all_others_are_those_of_one_process(
    lagcast_process: Lagcast, features: Path, cluster: SparkCluster, tmp_path: Path
) -> None:
    """One kills it as it is opened and one as it is decided: every other document is equal to the last byte."""
    deadly = ("eager'", "bound'")
    of_one_process = json.loads(lagcast_process(*words_of(features, FIRST_AT))[1])
    words = words_of(features, FIRST_AT, "--on-spark", "--master", cluster.master)
    command = [sys.executable, "-m", "tests.live.harness.recommend_and_die", *deadly, *map(str, words)]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state-of-the-deadly")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {each["group_id"]: each for each in json.loads(done.stdout)}
    for name in deadly:  # four times beside others, and four times alone
        reason = json.dumps(found.pop(name)["reason"])
        assert '"Unsupported"' in reason
        assert "died 8 times, at last with no other group beside it" in reason
    assert json.dumps([*found.values()]) == json.dumps([each for each in of_one_process if each["group_id"] in found])
    assert len(of_one_process) == len(found) + len(deadly)


def test_files_that_cannot_be_read_are_left_out(
    lagcast_process: Lagcast, features: Path, cluster: SparkCluster
) -> None:
    """Rows in such a file are missing, as in one process; groups whose kept rows were in one are refused, once."""
    on_spark = ("--on-spark", "--master", cluster.master)
    assert lagcast_process(*words_of(features, FIRST_AT, *on_spark))[0] == 0
    add_copies(features, FIRST_AT, SECOND_AT)
    kept = files_of(features / FOLDER, version=1, table="kept")[0]
    lost = set(pq.read_table(kept, partitioning=None)["group"].to_pylist())
    for file in (kept, *(features / "versions" / "v2" / "interval_seconds=15").rglob("*.parquet")):
        file.write_bytes(file.read_bytes()[:-100])
    code, out, err = lagcast_process(*words_of(features, SECOND_AT, *on_spark))
    assert code == 0, err
    assert f"{kept} cannot be read and was left out" in err
    decided = {each["group_id"]: each for each in json.loads(out)}
    refused = {name for name, each in decided.items() if "may have been in" in json.dumps(each)}
    assert refused == lost - {"off"}
    assert refused < decided.keys()
    again = json.loads(lagcast_process(*words_of(features, SECOND_AT, *on_spark))[1])
    assert not [each for each in again if "may have been in" in json.dumps(each)]


def test_samples_become_decisions_in_one_application(
    lagcast_process: Lagcast, cluster: SparkCluster, tmp_path: Path
) -> None:
    """Rows of the samples are made before, the second time from the table's newest day on; one process agrees."""
    samples, features = tmp_path / "samples", tmp_path / "features"
    (tmp_path / "lagcast.yaml").write_text("groups: {orders: {capacity_messages_per_second_per_replica: 20.0}}\n")
    midnight = datetime(2026, 5, 5, tzinfo=UTC)
    for begin, end in ((midnight - timedelta(hours=25), midnight), (midnight, midnight + timedelta(hours=1))):
        write_samples(steady_samples("orders", begin, end), samples)
        words = words_of(features, end, "--on-spark", "--samples", str(samples), "--master", cluster.master)
        code, out, err = lagcast_process(*words)
        assert code == 0, err
        assert FeatureTable(features).newest_interval_end_at() == end
        (decision,) = json.loads(out)
        assert (decision["group_id"], decision["kind"]) == ("orders", "Recommendation")
        if end == midnight:  # the run after it goes on from its decision, which one process does not know
            assert lagcast_process(*words_of(features, end))[1] == out
    days = {part.date: part.folder for part in read_manifest(features).parts if part.interval_seconds == 15}
    assert {day: folder.split("/")[1] for day, folder in days.items()} == {
        "2026-05-03": "v1",
        "2026-05-04": "v2",
        "2026-05-05": "v2",
    }


def steady_samples(group: str, after: datetime, until: datetime) -> list[OffsetSample]:
    """Samples of one partition each 15 s, of 10 messages/s that are consumed at once."""
    offsets = range(int(after.timestamp()) + 15, int(until.timestamp()) + 1, 15)
    return [
        OffsetSample(
            cluster="c",
            group=group,
            topic=group,
            partition=0,
            sampled_at=datetime.fromtimestamp(second, UTC),
            end_offset=10 * second,
            committed_offset=10 * second,
            log_start_offset=0,
            group_state="STABLE",
            group_protocol="consumer",
            group_assignor="uniform",
            members=1,
        )
        for second in offsets
    ]
