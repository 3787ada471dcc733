"""How much a group needs somebody's eyes: its place in a list that begins with the worst. Pure."""

from typing import Literal, NamedTuple, get_args

from forecasting.refusal import Refusal
from forecasting.units import SECONDS_PER_HOUR
from recommender.deciding.recommendation import Decision, Recommendation

Concern = Literal["no_advice", "promise_missed", "saving_forgone"]
# The worst first; a group without any of them comes behind all others.
CONCERNS: tuple[Concern, ...] = get_args(Concern)


class Urgency(NamedTuple):
    """The place of a group among others: the smaller, the worse, compared field by field.

    `rank` is that of its concern in CONCERNS, one more where there is none. `currency` is empty but where groups are
    compared by money, for amounts in two currencies cannot be. `minus_weight` is minus what they are compared by: lag
    over the promise, or the saving in an hour.
    """

    rank: int
    currency: str
    minus_weight: float


def concern_of(decision: Decision) -> Concern | None:
    """The worst that the decision tells of its group; None: nothing is to be done.

    `no_advice`: it is refused. `promise_missed`: messages wait longer than was promised. `saving_forgone`: the group
    has another count than the advised one, and that costs.
    """
    if isinstance(decision, Refusal):
        return "no_advice"
    if (_lag_ratio(decision) or 0.0) > 1.0:
        return "promise_missed"
    is_forgone = decision.desired_replicas != decision.current_replicas and decision.saving > 0.0
    return "saving_forgone" if is_forgone else None


def urgency_of(decision: Decision) -> Urgency:
    """The place that the decision gives its group."""
    concern = concern_of(decision)
    if concern is None:
        return Urgency(len(CONCERNS), "", 0.0)
    rank = CONCERNS.index(concern)
    if isinstance(decision, Refusal):
        return Urgency(rank, "", 0.0)
    if concern == "promise_missed":
        return Urgency(rank, "", -(_lag_ratio(decision) or 0.0))
    return Urgency(rank, decision.currency, -(saving_per_hour(decision) or 0.0))


def saving_per_hour(advice: Recommendation) -> float | None:
    """What the advice saves in an hour against staying, in its currency; None without a horizon."""
    return advice.saving * SECONDS_PER_HOUR / advice.horizon_seconds if advice.horizon_seconds > 0.0 else None


def paid_per_hour(advice: Recommendation) -> float | None:
    """What the group has cost by the hour of its ledger, in the currency of the advice; None where none is counted."""
    ledger = advice.ledger
    if ledger is None or ledger.currency != advice.currency:
        return None
    seconds = (advice.issued_at - ledger.since_at).total_seconds()
    return ledger.paid.total * SECONDS_PER_HOUR / seconds if seconds > 0.0 else None


def _lag_ratio(advice: Recommendation) -> float | None:
    """Lag over the promise; None where one of the two is not known."""
    promise = None if advice.policy is None else advice.policy.max_lag_seconds
    lag = advice.observed.lag_seconds
    return None if promise is None or lag is None or promise <= 0.0 else lag / promise
