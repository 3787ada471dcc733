"""ScaledObjects of KEDA: one ConsumerGroupScaler for each Kafka trigger, beside which the ScaledObject may stay."""

from manifests.objects import (
    Document,
    Imported,
    least_replicas,
    scaler,
    target_of,
    without_equivalent,
)

API_GROUP = "keda.sh"
TRIGGERS = ("kafka", "apache-kafka")

_OBJECT = {
    "pollingInterval": "lagcast decides once a cycle, decision.cycle_seconds",
    "cooldownPeriod": "scaleToZero.idleSeconds is the time without messages before 0 replicas",
    "initialCooldownPeriod": "0 replicas need that time without messages, for a new object too",
    "idleReplicaCount": "0 replicas take scaleToZero.enabled",
    "fallback": "without fresh offsets lagcast refuses, and replicas do not change",
    "advanced": "what a move costs decides, not a window; rivals of a replay have their own",
}
_COMMITTED = "all topics are watched to which the group commits"
_LAG = "lag is priced by the time that messages wait, objective.maxLagSeconds"
_TRIGGER = {
    "topic": f"{_COMMITTED}; see that it is among them",
    "bootstrapServers": "brokers are those of lagcast's collector",
    "bootstrapServersFromEnv": "brokers are those of lagcast's collector",
    "lagThreshold": _LAG,
    "activationLagThreshold": "scaleToZero.activationLagMessages is the lag that starts a group at 0",
    "offsetResetPolicy": "a group without commits has the lag from the log's start",
    "partitionLimitation": "all partitions that the group reads are looked at",
    "allowIdleConsumers": "no more members than partitions are advised",
    "limitToPartitionsWithLag": "no more members than partitions are advised",
    "ensureEvenDistributionOfPartitions": "counts that differ in what they carry are all that is advised",
    "scaleToZeroOnInvalidOffset": "what is not known never counts as idle",
    "excludePersistentLag": "a partition that stands still while others go on is named in the advice",
}
NO_JOBS = "Unsupported/ScaledJob: what starts anew for each batch has no replicas to advise"
_SECURITY = "the collector has its own security settings, --client-config"


def scaled_object(source: Document, *, cluster: str) -> Imported:
    """Import a ScaledObject; triggers of other types are left out, and a warning names them."""
    spec = source["spec"]
    target, warnings = target_of(spec["scaleTargetRef"], path="spec.scaleTargetRef")
    # KEDA's own default is 0.
    least, said = least_replicas(spec.get("minReplicaCount", 0), path="spec.minReplicaCount")
    taken = ("scaleTargetRef", "minReplicaCount", "maxReplicaCount", "triggers")
    warnings += said + without_equivalent(spec, taken=taken, path="spec", reasons=_OBJECT)
    made = Imported(warnings=warnings)
    triggers = [(number, each) for number, each in enumerate(spec.get("triggers", [])) if each["type"] in TRIGGERS]
    for number, trigger in enumerate(spec.get("triggers", [])):
        if trigger["type"] not in TRIGGERS:
            words = f"spec.triggers[{number}] is of type {trigger['type']}: only Kafka's have a group"
            made += Imported(warnings=(words,))
    for number, trigger in triggers:
        path, metadata = f"spec.triggers[{number}].metadata", trigger["metadata"]
        name = str(source["metadata"]["name"])
        reasons = _TRIGGER | dict.fromkeys(("sasl", "tls", "saslTokenProvider", "version"), _SECURITY)
        notes = without_equivalent(metadata, taken=("consumerGroup",), path=path, reasons=reasons)
        if "authenticationRef" in trigger:
            notes += (f"spec.triggers[{number}].authenticationRef: {_SECURITY}",)
        document = scaler(
            source,
            name=name if len(triggers) == 1 else f"{name}-{number + 1}",
            cluster=cluster,
            group=metadata["consumerGroup"],
            target=target,
            least=least,
            most=spec.get("maxReplicaCount"),
        )
        made += Imported(documents=(document,), warnings=notes)
    return made
