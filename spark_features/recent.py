"""The past that a micro-batch needs, in memory: the end of each group's rows, and the samples that later rows need.

Everything here is rebuilt after a restart from the table and from sample files; nothing of it is kept on disk.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.dataset as ds  # type: ignore[import-untyped]  # as above
from numpy.typing import NDArray

from forecasting.columns import BASE_INTERVAL_SECONDS
from spark_features.samples import FeaturesError, checked_rows, unreadable
from spark_features.schema import SAMPLES_ARROW
from spark_features.transforms import LOOK_BACK_SECONDS

# Without this, instants that older Spark versions wrote are read as nanoseconds.
_FORMAT = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
_US = 1_000_000
_PARTITION = ("cluster", "group", "topic", "partition")
_Ints = NDArray[np.int64]

# Group to the end of its newest row, in microseconds since 1970. A key is cluster and group, separated by a zero byte.
Marks = Mapping[str, int]


def read_samples(path: Path, *, most_rows: int) -> Iterator[pa.Table]:
    """All samples of one file, in the columns and types of the table; of a larger file `most_rows` at once.

    Its samples then come in spans of time, oldest first, each of whole intervals: a day's file of 1,000 groups of 24
    partitions has 138 million of them.
    Errors: FeaturesError if the file cannot be read to its end, or its columns are not those of samples.
    """
    rows = checked_rows(path)
    try:
        dataset = ds.dataset([str(path)], schema=SAMPLES_ARROW, format=_FORMAT)
        if rows <= most_rows:
            yield dataset.to_table()
            return
        bounds = pa.array(_bounds_us(dataset, most_rows=most_rows)).cast(SAMPLES_ARROW.field("sampled_at").type)
        for after, to in pairwise(bounds):
            yield dataset.to_table(filter=(ds.field("sampled_at") > after) & (ds.field("sampled_at") <= to))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FeaturesError(unreadable(path, error)) from error


def _bounds_us(dataset: ds.Dataset, *, most_rows: int) -> list[int]:
    """Ends of intervals, ascending, from before the first sample to the last: between two are at most `most_rows`.

    More than that only if a single interval has them.
    """
    rows_at: Counter[int] = Counter()
    for batch in dataset.to_batches(columns=["sampled_at"]):
        ends_us, rows = np.unique(_interval_ends_us(batch["sampled_at"]), return_counts=True)
        rows_at.update(dict(zip(ends_us.tolist(), rows.tolist(), strict=True)))
    bounds, waiting, last_us = [min(rows_at) - BASE_INTERVAL_SECONDS * _US], 0, 0
    for end_us in sorted(rows_at):
        if waiting and waiting + rows_at[end_us] > most_rows:
            bounds.append(last_us)
            waiting = 0
        waiting, last_us = waiting + rows_at[end_us], end_us
    return [*bounds, max(rows_at)]


def _interval_ends_us(instants: pa.Array) -> _Ints:
    """The ends of the intervals of these instants, in microseconds since 1970."""
    length_us = BASE_INTERVAL_SECONDS * _US
    ends_us: _Ints = -(-instants.cast(pa.int64()).to_numpy(zero_copy_only=False) // length_us) * length_us
    return ends_us


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

    Of each partition, from the last LOOK_BACK_SECONDS before the mark: the newest samples of two intervals, for the
    next difference and to see an end that comes back, and the newest with a commit, to see that it is lost.
    """
    sampled_us = microseconds(samples, "sampled_at")
    mark_us = marks_at(marks, samples)
    is_known = pc.fill_null(pc.greater(sampled_us, pc.subtract(mark_us, LOOK_BACK_SECONDS * _US)), fill_value=True)
    is_new = pc.fill_null(pc.greater(sampled_us, mark_us), fill_value=True)
    before = samples.filter(pc.and_(is_known, pc.invert(is_new)))
    return pa.concat_tables([before.take(_needed(before)), samples.filter(is_new)]).combine_chunks()


def _needed(samples: pa.Table) -> _Ints:
    """The places of the samples that a later row needs; of the same instant those with the highest offsets.

    As `transforms.latest_in_interval` has it, the newest sample of an interval stands for the interval.
    """
    partition = _numbered(samples, _PARTITION)
    sampled_us = samples["sampled_at"].combine_chunks()
    committed = pc.fill_null(samples["committed_offset"], -1).to_numpy()
    order = np.lexsort((committed, samples["end_offset"].to_numpy(), sampled_us.cast(pa.int64()).to_numpy(), partition))
    ends_us = _interval_ends_us(sampled_us)
    is_last = _differs(partition[order], 1) | _differs(ends_us[order], 1)
    newest = order[is_last]
    committed_too = newest[committed[newest] >= 0]
    wanted = (newest[_differs(partition[newest], 2)], committed_too[_differs(partition[committed_too], 1)])
    return np.unique(np.concatenate(wanted))


def _numbered(rows: pa.Table, names: Sequence[str]) -> _Ints:
    """A number for each row, equal where all these columns are."""
    numbers = np.zeros(rows.num_rows, dtype=np.int64)
    for name in names:
        encoded = rows[name].combine_chunks().dictionary_encode()
        numbers = numbers * len(encoded.dictionary) + encoded.indices.to_numpy()
    return numbers


def _differs(values: _Ints, places: int) -> NDArray[np.bool_]:
    """True where the value so many places further on is another one, or there is none."""
    differs = np.ones(len(values), dtype=bool)
    differs[:-places] = values[:-places] != values[places:]
    return differs
