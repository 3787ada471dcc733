"""The external scaler: KEDA reads the due replicas, and gets an error while there is no advice.

On an error KEDA keeps the replicas, or uses the fallback of its object; the scaler never returns 0 in its place.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import grpc  # type: ignore[import-untyped]  # ships no types

from api.keda.protocol import (
    SERVICE,
    GetMetricSpecResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    IsActiveResponse,
    MetricSpec,
    MetricValue,
    ScaledObjectRef,
)
from api.wording import without_addresses
from recommender.deciding.recommendation import due_replicas
from recommender.ports import AdapterError, DecisionStore

METRIC = "lagcast-due-replicas"
# Interval at which a stream checks for a new due count; KEDA itself polls every 30 s by default.
LOOK_SECONDS = 1.0
# Streams at once: one for each trigger `external-push`, which costs a look into the store each second.
MOST_STREAMS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The due replicas now; or the reason why they are unknown, with the status code of gRPC."""

    replicas: int = 0
    failure: str = ""
    code: grpc.StatusCode = grpc.StatusCode.OK


def due(store: DecisionStore, metadata: Mapping[str, str], *, now: datetime) -> Due:
    """The due replicas of the group that a trigger's `metadata` names by `cluster` and `groupId`."""
    missing = [key for key in ("cluster", "groupId") if not metadata.get(key)]
    if missing:
        failure = f"the trigger's metadata lack {' and '.join(missing)}"
        return Due(failure=failure, code=grpc.StatusCode.INVALID_ARGUMENT)
    cluster, group = metadata["cluster"], metadata["groupId"]
    try:
        decision = store.latest(cluster, group)
    except AdapterError as error:
        return Due(failure=without_addresses(str(error)), code=grpc.StatusCode.UNAVAILABLE)
    if decision is None:
        return Due(
            failure=f"nothing was decided for group {group!r} of cluster {cluster!r}", code=grpc.StatusCode.NOT_FOUND
        )
    found = due_replicas(decision, now=now)
    if isinstance(found, str):
        return Due(failure=without_addresses(found), code=grpc.StatusCode.UNAVAILABLE)
    return Due(replicas=found)


class ExternalScaler:
    """The service's methods, under KEDA's names. While the recommender does not lead, they return an error."""

    def __init__(self, store: DecisionStore, *, clock: Callable[[], datetime], leads: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._streams = 0

    async def IsActive(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802  # gRPC's
        """True if at least one replica is due."""
        return IsActiveResponse(result=await self._replicas(request, context) > 0)

    async def StreamIsActive(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ANN401, N802  # gRPC's
        """The same at once, and again after each change; the stream ends with an error while there is no advice.

        One more than `MOST_STREAMS` is refused; polling the same group still works.
        """
        if self._streams >= MOST_STREAMS:
            failure = f"{MOST_STREAMS} streams are open, the limit; use triggers of type external"
            await _abort(context, Due(failure=failure, code=grpc.StatusCode.RESOURCE_EXHAUSTED))
        self._streams += 1
        try:
            reported: bool | None = None
            while True:
                active = await self._replicas(request, context) > 0
                if active != reported:
                    reported = active
                    yield IsActiveResponse(result=active)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._streams -= 1

    async def GetMetricSpec(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802  # gRPC's
        """One metric, whose value is the replica count itself: one per replica."""
        del request, context
        return GetMetricSpecResponse(metricSpecs=[MetricSpec(metricName=METRIC, targetSize=1, targetSizeFloat=1.0)])

    async def GetMetrics(self, request: Any, context: Any) -> Any:  # noqa: ANN401, N802  # gRPC's
        """The due replicas."""
        replicas = await self._replicas(request.scaledObjectRef, context)
        value = MetricValue(metricName=METRIC, metricValue=replicas, metricValueFloat=float(replicas))
        return GetMetricsResponse(metricValues=[value])

    async def _replicas(self, reference: Any, context: Any) -> int:  # noqa: ANN401  # gRPC's
        found = await asyncio.to_thread(due, self._store, dict(reference.scalerMetadata), now=self._clock())
        if not self._leads():
            failure = "another lagcast leads, or none; retry over a new connection"
            found = Due(failure=failure, code=grpc.StatusCode.UNAVAILABLE)
        if found.failure:
            await _abort(context, found)
        return found.replicas


async def _abort(context: Any, found: Due) -> NoReturn:  # noqa: ANN401  # gRPC's
    await context.abort(found.code, found.failure)
    raise AssertionError  # abort raises


def handlers(scaler: ExternalScaler) -> grpc.GenericRpcHandler:
    """The methods as handlers of a gRPC server."""
    one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    methods = {
        "IsActive": (one, scaler.IsActive, ScaledObjectRef, IsActiveResponse),
        "StreamIsActive": (many, scaler.StreamIsActive, ScaledObjectRef, IsActiveResponse),
        "GetMetricSpec": (one, scaler.GetMetricSpec, ScaledObjectRef, GetMetricSpecResponse),
        "GetMetrics": (one, scaler.GetMetrics, GetMetricsRequest, GetMetricsResponse),
    }
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            name: handler(method, request_deserializer=request.FromString, response_serializer=answer.SerializeToString)
            for name, (handler, method, request, answer) in methods.items()
        },
    )
