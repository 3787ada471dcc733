"""The lab: every message of a policy is accounted for, and its replicas are moved through the executor's port."""

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from api.schemas import Target
from benchmarks.lab import kubernetes, processes
from benchmarks.lab.account import Account, account
from benchmarks.lab.group import LocalReplicas, Processes
from benchmarks.lab.kubernetes_page import page
from benchmarks.lab.policies import setting_of
from benchmarks.lab.stage import PolicyResult
from benchmarks.rebalances.measure import ProcessedBatch
from collector.meter import Interruption, PartitionStop
from cost_model.pricing.price import Prices
from executor.errors import ScaleConflictError
from executor.plan import Act, DueMove, Scale
from forecasting.units import MessagesPerSecond

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
WORKLOAD = Target(api_version="apps/v1", kind="Deployment", name="lab")


def batch(partition: int, begin: float, end: float, first: int, last: int) -> ProcessedBatch:
    return ProcessedBatch(
        member="replica",
        group="lab",
        partition=partition,
        begin_at=begin,
        end_at=end,
        first=first,
        last=last,
        produced_at=begin,
    )


def account_of(*batches: ProcessedBatch, moves_at: tuple[float, ...] = ()) -> Account:
    """Two partitions with a message a second from 100 s on, ten in each."""
    stamps = 100.0 + np.arange(10.0)
    return account({0: stamps, 1: stamps}, batches, moves_at=moves_at, replica_seconds=7200.0, max_lag_seconds=5.0)


def test_waits_are_from_the_time_stamp_to_the_end_of_the_first_batch() -> None:
    """All twenty messages are done at 110 s: waits of 1 to 10 s, of which those of 6 to 10 s, ten of them, are late."""
    found = account_of(batch(0, 109.0, 110.0, 0, 9), batch(1, 109.0, 110.0, 0, 9))
    assert (found.messages, found.late_messages, found.lost_messages, found.duplicate_messages) == (20, 10, 0, 0)
    assert found.wait_p50_seconds == pytest.approx(5.5)
    # 2 x (1 + ... + 10) s of waiting in 10 s: eleven messages wait on average.
    assert found.mean_lag_messages == pytest.approx(11.0)


def test_an_unprocessed_message_is_lost_and_one_processed_twice_is_a_duplicate() -> None:
    """Partition 1 is not processed from its sixth message on; of partition 0 three messages are processed twice."""
    found = account_of(batch(0, 109.0, 110.0, 0, 9), batch(1, 109.0, 110.0, 0, 4), batch(0, 111.0, 112.0, 7, 9))
    assert (found.lost_messages, found.duplicate_messages) == (5, 3)


def test_stops_are_those_after_moves() -> None:
    """After the move at 104 s partition 0 stops for 3 s, of which 2 s are usual; stops before it do not count."""
    found = account_of(
        batch(0, 100.0, 101.0, 0, 0),
        batch(0, 103.0, 105.0, 1, 4),
        batch(0, 108.0, 110.0, 5, 9),
        batch(1, 100.0, 110.0, 0, 9),
        moves_at=(104.0,),
    )
    assert found.stopped_partition_seconds == pytest.approx(1.0)
    assert found.longest_pause_seconds == pytest.approx(1.0)


def test_lost_messages_cost_what_late_ones_do() -> None:
    """Two replica-hours at 0.05, and five messages that count as late."""
    prices = Prices.from_replica_hour(0.05, capacity=MessagesPerSecond(60.0))
    found = account_of(batch(0, 100.0, 101.0, 0, 9), batch(1, 100.0, 101.0, 0, 4))
    assert found.cost(prices) == pytest.approx(0.1 + 5 * prices.price_per_late_message)


def test_an_empty_topic_has_no_account() -> None:
    """Without messages there is no figure."""
    with pytest.raises(ValueError, match="no message was produced"):
        account({0: np.zeros(0)}, [], moves_at=(), replica_seconds=1.0, max_lag_seconds=5.0)


def test_the_table_has_the_error_bounds_of_the_meter() -> None:
    """Of two rebalances one stopped two partitions for 7 s, give or take 8 s; the other policy had none."""
    rebalance = Interruption(
        cluster="lab",
        group="lab-keda",
        kind="rebalance",
        began_at=NOON,
        ended_at=NOON,
        members_before=2,
        members_after=3,
        rebalancing_seconds=3.0,
        partitions=12,
        stops=(PartitionStop(topic="t", partition=0, seconds=7.0), PartitionStop(topic="t", partition=1, seconds=7.0)),
        standing_partitions=0,
        repeated_messages_least=0,
        repeated_messages_most=0,
        resolution_seconds=8.0,
    )
    found = account_of(batch(0, 109.0, 110.0, 0, 9), batch(1, 109.0, 110.0, 0, 9))
    both = (rebalance, replace(rebalance, stops=()))
    results = [
        PolicyResult(policy="keda", began_at=100.0, moves=1, interruptions=both, account=found, worked={}),
        PolicyResult(policy="fixed", began_at=100.0, moves=0, interruptions=(), account=found, worked={}),
    ]
    table = processes.table_of(results, setting_of("eager", seconds=20))
    assert "| keda | 7,200 | 11 | 5.5 s |" in table
    assert "| 1 | 2 | 7.0 +/- 8.0 s | 0 | 0.0 s | 0 | 0 |" in table
    assert "| 0 | 0 | - | 0 | 0.0 s | 0 | 0 |" in table


