"""The past that a micro-batch needs, in memory: the end of each group's rows, and the samples that later rows need.

Everything here is rebuilt after a restart from the table and from sample files; nothing of it is kept on disk.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above

from forecasting.columns import BASE_INTERVAL_SECONDS
from spark_features.samples import FeaturesError, checked_rows, unreadable
from spark_features.schema import SAMPLES_ARROW
from spark_features.transforms import LAG_RATE_SECONDS, LOOK_BACK_SECONDS

# Without this, instants that older Spark versions wrote are read as nanoseconds.
_FORMAT = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
_US = 1_000_000
_PARTITION = ("cluster", "group", "topic", "partition")

# Group to the end of its newest row, in microseconds since 1970. A key is cluster and group, separated by a zero byte.
Marks = Mapping[str, int]


def read_samples(path: Path) -> pa.Table:
    """All samples of one file, in the columns and types of the table.

    Errors: FeaturesError if the file cannot be read to its end, or its columns are not those of samples.
    """
    checked_rows(path)
    try:
        return ds.dataset([str(path)], schema=SAMPLES_ARROW, format=_FORMAT).to_table()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FeaturesError(unreadable(path, error)) from error


def microseconds(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """An instant of each row, in microseconds since 1970."""
    return rows[name].cast(pa.int64())


def keys_of(rows: pa.Table) -> pa.ChunkedArray:
    """The key of each row's group."""
    return pc.binary_join_element_wise(rows["cluster"], rows["group"], "\0")


def marks_at(marks: Marks, rows: pa.Table) -> pa.ChunkedArray:
    """The mark of each row's group; null where it has none."""
    positions = pc.index_in(keys_of(rows), value_set=pa.array(list(marks), pa.string()))
    return pc.take(pa.array(list(marks.values()), pa.int64()), positions)


def newest_ends(rows: pa.Table) -> dict[str, int]:
    """The marks that these rows of the feature table set."""
    of_group = pa.table({"key": keys_of(rows), "end_us": microseconds(rows, "interval_end_at")})
    newest = of_group.group_by("key").aggregate([("end_us", "max")])
    return dict(zip(newest["key"].to_pylist(), newest["end_us_max"].to_pylist(), strict=True))


def after_marks(rows: pa.Table, marks: Marks) -> pa.Table:
    """The rows of the feature table that end after their group's mark; all rows of groups without one."""
    is_new = pc.greater(microseconds(rows, "interval_end_at"), marks_at(marks, rows))
    return rows.filter(pc.fill_null(is_new, fill_value=True))


def late_samples(samples: pa.Table, marks: Marks) -> pa.Table:
    """The samples of intervals whose row, or a later one, is in the table already."""
    return samples.filter(pc.less_equal(microseconds(samples, "sampled_at"), marks_at(marks, samples)))


def thinned(samples: pa.Table, marks: Marks) -> pa.Table:
    """The smallest part of the samples that gives the same rows after each group's mark as all of them.

    Lag in seconds needs rows of the last LAG_RATE_SECONDS; from the time before, only the newest sample of each
    partition is needed, to know the partition and to compute the next difference. After LOOK_BACK_SECONDS it is not
    used any more. 20 groups of 24 partitions keep 22 rounds of samples of 264.
    """
    sampled_us = microseconds(samples, "sampled_at")
    mark_us = marks_at(marks, samples)
    near_us = pc.subtract(mark_us, (LAG_RATE_SECONDS + BASE_INTERVAL_SECONDS) * _US)
    is_near = pc.fill_null(pc.greater(sampled_us, near_us), fill_value=True)
    is_known = pc.fill_null(pc.greater(sampled_us, pc.subtract(mark_us, LOOK_BACK_SECONDS * _US)), fill_value=True)
    far = samples.filter(pc.and_(is_known, pc.invert(is_near)))
    return pa.concat_tables([_newest_of_each_partition(far), samples.filter(is_near)]).combine_chunks()


def _newest_of_each_partition(samples: pa.Table) -> pa.Table:
    """The newest samples; of the same instant those with the highest offsets, as `transforms.latest_in_interval`."""
    if samples.num_rows == 0:
        return samples
    ordered = samples.select([*_PARTITION, "sampled_at", "end_offset"]).append_column(
        "committed", pc.fill_null(samples["committed_offset"], -1)
    )
    keys = [(name, "ascending") for name in ordered.column_names]
    in_order = samples.take(pc.sort_indices(ordered, sort_keys=keys))
    is_last = np.ones(in_order.num_rows, dtype=bool)
    is_last[:-1] = False
    for name in _PARTITION:
        column = in_order[name].combine_chunks()
        is_last[:-1] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return in_order.filter(pa.array(is_last))
