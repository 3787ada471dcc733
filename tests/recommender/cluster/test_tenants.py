"""Claims across namespaces: whose group it is decides, and not who wrote the object first."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recommender.cluster.scaler import ScalerRequests, standing
from recommender.cluster.scaler_status import rejected_status, status_of, transition
from recommender.cluster.tenants import Tenants
from recommender.configuring.settings import GroupSettings, Settings, TargetSettings

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
NAMESPACES = ("bank", "shop", "team-a")
ORDERS = ("prod", "orders")
CLAIMS = 200


def claim(namespace: str, name: str = "orders", *, age: int = 0, **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # YAML
    """An object of this namespace for the group of this name, `age` days old."""
    created = (NOW - timedelta(days=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"namespace": namespace, "name": f"{namespace}-{name}-{age}", "generation": 1, "uid": name}
    return {
        "metadata": metadata | {"creationTimestamp": created},
        "spec": {"cluster": "prod", "groupId": name} | spec,
    }


def of_settings(**values: Any) -> Settings:  # noqa: ANN401  # of several types
    return Settings(state_dir=Path("nowhere"), **values)


def seen(**seats: str) -> Tenants:
    """All namespaces are followed, and each group of `seats` has a member in its namespace."""
    tenants = Tenants(followed=NAMESPACES)
    addresses = {namespace: f"10.0.0.{number}" for number, namespace in enumerate(NAMESPACES)}
    at = {address: {namespace} for namespace, address in addresses.items()}
    tenants.see("prod", {group: (addresses[namespace],) for group, namespace in seats.items()}, at)
    return tenants


def followed(known: ScalerRequests) -> dict[str, str]:
    """The namespace that is followed for each group."""
    return {group: request.scaler.namespace for (_, group), request in known.requests.items()}


def test_a_claim_is_honoured_where_the_members_run() -> None:
    """Of two objects for one group the one beside its members is followed, though the other one is older."""
    known = standing(of_settings(), [claim("bank", age=9, mode="Off"), claim("shop")], seen(orders="shop").objection)
    assert followed(known) == {"orders": "shop"}
    (loser,) = known.invalid.values()
    assert (loser.reason, loser.group) == ("NotGranted", None)
    assert loser.sentence == (
        "the members of group 'orders' do not run in namespace bank; remove the object, or have 'orders' added to "
        "namespaces.bank of the settings"
    )


def test_the_loser_is_told_in_its_status() -> None:
    """Ready is False with the reason and the sentence, the rest is unknown, and there is an Event."""
    document = claim("bank", mode="Off")
    known = standing(of_settings(), [document], seen(orders="shop").objection)
    status = rejected_status(document, known.invalid["bank", "bank-orders-0"], now=NOW)
    conditions = {each["type"]: each for each in status["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", "NotGranted")
    assert "do not run in namespace bank" in conditions["Ready"]["message"]
    assert {each["status"] for kind, each in conditions.items() if kind != "Ready"} == {"Unknown"}
    news = transition({}, status)
    assert news is not None
    assert (news.kind, news.reason) == ("Warning", "ScalerRejected")


def test_a_claim_of_which_nothing_is_known_is_not_honoured() -> None:
    """A group without members yet, or seen through a proxy, takes a grant where several namespaces are followed."""
    assert followed(standing(of_settings(), [claim("shop")], Tenants(followed=NAMESPACES).objection)) == {}
    granted = of_settings(namespaces={"shop": ["orders"]})
    assert followed(standing(granted, [claim("shop")], Tenants(followed=NAMESPACES).objection)) == {"orders": "shop"}


def test_one_namespace_is_one_tenant() -> None:
    """Where one namespace alone is followed its claims need nothing."""
    assert followed(standing(of_settings(), [claim("shop")], Tenants(followed=("shop",)).objection)) == {
        "orders": "shop"
    }


@pytest.mark.parametrize("pattern", ["orders", "ord*", "order?", "*"])
def test_a_grant_of_the_settings_wins_over_where_members_run(pattern: str) -> None:
    """What is granted to one namespace is claimed from no other one."""
    known = standing(
        of_settings(namespaces={"team-a": [pattern]}), [claim("shop"), claim("team-a")], seen(orders="shop").objection
    )
    assert followed(known) == {"orders": "team-a"}
    (loser,) = known.invalid.values()
    assert loser.sentence == (
        "the settings do not grant group 'orders' to namespace shop; remove the object, or have 'orders' added to "
        "namespaces.shop of the settings"
    )


def test_a_namespace_with_a_grant_claims_nothing_else() -> None:
    """Not even a group whose members run in it, nor as the only one that is followed."""
    granted = of_settings(namespaces={"shop": ["billing"]})
    assert followed(standing(granted, [claim("shop")], seen(orders="shop").objection)) == {}
    assert followed(standing(granted, [claim("shop")], Tenants(followed=("shop",)).objection)) == {}


def test_a_target_in_the_settings_wins() -> None:
    """From another namespace than the target's nothing is claimed, and in that one the target stays what is set."""
    groups = {"orders": GroupSettings(target=TargetSettings(namespace="shop", name="consumer"))}
    own, other = claim("shop", target={"name": "mine"}), claim("bank", age=9, target={"name": "theirs"})
    known = standing(of_settings(groups=groups), [own, other], seen(orders="bank").objection)
    assert followed(known) == {"orders": "shop"}
    request = known.requests[ORDERS]
    assert request.group.target == TargetSettings(namespace="shop", name="consumer")
    conditions = {each["type"]: each for each in status_of(own, request, None, now=NOW)["conditions"]}
    assert (conditions["Conflicted"]["status"], conditions["Conflicted"]["reason"]) == ("True", "TargetInSettings")
    assert "groups.orders.target of the settings is Deployment shop/consumer" in conditions["Conflicted"]["message"]
    same = claim("shop", target={"name": "consumer"})
    assert standing(of_settings(groups=groups), [same], seen().objection).requests[ORDERS].overruled is None


