"""The two tables as Spark types and as Arrow types, built from the one definition in `forecasting.columns`."""

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from forecasting.columns import GROUP_INTERVALS, SAMPLES, Column, Kind

_TYPES: dict[Kind, DataType] = {
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
}


def spark_schema(columns: tuple[Column, ...]) -> StructType:
    """The columns in their order, as Spark names and types them.

    >>> spark_schema(SAMPLES[:2]).simpleString()
    'struct<cluster:string,group:string>'
    """
    return StructType([StructField(column.name, _TYPES[column.kind], column.nullable) for column in columns])


SAMPLES_SCHEMA = spark_schema(SAMPLES)
GROUP_INTERVALS_SCHEMA = spark_schema(GROUP_INTERVALS)

# The same as Arrow's types: instants are microseconds in UTC.
SAMPLES_ARROW = to_arrow_schema(SAMPLES_SCHEMA, timezone="UTC")
GROUP_INTERVALS_ARROW = to_arrow_schema(GROUP_INTERVALS_SCHEMA, timezone="UTC")
