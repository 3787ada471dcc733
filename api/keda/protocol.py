"""KEDA's external scaler protocol: its messages, with the names and numbers of fields that KEDA sends and reads.

Source: kedacore/keda v2.21, pkg/scalers/externalscaler/externalscaler.proto.
"""

from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]  # ships no types
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

PACKAGE = "externalscaler"
SERVICE = f"{PACKAGE}.ExternalScaler"

_Field = descriptor_pb2.FieldDescriptorProto
_STRING, _BOOL, _INT64, _DOUBLE = _Field.TYPE_STRING, _Field.TYPE_BOOL, _Field.TYPE_INT64, _Field.TYPE_DOUBLE
# Message: field, number, type (text is the name of a message), repeated.
_MESSAGES: dict[str, tuple[tuple[str, int, str | int, bool], ...]] = {
    "ScaledObjectRef": (
        ("name", 1, _STRING, False),
        ("namespace", 2, _STRING, False),
        ("scalerMetadata", 3, "ScaledObjectRef.ScalerMetadataEntry", True),
    ),
    "IsActiveResponse": (("result", 1, _BOOL, False),),
    "GetMetricSpecResponse": (("metricSpecs", 1, "MetricSpec", True),),
    "MetricSpec": (
        ("metricName", 1, _STRING, False),
        ("targetSize", 2, _INT64, False),
        ("targetSizeFloat", 3, _DOUBLE, False),
    ),
    "GetMetricsRequest": (("scaledObjectRef", 1, "ScaledObjectRef", False), ("metricName", 2, _STRING, False)),
    "GetMetricsResponse": (("metricValues", 1, "MetricValue", True),),
    "MetricValue": (
        ("metricName", 1, _STRING, False),
        ("metricValue", 2, _INT64, False),
        ("metricValueFloat", 3, _DOUBLE, False),
    ),
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="lagcast/externalscaler.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add(message, *field)
    # A map is a list of entries of a key and a value.
    entry = file.message_type[0].nested_type.add(name="ScalerMetadataEntry")
    entry.options.map_entry = True
    _add(entry, "key", 1, _STRING, repeated=False)
    _add(entry, "value", 2, _STRING, repeated=False)
    return file


def _add(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: str | int,
    repeated: bool,  # noqa: FBT001  # a column of the table above
) -> None:
    field = message.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if isinstance(kind, str):
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = kind


# A separate pool: KEDA's generated module, if it is loaded in the same process, registers the same names.
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _message(name: str) -> Any:  # noqa: ANN401  # a class made at run time
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


ScaledObjectRef = _message("ScaledObjectRef")
IsActiveResponse = _message("IsActiveResponse")
GetMetricSpecResponse = _message("GetMetricSpecResponse")
MetricSpec = _message("MetricSpec")
GetMetricsRequest = _message("GetMetricsRequest")
GetMetricsResponse = _message("GetMetricsResponse")
MetricValue = _message("MetricValue")