class Process:
    """A replica that ends when it is ended."""

    def __init__(self, ended: list[int], number: int) -> None:
        self._ended, self._number = ended, number

    def end(self) -> None:
        """Record its end."""
        self._ended.append(self._number)


def test_the_youngest_replicas_go_first_and_an_old_version_moves_nothing() -> None:
    """Three replicas, then one, through the port; a move for another version is refused."""
    ended: list[int] = []
    replicas = LocalReplicas(lambda number: Process(ended, number))
    replicas.set(3)
    scale = replicas.read("lab", WORKLOAD)
    move = DueMove(
        recommendation_id="r",
        group_id="lab",
        mode="apply",
        namespace="lab",
        target=WORKLOAD,
        seen_replicas=3,
        seen_at=datetime(2026, 1, 5, 12, tzinfo=UTC),
        desired_replicas=1,
        through_zero=False,
    )
    replicas.apply(Act(move=move, scale=scale))
    assert replicas.count == 1
    with pytest.raises(ScaleConflictError, match="is not the newest"):
        replicas.apply(Act(move=move, scale=Scale(replicas=3, resource_version=scale.resource_version)))
    assert replicas.end() > 0.0
    assert sorted(ended[:2]) == [1, 2]
    assert ended[2] == 0


def test_a_process_works_for_each_ready_pod_and_a_pod_that_never_was_ready_has_cost_time_alone() -> None:
    """`a` is ready at once and is deleted, `b` is ready later, `c` never: a and b had a process each."""
    made: list[str] = []
    ended: list[Any] = []

    def make(pod: str) -> str:
        made.append(pod)
        return pod

    processes = Processes(make, ended.append)
    processes.follow({"a": True, "b": False})
    assert len(processes) == 1
    processes.follow({"a": True, "b": True, "c": False})
    assert len(processes) == 2
    processes.follow({"b": True, "c": False})
    assert len(processes) == 1
    time.sleep(0.1)
    assert processes.end() > 0.2  # b and c, a tenth of a second each
    assert (sorted(made), sorted(ended)) == (["a", "b"], ["a", "b"])


def test_the_page_of_a_run_in_kubernetes_names_compressed_times_and_has_a_row_for_each_policy() -> None:
    """It is made from the figures alone: two minutes of one policy."""
    found = asdict(account_of(batch(0, 109.0, 110.0, 0, 9), batch(1, 109.0, 110.0, 0, 9)))
    policy = {
        "policy": "lagcast-keda",
        "moves": 3,
        "rebalances": 2,
        "replicas": [[-9.0, 1, 0], [-5.0, 1, 1], [12.4, 3, 1]],
        **found,
    }
    document = {"seconds": 120, "protocol": "eager", "processors": 2, "load": 1.25, "policies": [policy]}
    table = page([document])
    assert "make lab-kubernetes OUT=FILE MINUTES=2\n" in table
    assert "the HPA controller looks each 0.25 s (15 s)" in table
    assert "| lagcast through KEDA | 7,206 | 7,200 | 10 of 20 | 10.0 s | 3 | 2 | 0 | 0 |" in table
    assert "- lagcast through KEDA: 1, 3 at 12 s\n" in table
    assert "| fixed at the peak |" in page([document, document | {"policies": [policy | {"policy": "fixed"}]}])
    assert "2 runs of each policy, in the order of the runs, by 2 commands" in page([document, document])
    with pytest.raises(ValueError, match="of different lengths"):
        page([document, document | {"seconds": 60}])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--minutes", "0"], "--minutes 0: give from 0.5 to 12"),
        (["--page", "/nowhere.json"], "--page /nowhere.json: no figures of one comparison"),
    ],
)
def test_wrong_arguments_of_the_lab_in_kubernetes_get_one_sentence(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A load of no time or missing figures give exit code 2 before anything is started."""
    monkeypatch.setattr("sys.argv", ["kubernetes", *words])
    with pytest.raises(SystemExit, match="2"):
        kubernetes.main()
    assert message in capsys.readouterr().err
