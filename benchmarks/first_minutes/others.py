"""Somebody else's Kafka: a broker, an exporter, a Prometheus, and two consumer groups that know nothing of lagcast.

Both groups are librdkafka's and have a daily load. All replicas of `stock` were replaced a while ago, as a deploy does,
which left a backlog. `search` was never asked for all that its replicas do.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented, not in __all__

from benchmarks.discovery.groups import GROUPS
from benchmarks.discovery.stage import Load, Members
from tests.live.harness.broker import fetched_jars, free_ports, running_brokers
from tests.live.harness.exporters import KlagExporter, fetched, running_prometheus

WATCHED = "stock"
NAMES = (WATCHED, "search")
DAY_MINUTES = 24 * 60.0
# Topics of a cluster that exists have a past; produce rates of half an hour are what the first forecast takes.
PAST_MINUTES = 45
# The exporter polls and Prometheus scrapes as often as those of many clusters.
SCRAPE_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Where they are, and a load of theirs for a CSV: the produce rate of `WATCHED` at a share of its day."""

    bootstrap: str
    prometheus: str
    rate: Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What happens before the newcomer comes, in seconds: until the deploy, while it lasts, and after it.

    `unread_seconds`: for how long nobody had read the topics when the groups came.
    """

    until_deploy_seconds: float = 0.0
    deploy_seconds: float = 0.0
    after_seconds: float = 0.0
    unread_seconds: int = 0


@contextmanager
def at_work(folder: Path, before: Before) -> Iterator[Others]:
    """They work until the block ends; it begins when `before` is over. Errors: BrokerError for parts that fail."""
    jars, groups = fetched_jars(), [GROUPS[name] for name in NAMES]
    with ExitStack() as ends:
        (broker,) = ends.enter_context(running_brokers(jars, folder / "kafka"))
        admin = AdminClient({"bootstrap.servers": broker.address})
        for created in admin.create_topics([NewTopic(group.name, group.partitions, 1) for group in groups]).values():
            created.result()
        load = Load(groups, broker.address, day_minutes=DAY_MINUTES)
        load.past(PAST_MINUTES, unread_seconds=before.unread_seconds)
        ends.enter_context(load.live())
        members = Members(groups, broker.address, folder, ends)
        for group in groups:
            members.start(group)
        (port,) = free_ports(1)
        exporter = KlagExporter(
            fetched("klag-exporter"),
            folder,
            bootstrap=broker.address,
            cluster="shop",
            port=port,
            every_seconds=SCRAPE_SECONDS,
        )
        ends.callback(exporter.stop)
        exporter.start()
        program = Path(shutil.which("prometheus") or fetched("prometheus"))
        jobs = {"klag": [port]}
        prometheus = ends.enter_context(
            running_prometheus(program, folder / "prometheus", jobs=jobs, every_seconds=SCRAPE_SECONDS)
        )
        watched = GROUPS[WATCHED]
        time.sleep(before.until_deploy_seconds)
        if before.deploy_seconds:
            members.close(watched)
            time.sleep(before.deploy_seconds)
            members.start(watched)
        time.sleep(before.after_seconds)
        yield Others(bootstrap=broker.address, prometheus=prometheus, rate=watched.messages_per_second)
