"""The sentences on the figures that advice rests on, on the group's graded moves, and on what it has cost."""

from collections.abc import Sequence
from datetime import datetime

from cost_model.physics.clients import MEASURED
from cost_model.physics.detected import DETECTABLE_IN_CLUSTER
from cost_model.physics.learned import PRIOR_MOVES, MoveOutcome
from cost_model.physics.pods import PodStartUp
from cost_model.physics.profile import Capacity
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.decision import POD_HOURS
from recommender.deciding.recommendation import (
    ForecastValue,
    GradedMove,
    LearnedMoves,
    LedgerAccount,
    LedgerStanding,
    ProfileFigure,
    Recommendation,
)

_PRICE = "price_per_replica_hour"


def beliefs(advice: Recommendation) -> tuple[str, ...]:
    """The figures assumed or measured of the group, one sentence a quantity with its value and its source."""
    learned = advice.learned
    forecast, profile = _forecast(advice.forecast.value, advice.currency), _profile(advice.profile)
    if learned is None:
        plain = (_capacity(advice.capacity), forecast, _unit(advice), *profile)
        return tuple(sentence for sentence in plain if sentence)
    known = _known_from(learned)
    up, down = learned.rebalance_pause_scale_out_seconds, learned.rebalance_pause_scale_in_seconds
    sentences = (
        f"A move stops what it moves {up:.1f} s going up and {down:.1f} s going down ({known}).",
        _start_up(learned),
        f"The risk of a move is priced at {learned.move_risk:.3f} {advice.currency} ({known}).",
        _target_utilization(learned),
        _capacity(advice.capacity),
        forecast,
        _unit(advice),
        *profile,
    )
    return tuple(sentence for sentence in sentences if sentence)


def _profile(figures: Sequence[ProfileFigure]) -> tuple[str, ...]:
    """A sentence for each source of the group's figures; the start-up time has a sentence of its own, unless set."""
    words = {
        "configured": "As set",
        "detected": "Seen in Kafka",
        "cluster": "Seen in the cluster",
        "measured": "Measured while it restored",
        "assumed": "Assumed",
    }
    named: dict[str, list[ProfileFigure]] = {source: [] for source in words}
    for each in figures:
        if each.name == _PRICE:
            continue
        in_cluster = each.source == "detected" and each.name in DETECTABLE_IN_CLUSTER
        if each.name != "start_up_seconds" or each.source not in ("detected", "measured"):
            named.setdefault("cluster" if in_cluster else each.source, []).append(each)
    sentences = (
        f"{words[source]}{_seen_at(named[source])}: "
        f"{', '.join(f'{each.name} {_value(each)}' for each in named[source])}."
        for source in words
        if named[source]
    )
    client = next((_client(each) for each in figures if each.name == "client" and each.value not in MEASURED), None)
    return (*sentences, client) if client else tuple(sentences)


def _client(figure: ProfileFigure) -> str:
    """What a client library means for rebalances whose answer to them was not measured."""
    if figure.value == "other" and figure.source == "assumed":
        found = "The client library is not known, because client ids and assignor name none"
    elif figure.value == "other":
        found = "The members use several client libraries, or one that is not known here"
    else:
        found = f"How fast {figure.value} answers a rebalance has not been measured"
    return f"{found}: it is assumed to answer at its next poll, as Java does."


def _seen_at(figures: Sequence[ProfileFigure]) -> str:
    """When the figures were last seen, where that is known."""
    instants = [each.seen_at for each in figures if each.seen_at is not None]
    return f" at {max(instants):%H:%M:%SZ}" if instants else ""


def _unit(advice: Recommendation) -> str:
    """What costs are in where no price is known, and where a price comes from that nobody has set."""
    if advice.currency == POD_HOURS:
        return "No price of a replica-hour is known: costs are in pod-hours, not in money."
    price = next((each for each in advice.profile if each.name == _PRICE and each.seen_at is not None), None)
    if price is None:
        return ""
    return (
        f"A replica-hour costs {price.value:.4g} {advice.currency}: what its pods request at the prices of their "
        f"nodes, read {price.seen_at:%Y-%m-%d %H:%MZ}."
    )


