"""B7, C35: a Deployment whose group is idle goes to 0 by the real executor, and is started by the first message."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from forecasting.history import GroupInterval
from tests.feature_folder import add_rows
from tests.live.harness.clients import wait_until
from tests.live.harness.control_plane import ControlPlane
from tests.live.harness.executors import executor_in, read_clock
from tests.live.harness.scalers import orders_in, scaler
from tests.live.harness.serving import serving_objects

pytestmark = pytest.mark.kubernetes

ROW = timedelta(seconds=15)


@dataclass(slots=True, kw_only=True)
class Table:
    """The feature table of one idle group: rows up to some minutes ago, and those that are added."""

    folder: Path
    ends_at: datetime

    def add(self, count: int, *, members: int, lag_messages: float = 0.0) -> None:
        """Add so many rows with these values."""
        ends = [self.ends_at + number * ROW for number in range(1, count + 1)]
        self.ends_at = ends[-1]
        add_rows(self.folder, [row(at, members=members, lag_messages=lag_messages) for at in ends])


def row(at: datetime, *, members: int, lag_messages: float) -> GroupInterval:
    return GroupInterval(
        cluster="c",
        group="orders",
        topics="orders",
        interval_end_at=at,
        interval_seconds=15,
        produce_messages_per_second=0.0,
        consume_messages_per_second=0.0,
        lag_messages=lag_messages,
        lag_seconds=None,
        partitions=12,
        sampled_partitions=12,
        members=members,
        group_state="STABLE" if members else "EMPTY",
    )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An hour in which one member had no messages, up to two minutes ago."""
    now = read_clock().replace(microsecond=0)
    table = Table(folder=tmp_path / "features", ends_at=now - timedelta(minutes=62, seconds=now.second % 15))
    table.add(240, members=1)
    return table


@pytest.fixture
def server(namespace: str, kubeconfig: Path, tmp_path: Path, table: Table) -> Iterator[str]:
    """A running `lagcast serve --kubernetes` that decides each second; its address."""
    with serving_objects(namespace, kubeconfig=kubeconfig, table=table.folder, folder=tmp_path) as url:
        yield url


def test_b7_an_idle_group_goes_to_zero_only_if_its_owner_sets_it_and_is_started_by_a_message(
    installed: ControlPlane, namespace: str, server: str, table: Table
) -> None:
    """Without `scaleToZero` one replica stays; with it there is none while nothing waits; five messages start one."""
    orders_in(installed, namespace, replicas=1)
    command = [str(Path(sys.executable).with_name("lagcast-executor")), "--api", server, "--all", "--once"]
    command += ["--mode", "apply", "--kubeconfig", str(executor_in(installed, namespace))]

    def recommended() -> str:
        path = "jsonpath={.status.recommendation.reason} {.status.recommendation.desiredReplicas}"
        return installed.kubectl("-n", namespace, "get", "cgs", "orders", "-o", path)

    def replicas() -> str:
        return installed.kubectl("-n", namespace, "get", "deployment", "orders", "-o", "jsonpath={.spec.replicas}")

    def acted(count: str) -> bool:
        subprocess.run(command, capture_output=True, check=True)
        return replicas() == count

    active: dict[str, Any] = {
        "target": {"name": "orders"},
        "group": {"capacityMessagesPerSecondPerReplica": 1000},
        "mode": "Apply",
        "maxReplicas": 8,
    }
    installed.apply(json.dumps(scaler(namespace, **active)))
    wait_until(lambda: recommended() == "CheaperToStay 1")
    assert acted("1")
    installed.apply(json.dumps(scaler(namespace, **active, minReplicas=0, scaleToZero={"enabled": True})))
    wait_until(lambda: recommended() == "Idle 0")
    wait_until(lambda: acted("0"))
    table.add(2, members=0)
    wait_until(lambda: acted("0") and recommended() == "Idle 0")
    table.add(1, members=0, lag_messages=5.0)
    wait_until(lambda: recommended() == "Activating 1")
    wait_until(lambda: acted("1"))