def test_a_group_stays_where_it_was_while_it_has_no_members() -> None:
    """A group at zero is still its owner's, and one that others join as well."""
    tenants = seen(orders="shop")
    at = {"10.1.0.1": {"shop"}, "10.1.0.2": {"bank"}}
    for hosts in ((), ("10.1.0.1", "10.1.0.2"), ("10.1.0.1", "192.168.0.1")):
        tenants.see("prod", {"orders": hosts}, at)
        assert tenants.objection(of_settings(), "shop", ORDERS) is None
        assert tenants.objection(of_settings(), "bank", ORDERS) is not None


@pytest.mark.parametrize(
    ("hosts", "at"),
    [
        (("10.1.0.1", "10.1.0.2"), {"10.1.0.1": {"shop"}, "10.1.0.2": {"bank"}}),
        (("10.1.0.1", "192.168.0.1"), {"10.1.0.1": {"shop"}}),
        (("10.1.0.1",), {"10.1.0.1": {"shop", "bank"}}),
        (("192.168.0.1",), {}),
        ((), {}),
    ],
)
def test_members_in_several_places_or_in_none_prove_nothing(hosts: Sequence[str], at: dict[str, set[str]]) -> None:
    """In two namespaces, partly outside, at an address of two, all outside, or no members at all."""
    tenants = Tenants(followed=NAMESPACES)
    tenants.see("prod", {"orders": hosts}, at)
    for namespace in NAMESPACES:
        objection = tenants.objection(of_settings(), namespace, ORDERS)
        assert objection is not None
        assert "are not known to run" in objection


def test_a_group_of_the_same_name_elsewhere_is_another_one() -> None:
    """Members of one Kafka cluster prove nothing of another one."""
    tenants = seen(orders="shop")
    assert tenants.objection(of_settings(), "shop", ("test", "orders")) is not None


def test_a_claim_that_is_not_honoured_takes_nothing_from_the_settings() -> None:
    """The workload that the settings hand over for a group stays taken, whoever names the group elsewhere."""
    groups = {
        "billing": GroupSettings(mode="apply", target=TargetSettings(namespace="shop", name="consumer")),
    }
    documents = [claim("shop", target={"name": "consumer"}), claim("bank", "billing", age=9)]
    known = standing(of_settings(groups=groups), documents, seen(orders="shop").objection)
    assert followed(known) == {}
    assert known.invalid["shop", "shop-orders-0"].reason == "Conflicted"