def _value(figure: ProfileFigure) -> str:
    """The value of a figure as YAML writes it.

    >>> _value(ProfileFigure(name="static_membership", value=False, source="detected"))
    'false'
    """
    value = figure.value
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value:g}"


def _forecast(value: ForecastValue | None, currency: str) -> str:
    """What plans have cost with and without a forecast, and which of them are used as a result."""
    if value is None:
        return ""
    if not value.forecast_proven:
        return "Plans take the produce rate to stay as it is: no forecast has beaten that out of sample yet."
    used = "Plans use the forecast" if value.forecast_used else "Plans take the produce rate to stay as it is"
    return (
        f"{used}: with the forecast they have cost {value.cost_with_forecast:.3f} {currency}, without it "
        f"{value.cost_without_forecast:.3f} (hours count half with each six hours from now)."
    )


def ledger_sentence(ledger: LedgerStanding, *, now: datetime) -> str:
    """What the group has cost by `now`, beside the cheapest KEDA, the cheapest HPA and all replicas."""
    hours = (now - ledger.since_at).total_seconds() / SECONDS_PER_HOUR
    others = [
        min((account for account in ledger.accounts if account.scaler.startswith(kind)), key=lambda it: it.total)
        for kind in ("keda", "hpa", "fixed")
    ]
    would = ", ".join(_would(account) for account in others)
    error = (
        ""
        if ledger.error_ratio is None
        else f"; the simulation of the group itself is off by {abs(ledger.error_ratio - 1.0):.0%}"
    )
    return (
        f"In the last {hours:.0f} h the group cost {ledger.paid.total:.2f} {ledger.currency}; "
        f"by simulation {would}{error}."
    )


def _would(account: LedgerAccount) -> str:
    """One scaler's cost; one that cannot be told from what was paid is marked."""
    product, _, target = account.scaler.rpartition("-")
    names = {"keda": "KEDA", "hpa": "HPA", "hpa-behavior": "HPA with behavior"}
    name = f"{names[product]} at {int(target):,} messages" if product in names else "all replicas"
    return f"{name} would have cost {account.total:.2f}{'' if account.distinguishable else ' (too near to tell)'}"


_QUANTITIES = {
    "price_per_late_message": "a price of {} for a late message",
    "rebalance_pause_seconds": "a rebalance pause of {} s",
    "capacity_messages_per_second_per_replica": "a capacity of {} messages/s for a replica",
    "forecast_peak_messages_per_second": "a forecast peak of {} messages/s",
}


def reversals(advice: Recommendation) -> tuple[str, ...]:
    """What would reverse the decision, all else equal, one sentence a quantity, the nearest first."""
    return tuple(
        f"Another decision from {_QUANTITIES[point.quantity].format(_rounded(point.turning))} on, in place of "
        f"{_rounded(point.present)}."
        for point in advice.sensitivity or ()
    )


def _rounded(value: float) -> str:
    """Three digits of a figure, and all of those before its point.

    >>> _rounded(5421.7), _rounded(30.16), _rounded(0.00001234)
    ('5,422', '30.2', '1.23e-05')
    """
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"


def outcome_sentence(move: GradedMove) -> str:
    """One graded move: its measured effects, beside those that the advice expected."""
    outcome = move.outcome
    counts = f"{outcome.from_replicas} -> {outcome.to_replicas}"
    if outcome.advised_as is None:
        return f"{counts}, not by our advice: {_stopped(outcome)}, {_late(outcome)}{_how(move)}."
    did = (
        f"{_stopped(outcome)} (expected {outcome.expected_rebalance_pause_seconds:.1f}), "
        f"{_late(outcome)} (expected {outcome.expected_late_messages:,.0f})"
    )
    promised = move.promised
    to_save = f"; it was to save {promised.saving:.3f} {promised.currency}" if promised is not None else ""
    return f"{counts} as advised: {did}{_how(move)}{to_save}."


