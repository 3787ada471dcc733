"""Which namespace may claim which consumer group. Pure.

An object claims a group by its name alone, and everyone who may create objects in a namespace can write any name. So a
claim is honoured only where something says whose the group is: the settings, that there is one tenant only, or that
the group's members run in that namespace.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

from recommender.configuring.settings import Settings
from recommender.ports import Group


@dataclass(slots=True, kw_only=True)
class Tenants:
    """The namespaces that are followed, and in which of them members of groups were seen last.

    `see` may be called in another thread than `objection`.
    """

    followed: Collection[str]
    _seats: Mapping[Group, str] = field(default_factory=dict)

    def see(
        self, cluster: str, hosts: Mapping[str, Sequence[str]], namespaces_at: Mapping[str, Collection[str]]
    ) -> None:
        """Note where the members of groups run: `hosts` has an address for each member, by group.

        `namespaces_at` are the namespaces of the pods at an address. A group without members stays where it was. One
        whose members are in several places stays too, while some are where it was: by joining it, nobody takes it over.
        """
        seats = dict(self._seats)
        for group, addresses in hosts.items():
            places = {_only(namespaces_at.get(address, ())) for address in addresses}
            before = seats.get((cluster, group))
            if not places or before in places:
                continue
            seats.pop((cluster, group), None)
            only = _only(places)
            if only is not None:
                seats[cluster, group] = only
        self._seats = seats

    def objection(self, settings: Settings, namespace: str, group: Group) -> str | None:
        """Why an object of this namespace may not claim the group, as one sentence; None if it may."""
        return objection_of_settings(
            settings, namespace, group, otherwise=partial(self._not_where_members_run, namespace, group)
        )

    def _not_where_members_run(self, namespace: str, group: Group) -> str | None:
        seat = self._seats.get(group)
        if seat == namespace or (len(self.followed) == 1 and namespace in self.followed):
            return None
        where = "are not known to run" if seat is None else "do not run"
        return f"the members of group {group[1]!r} {where} in namespace {namespace}; {_remedy(namespace, group[1])}"


def objection_of_settings(
    settings: Settings, namespace: str, group: Group, *, otherwise: Callable[[], str | None] = lambda: None
) -> str | None:
    """What the settings object to a claim; `otherwise` decides where they say nothing of namespace and group."""
    name = group[1]
    owners = {own for own, patterns in settings.namespaces.items() if _matches(name, patterns)}
    if owners or namespace in settings.namespaces:
        if namespace in owners:
            return None
        return f"the settings do not grant group {name!r} to namespace {namespace}; {_remedy(namespace, name)}"
    target = settings.group(name).target
    if target is None:
        return otherwise()
    if target.namespace == namespace:
        return None
    return (
        f"the settings have group {name!r} run in another namespace (groups.{name}.target); remove the object, or the "
        "target"
    )


def _only(places: Collection[str | None]) -> str | None:
    """The place, if there is exactly one."""
    return next(iter(places)) if len(places) == 1 else None


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _remedy(namespace: str, name: str) -> str:
    return f"remove the object, or have {name!r} added to namespaces.{namespace} of the settings"
