"""The pictures of each page, made of what REST answers."""

from collections.abc import Mapping

from api import schemas as wire
from api.pages.views import GroupView
from api.pictures.accuracy import accuracy
from api.pictures.calendar import calendar
from api.pictures.fan import fan
from api.pictures.fleet import fleet
from api.pictures.lag import lag
from api.pictures.ledger import group_ledger
from api.pictures.picture import Column, Picture
from api.pictures.rebalances import rebalances
from api.pictures.replicas import replicas
from api.pictures.skew import partition_skew
from api.pictures.states import states
from api.pictures.waterfall import waterfall

_RATE = Column(name="produce_messages_per_second", title="Produced, messages/s")
# By name: the name of a figure on the page, and of its CSV.
Pictures = dict[str, Picture]


def of_fleet(page: wire.GroupPage, ledgers: Mapping[str, wire.GroupLedger]) -> Pictures:
    """Of the groups of a page: what they cost; one picture for each currency."""
    return {f"fleet-{number}": picture for number, picture in enumerate(fleet(page.groups, ledgers))}


def of_group(view: GroupView) -> Pictures:
    """Of a group's last day on one axis of time, and what its plans and other scalers cost."""
    advice = view.now.advice
    drawn = [
        states(view.day, advice),
        fan(view.day, advice, view.hourly_advice),
        replicas(view.day, advice),
        lag(view.day, advice),
        rebalances(view.day, view.moves),
        accuracy(view.day, view.hourly_advice),
        calendar(view.hourly_rates, _RATE, title="The week"),
        *([] if view.ledger is None else [group_ledger(view.ledger)]),
        *([] if view.partitions is None else [partition_skew(view.partitions)]),
    ]
    return {picture.name: picture for picture in drawn} | of_decision(view.latest)


def of_decision(decision: wire.RecommendationV1 | wire.RefusalV1) -> Pictures:
    """Of one decision: what its plans cost; nothing of a refusal."""
    return {"waterfall": waterfall(decision)} if isinstance(decision, wire.RecommendationV1) else {}