def _stopped(outcome: MoveOutcome) -> str:
    if outcome.rebalance_pause_seconds is None:
        return "stop unknown because replicas were too few"
    return f"stopped {outcome.rebalance_pause_seconds:.1f} s"


def _late(outcome: MoveOutcome) -> str:
    if outcome.late_messages is None:
        return "late messages unknown because replicas were too few"
    return f"{outcome.late_messages:,.0f} messages late"


def _how(move: GradedMove) -> str:
    seconds, ungraceful = move.outcome.start_up_seconds, move.outcome.ungraceful
    added = f", ready after {seconds:.0f} s" if seconds is not None else ""
    if ungraceful is None:
        return added
    return f"{added}, left {'ungracefully' if ungraceful else 'gracefully'}"


def _known_from(learned: LearnedMoves) -> str:
    moves = f"{learned.moves} move{'' if learned.moves == 1 else 's'}"
    if learned.source == "measured":
        return f"measured, {moves}"
    if learned.source == "similar_groups":
        return f"as in {learned.similar_groups} similar groups, {moves} seen; measured from {PRIOR_MOVES:.0f} on"
    return f"assumed, {moves} seen; measured from {PRIOR_MOVES:.0f} on"


def _start_up(learned: LearnedMoves) -> str | None:
    if learned.start_up_seconds is None:
        return None
    seen, pods = learned.start_up_seen_seconds, learned.pod_start_up
    source = learned.start_up_source or ("assumed" if seen is None else "measured")
    match source:
        case "similar_groups":
            known_from = f"as in {learned.similar_groups} similar groups; none was measured here yet"
        case "measured":
            known_from = "measured"
        case "detected" if pods is not None:
            known_from = _of_pods(pods)
        case _:
            known_from = "as set; none was measured yet" if seen is None else f"as set; {seen:.0f} s in graded moves"
    beside = "" if pods is None or source == "detected" else f" Its pods show: {_of_pods(pods)}."
    return f"Added replicas are expected {learned.start_up_seconds:.0f} s after the command ({known_from}).{beside}"


def _of_pods(pods: PodStartUp) -> str:
    """The start-up time of pods with its parts."""
    counted = f"four of five of {pods.pods} pods" if pods.pods > 1 else "1 pod"
    return (
        f"{counted} took up to {pods.start_up_seconds:.0f} s: {pods.node_wait_seconds:.0f} s for a node, "
        f"{pods.container_start_seconds:.0f} s for image and containers, {pods.joining_seconds:.0f} s to be ready and "
        f"join; the newest at {pods.newest_at:%Y-%m-%d %H:%MZ}"
    )


def _target_utilization(learned: LearnedMoves) -> str:
    full = f"Plans fill replicas to {learned.target_utilization:.0%} of their capacity"
    if learned.target_utilization_set is None:
        return f"{full}."
    if learned.target_utilization < learned.target_utilization_set:
        return f"{full} (measured: at {learned.target_utilization_set:.0%}, as set, a backlog grew in quiet minutes)."
    return f"{full} (assumed, as set; no quiet minute contradicts it)."


def _capacity(capacity: Capacity) -> str:
    known = {
        "configured": "as set",
        "saturated_windows": "measured at the group's limit",
        "busy_time": "measured by the share of their time in which members work",
        "lower_bound": "at least: the most that replicas have shown, their limit is unknown",
        "unsaturated_windows": "never seen at its limit: assumed a step above its highest rate",
    }[capacity.source]
    age = f", {capacity.age_seconds / 60:.0f} min old" if capacity.age_seconds is not None else ""
    band = f"p20 {capacity.p20:,.0f}, p90 {capacity.p90:,.0f}"
    return f"One replica consumes {capacity.p50:,.0f}/s ({band}; {known}{age})."
