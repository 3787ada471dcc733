"""The columns of the tables that packages exchange: offset samples, group intervals, fits and forecasts of a fleet.

One definition, from which the Spark schema, the Arrow schema and the row types are built or checked. A column has the
same name in the table, in the dataclass, in JSON and (with the prefix `lagcast_`) as a metric.
"""

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["string", "int", "long", "double", "boolean", "timestamp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Name, kind and nullability of one column; `timestamp` is an instant in UTC with microseconds.

    `later`: files that are older than the column lack it, and read as null there.
    """

    name: str
    kind: Kind
    nullable: bool = False
    later: bool = False


# One row for each partition and sampling instant. The group's state is repeated on each of its rows, so that one file
# holds all samples of that instant.
SAMPLES: tuple[Column, ...] = (
    Column(name="cluster", kind="string"),
    Column(name="group", kind="string"),
    Column(name="topic", kind="string"),
    Column(name="partition", kind="int"),
    Column(name="sampled_at", kind="timestamp"),
    Column(name="end_offset", kind="long"),
    Column(name="committed_offset", kind="long", nullable=True),  # null or -1: nothing committed yet
    Column(name="log_start_offset", kind="long", nullable=True),
    Column(name="group_state", kind="string"),
    Column(name="group_protocol", kind="string", nullable=True),
    Column(name="group_assignor", kind="string", nullable=True),
    Column(name="members", kind="int", nullable=True),
    Column(name="static_members", kind="int", nullable=True, later=True),  # of the members, those with an instance id
    Column(name="clients", kind="string", nullable=True, later=True),  # libraries, sorted, joined by a comma
    Column(name="streams", kind="string", nullable=True, later=True),  # of a Streams application, as JSON
    Column(name="commit_interval_seconds", kind="double", nullable=True, later=True),  # measured by the meter
    Column(name="busy_ratio", kind="double", nullable=True, later=True),  # share of their time that members work
    Column(name="session_timeout_seconds", kind="double", nullable=True, later=True),  # the longest of the members'
    Column(name="rebalance_timeout_seconds", kind="double", nullable=True, later=True),  # the same
    Column(name="consumer_heartbeat_seconds", kind="double", nullable=True, later=True),  # of the newer protocol
)

# One row for each group and interval, stamped with the instant at which the interval ends: a row may be used from
# `interval_end_at` on, never before. Rates are null where offsets give no valid difference.
GROUP_INTERVALS: tuple[Column, ...] = (
    Column(name="cluster", kind="string"),
    Column(name="group", kind="string"),
    Column(name="topics", kind="string"),  # sorted, joined by a comma
    Column(name="interval_end_at", kind="timestamp"),
    Column(name="interval_seconds", kind="int"),
    Column(name="produce_messages_per_second", kind="double", nullable=True),
    Column(name="consume_messages_per_second", kind="double", nullable=True),
    Column(name="lag_messages", kind="double", nullable=True),
    Column(name="lag_seconds", kind="double", nullable=True),
    Column(name="worst_lag_seconds", kind="double", nullable=True),  # of the partition with the most lag
    Column(name="worst_partition", kind="string", nullable=True),  # "topic-17": that partition
    Column(name="partitions", kind="int"),
    Column(name="sampled_partitions", kind="int"),
    Column(name="members", kind="int", nullable=True),
    Column(name="group_state", kind="string"),
    Column(name="in_rebalance", kind="boolean"),
    Column(name="partition_skew_ratio", kind="double", nullable=True),  # busiest partition / mean partition
    Column(name="busiest_partition", kind="string", nullable=True),  # "topic-17"
    Column(name="gap_count", kind="long"),
    Column(name="no_commit_count", kind="long"),
    Column(name="negative_race_count", kind="long"),
    Column(name="offset_reset_count", kind="long"),
    Column(name="in_rebalance_count", kind="long"),
    Column(name="partition_appeared_count", kind="long"),
    Column(name="group_protocol", kind="string", nullable=True, later=True),
    Column(name="group_assignor", kind="string", nullable=True, later=True),
    Column(name="static_members", kind="int", nullable=True, later=True),
    Column(name="clients", kind="string", nullable=True, later=True),
    Column(name="streams", kind="string", nullable=True, later=True),
    Column(name="commit_interval_seconds", kind="double", nullable=True, later=True),
    Column(name="busy_ratio", kind="double", nullable=True, later=True),
    Column(name="session_timeout_seconds", kind="double", nullable=True, later=True),
    Column(name="rebalance_timeout_seconds", kind="double", nullable=True, later=True),
    Column(name="consumer_heartbeat_seconds", kind="double", nullable=True, later=True),
)

# The fit of a fleet for each group: one row for each horizon its forecasts were scored at, with the parameters
# repeated; one row without scores where the group was refused or nothing could be scored. Losses are in messages/s.
FLEET_FITS: tuple[Column, ...] = (
    Column(name="cluster", kind="string"),
    Column(name="group", kind="string"),
    Column(name="model", kind="string"),
    Column(name="fitted_at", kind="timestamp"),
    Column(name="refusal_reason", kind="string", nullable=True),
    Column(name="refusal_sentence", kind="string", nullable=True),
    Column(name="parameters", kind="string", nullable=True),  # JSON
    Column(name="horizon_seconds", kind="int", nullable=True),
    Column(name="scored_steps", kind="int"),
    Column(name="pinball_p50", kind="double", nullable=True),
    Column(name="pinball_p90", kind="double", nullable=True),
    Column(name="pinball_p95", kind="double", nullable=True),
    Column(name="band_coverage_fraction", kind="double", nullable=True),  # p05 to p95: 0.90 is ideal
)

# Forecasts for each group: one row for each step of five minutes of the week that begins at `issued_at`.
# Arrivals stay under `..._p95` with a probability of 0.95, and so on for each of `forecasting.forecast.QUANTILES`.
LONG_FORECASTS: tuple[Column, ...] = (
    Column(name="cluster", kind="string"),
    Column(name="group", kind="string"),
    Column(name="model", kind="string"),
    Column(name="history_tier", kind="string"),
    Column(name="issued_at", kind="timestamp"),
    Column(name="step_ends_at", kind="timestamp"),
    Column(name="step_seconds", kind="int"),
    Column(name="produce_messages_per_second_p05", kind="double"),
    Column(name="produce_messages_per_second_p10", kind="double"),
    Column(name="produce_messages_per_second_p25", kind="double"),
    Column(name="produce_messages_per_second_p50", kind="double"),
    Column(name="produce_messages_per_second_p75", kind="double"),
    Column(name="produce_messages_per_second_p90", kind="double"),
    Column(name="produce_messages_per_second_p95", kind="double"),
    Column(name="produce_messages_per_second_p99", kind="double"),
)

# One group's fits and forecasts as its worker returns them, in one frame: rows that have a `step_ends_at` are of
# LONG_FORECASTS, the others of FLEET_FITS.
FLEET_ISSUE: tuple[Column, ...] = tuple(
    replace(column, nullable=column.name not in ("cluster", "group", "model"))
    for column in (*FLEET_FITS, *(column for column in LONG_FORECASTS if column not in FLEET_FITS))
)

# What a run over a fleet leaves of each group: in the table `decisions` its decision, a Recommendation or a Refusal;
# in the table `kept` what its next decision depends on. `document` is JSON, or empty for the kind `group`, whose `at`
# is the last run that decided it; `at` of the others is when they were issued or graded, or began.
FLEET_STATE: tuple[Column, ...] = (
    Column(name="table", kind="string"),
    Column(name="cluster", kind="string"),
    Column(name="group", kind="string"),
    Column(name="kind", kind="string"),
    Column(name="at", kind="timestamp"),
    Column(name="document", kind="string"),
)

# Each table is a folder of this name, and in it each issue of the fleet is one file in the folder of its day. Both are
# patterns of the issue's instant, in UTC.
FLEET_FITS_FOLDER = "fleet_fits"
LONG_FORECASTS_FOLDER = "long_forecasts"
ISSUE_DAY = "date=%Y-%m-%d"
ISSUE_FILE = "issued-%Y%m%dT%H%M%SZ.parquet"

# The samples of a finished day are one file, whose name ends like this and whose footer names, under this key and one a
# line, the files that it was made of: where they still exist, they do not count. A reader of a folder of samples holds
# a shared lock on this file, so that none is removed meanwhile.
DAY_FILE = ".day.parquet"
MADE_OF = "lagcast.made_of"
SAMPLES_LOCK = ".lock"
# A reader of the feature table looks no more days back, see `forecasting.fleet.HISTORY_DAYS`: whoever removes old days
# leaves these.
LEAST_KEPT_ROWS_DAYS = 36
# A century: more would lie before the first date.
MOST_KEPT_DAYS = 36_500

BASE_INTERVAL_SECONDS = 15
ROLLUP_INTERVALS_SECONDS: tuple[int, ...] = (60, 300, 3600)

# Group states, by Kafka's names, in which partitions are changing hands.
REBALANCING_STATES: frozenset[str] = frozenset(
    {
        "PREPARING_REBALANCING",
        "PREPARING_REBALANCE",
        "COMPLETING_REBALANCING",
        "COMPLETING_REBALANCE",
        "ASSIGNING",
        "RECONCILING",
    }
)


def quantile_column(quantile: float) -> str:
    """The column of LONG_FORECASTS that holds this quantile.

    >>> quantile_column(0.05)
    'produce_messages_per_second_p05'
    """
    return f"produce_messages_per_second_p{round(100 * quantile):02d}"
