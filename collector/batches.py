"""Samples as messages of a Kafka topic: the bytes of a parquet file, with the version of the schema in a header.

A message is one batch of one collector, keyed by its cluster, so that a cluster's batches stay in order. A batch that
is larger than a broker accepts by default becomes several messages, no two of which share a group at an instant.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # as above
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above

from collector.errors import AdapterError, MalformedError
from collector.sample import OffsetSample
from collector.sinks import arrow_table, conformed

VERSION_HEADER = "lagcast-samples-version"
# A new nullable column does not raise the version: an older reader ignores the column, and a newer reader uses null
# where it is missing.
SCHEMA_VERSION = "1"
CONTENT_TYPE = "application/vnd.apache.parquet"
# Brokers accept messages of 1,048,588 bytes (message.max.bytes); headers and key need some of them.
MOST_BYTES = 1_000_000
# A message of this program has some 50,000 at most; five million of the same took 757 MB.
MOST_ROWS = 500_000
# Instants that Python, Arrow and Spark can all tell, and add a day to.
_LEAST_US, _MOST_US = 0, 253_370_764_800_000_000


class UnknownVersionError(AdapterError):
    """A message of a later schema; the reader has to be upgraded, and no message is lost until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMessage:
    """A message: its key, its value, and its headers as text."""

    key: str
    value: bytes
    headers: Mapping[str, str]


def batches_of(samples: Iterable[OffsetSample], *, most_bytes: int = MOST_BYTES) -> Iterator[SampleMessage]:
    """The samples as messages, in their order; one for each cluster where they fit into `most_bytes`.

    The samples of one group at one instant are never split over two messages.
    """
    table = arrow_table(samples)
    for cluster in sorted(set(table["cluster"].to_pylist())):
        of_cluster = table.filter(pa.array([name == cluster for name in table["cluster"].to_pylist()]))
        for value in _values(of_cluster, most_bytes):
            headers = {VERSION_HEADER: SCHEMA_VERSION, "content-type": CONTENT_TYPE}
            yield SampleMessage(key=cluster, value=value, headers=headers)


def table_of(value: bytes, headers: Mapping[str, str]) -> pa.Table:
    """The samples of a message.

    Errors: UnknownVersionError; MalformedError for a message that is damaged or not of this schema.
    """
    version = headers.get(VERSION_HEADER)
    if version is None:
        message = f"it lacks the header {VERSION_HEADER}: it is not from `lagcast collect`"
        raise MalformedError(message)
    if version != SCHEMA_VERSION:
        message = f"its samples are of schema version {version}, and this lagcast reads {SCHEMA_VERSION}"
        raise UnknownVersionError(message)
    try:
        file = pq.ParquetFile(pa.BufferReader(value))
        if file.metadata.num_rows > MOST_ROWS:
            message = f"its value holds {file.metadata.num_rows:,} samples, more than {MOST_ROWS:,}"
            raise MalformedError(message)
        table = conformed(file.read())
        # Bytes that are no UTF-8 are read as a name, and fail only whoever asks for it: the writer of the file next.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"its value holds no samples ({error})"
        raise MalformedError(message) from error
    if not table.num_rows:
        message = "its value holds no samples (a table without rows)"
        raise MalformedError(message)
    bounds = pc.min_max(table["sampled_at"].cast(pa.int64())).as_py()
    if not _LEAST_US <= bounds["min"] <= bounds["max"] < _MOST_US:
        message = "its value has a sample from before 1970 or after 9998"
        raise MalformedError(message)
    return table


def _values(table: pa.Table, most_bytes: int) -> Iterator[bytes]:
    value = _parquet(table)
    # A group at an instant stays in one message: otherwise its interval is complete before its last rows arrive.
    instants, groups = table["sampled_at"].cast(pa.int64()).to_pylist(), table["group"].to_pylist()
    keys = sorted(set(zip(instants, groups, strict=True)))
    if len(value) <= most_bytes or len(keys) == 1:
        yield value
        return
    first = set(keys[: len(keys) // 2])
    is_first = np.array([key in first for key in zip(instants, groups, strict=True)])
    yield from _values(table.filter(pa.array(is_first)), most_bytes)
    yield from _values(table.filter(pa.array(~is_first)), most_bytes)


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