GROUPS = ("orders", "billing", "audit")


Claimed = tuple[str, str, int, str, str | None]


def test_of_two_hundred_claims_across_namespaces_none_is_honoured() -> None:
    """Whoever else claims a group, it has the settings that it has with its owner's objects alone.

    Most examples have claims across, beside rightful ones: a generator that drew none would prove nothing.
    """
    tally = {"examples with claims across": 0, "claims across": 0, "rightful claims": 0, "honoured across": 0}

    @given(
        seats=st.dictionaries(st.sampled_from(GROUPS), st.sampled_from(NAMESPACES), min_size=1),
        grants=st.dictionaries(
            st.sampled_from(NAMESPACES), st.lists(st.sampled_from([*GROUPS, "o*", "?udit"]), max_size=2), max_size=2
        ),
        targets=st.dictionaries(st.sampled_from(GROUPS), st.sampled_from(NAMESPACES), max_size=1),
        claims=st.lists(
            st.tuples(
                st.sampled_from(NAMESPACES),
                st.sampled_from(GROUPS),
                st.integers(0, 9),
                st.sampled_from(["Off", "Recommend", "Apply"]),
                st.sampled_from([None, "consumer", "other"]),
            ),
            min_size=2,
            max_size=6,
            unique_by=lambda each: each[:3],
        ),
    )
    @settings(max_examples=CLAIMS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def claimed(
        seats: dict[str, str], grants: dict[str, list[str]], targets: dict[str, str], claims: list[Claimed]
    ) -> None:
        across, rightful, honoured = honoured_across(seats, grants, targets, claims)
        tally["examples with claims across"] += across > 0
        tally["claims across"] += across
        tally["rightful claims"] += rightful
        tally["honoured across"] += honoured

    claimed()
    print(tally)  # noqa: T201  # shown by `pytest -s`
    assert tally["claims across"] >= CLAIMS
    assert tally["examples with claims across"] >= CLAIMS / 3
    assert tally["rightful claims"] >= CLAIMS / 10
    assert tally["honoured across"] == 0


def honoured_across(
    seats: dict[str, str], grants: dict[str, list[str]], targets: dict[str, str], claims: list[Claimed]
) -> tuple[int, int, int]:
    """How many claims are across namespaces and how many are rightful, and how many of the former are honoured.

    The owner is found here by the promise: a grant, else the target of the settings, else where members run.
    """
    patterns = {"o*": {"orders"}, "?udit": {"audit"}}

    def owners(group: str) -> set[str]:
        granted = {own for own, given_to in grants.items() for each in given_to if group in patterns.get(each, {each})}
        if granted:
            return granted
        return {place for place in (targets.get(group) or seats.get(group),) if place and place not in grants}

    groups = {
        group: GroupSettings(target=TargetSettings(namespace=namespace, name="by-settings"))
        for group, namespace in targets.items()
    }
    chosen = of_settings(namespaces=grants, groups=groups)
    documents = [
        claim(namespace, group, age=age, mode=mode, **({} if target is None else {"target": {"name": target}}))
        for namespace, group, age, mode, target in claims
    ]
    rightful = [
        document for document in documents if document["metadata"]["namespace"] in owners(document["spec"]["groupId"])
    ]
    known = standing(chosen, documents, seen(**seats).objection)
    alone = standing(chosen, rightful, seen(**seats).objection)
    assert known.requests == alone.requests
    crossing = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in documents if each not in rightful}
    assert {place for place, invalid in known.invalid.items() if invalid.reason == "NotGranted"} == crossing
    assert all(known.invalid[place].group is None for place in crossing)
    honoured = [
        group for (_, group), request in known.requests.items() if request.scaler.namespace not in owners(group)
    ]
    for (_, group), request in known.requests.items():
        assert request.group.target is None or request.group.target.namespace in owners(group) | {targets.get(group)}
    return len(crossing), len(rightful), len(honoured)
