# ruff: noqa: INP001 - a script is run, never imported
"""Writes the schema of the chart's values; the schema of its settings is generated from the settings' own types.

python scripts/chart_schema.py > deploy/chart/values.schema.json
"""

import json
import sys
from typing import Any

from forecasting.columns import LEAST_KEPT_ROWS_DAYS, MOST_KEPT_DAYS
from recommender.configuring.settings import Settings

Schema = dict[str, Any]

TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
SWITCH = {"type": "boolean"}
# Kubernetes' own rule for the names of namespaces.
NAMESPACE = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
NAMESPACES = {"type": "array", "items": NAMESPACE, "uniqueItems": True}
# An address, found by the recommender, or none.
SERVER = {"type": "string", "pattern": "^(auto|https?://.+)?$"}
LABELS = {"type": "object", "additionalProperties": TEXT}
OBJECTS = {"type": "array", "items": {"type": "object"}}
# More than the days of the past that `lagcast up` reads at its start, by default.
KEPT_AT_LEAST = 15
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
ACCESS_MODES = ("ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")


def schema() -> Schema:
    """The whole schema: values outside it are refused."""
    settings = Settings.model_json_schema()
    image = block(repository=NAME, tag=TEXT, pullPolicy={"enum": list(PULL_POLICIES)})
    ports = {"type": "array", "items": block(port=PORT, endPort=PORT, protocol={"const": "TCP"})}
    values = block(
        kafka=block(bootstrap=TEXT, cluster=NAME, existingSecret=NAME, publish=TEXT),
        prometheus=block(url=SERVER, nodePrices=SERVER, namespace=NAMESPACE),
        # The chart sets the other settings itself: folders, addresses, ports.
        settings=block(**{name: settings["properties"][name] for name in ("decision", "groups", "namespaces")}),
        image=image,
        imagePullSecrets=OBJECTS,
        fsGroup={"type": ["integer", "null"], "minimum": 1},
        storage=block(
            data=volume(keepSamplesDays=days(KEPT_AT_LEAST), keepRowsDays=days(LEAST_KEPT_ROWS_DAYS)), state=volume()
        ),
        forecasts=block(schedule=NAME, podDisruptionBudget=SWITCH, resources={"type": "object"}),
        recommender=recommender(),
        scalers=block(namespaces=NAMESPACES, definition=SWITCH, discover=SWITCH),
        access=block(
            tokenSecret=TEXT, tokenReview=SWITCH, tlsSecret=TEXT, allowedHosts={"type": "array", "items": NAME}
        ),
        keda=block(enabled=SWITCH, clientCaSecret=TEXT),
        executor=executor(image),
        networkPolicy=block(
            enabled=SWITCH,
            kedaNamespace=NAMESPACE,
            kafkaPorts=ports,
            prometheusPorts=ports,
            storePorts=ports,
        ),
        serviceMonitor=block(
            enabled=SWITCH, labels=LABELS, interval=NAME, authorization={"type": "object"}, bearerTokenFile=TEXT
        ),
        prometheusRule=block(enabled=SWITCH, labels=LABELS),
        dashboard=block(enabled=SWITCH, labels=LABELS),
        extraEnv=OBJECTS,
        extraVolumes=OBJECTS,
        extraVolumeMounts=OBJECTS,
        extraObjects=OBJECTS,
    )
    # A value of Helm itself, for charts that contain charts.
    values["properties"]["global"] = {"type": "object"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **values, "$defs": settings["$defs"]}


def block(**properties: Schema) -> Schema:
    """An object with these fields and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def volume(**kept: Schema) -> Schema:
    """A claim of the chart, or an existing one, and how long what is in it is kept."""
    modes = {"type": "array", "minItems": 1, "items": {"enum": list(ACCESS_MODES)}}
    return block(existingClaim=TEXT, storageClassName=TEXT, accessModes=modes, size=NAME, **kept)


def days(least: int) -> Schema:
    """A number of days to keep."""
    return {"type": "integer", "minimum": least, "maximum": MOST_KEPT_DAYS}


def recommender() -> Schema:
    """The values of the recommender; several replicas need a store that they share."""
    several_of = {"type": "integer", "minimum": 1}
    whole = block(replicas=several_of, shards=several_of, storeSecret=TEXT, resources={"type": "object"})
    several = {"properties": {"replicas": {"minimum": 2}}}
    return whole | {"if": several, "then": {"properties": {"storeSecret": NAME}}}


def executor(image: Schema) -> Schema:
    """The values of the executor; if it is switched on, the namespaces where it may scale are required."""
    whole = block(
        enabled=SWITCH,
        mode={"enum": ["recommend", "apply"]},
        namespaces=NAMESPACES,
        kinds={"type": "array", "items": {**block(group=NAME, plural=NAME), "required": ["group", "plural"]}},
        minReplicas={"type": "integer", "minimum": 0},
        maxReplicas={"type": ["integer", "null"], "minimum": 1},
        namespace=NAMESPACE,
        api=block(caSecret=TEXT, tokenSecret=TEXT, certificateSecret=TEXT),
        image=image,
        resources={"type": "object"},
    )
    switched_on = {"properties": {"enabled": {"const": True}}}
    return whole | {"if": switched_on, "then": {"properties": {"namespaces": {"minItems": 1}}}}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n")
