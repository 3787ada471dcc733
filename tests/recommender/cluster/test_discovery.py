"""The workload that runs a group is named only if every member agrees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.cluster.discovery import Found, NotFound, Pod, Workload, discover


def workload(name: str, kind: str = "Deployment") -> Workload:
    return Workload(namespace="shop", kind=kind, name=name, api_version="apps/v1", has_scale=kind != "DaemonSet")


def pod(name: str, address: str, owner: Workload | None) -> Pod:
    return Pod(namespace="shop", name=name, addresses=(address,), workload=owner)


ORDERS, BILLING = workload("orders"), workload("billing")
PODS = [
    pod("orders-1", "10.0.0.1", ORDERS),
    pod("orders-2", "10.0.0.2", ORDERS),
    pod("orders-3", "10.0.0.3", ORDERS),
    pod("billing-1", "10.0.0.4", BILLING),
    pod("bare", "10.0.0.5", None),
    pod("agent-1", "10.0.0.6", workload("agent", "DaemonSet")),
    # On the network of their node:
    pod("orders-9", "192.168.0.1", ORDERS),
    pod("billing-9", "192.168.0.1", BILLING),
]


def one(*hosts: str) -> Found | NotFound:
    """The answer for a group with members at these addresses."""
    return discover({"orders": hosts}, PODS)["orders"]


def test_members_and_pods_are_counted_separately() -> None:
    """A pod may have several members: three members are in two of the Deployment's four pods."""
    assert one("10.0.0.1", "10.0.0.1", "10.0.0.3") == Found(workload=ORDERS, members=3, pods=2, replicas=4)


@pytest.mark.parametrize(
    ("hosts", "reason", "sentence"),
    [
        ((), "no_target", "The group has no members now; retry while its consumers run."),
        (
            ("8.8.8.8", "8.8.4.4"),
            "no_target",
            "No pod of these namespaces has a member's address (8.8.4.4, 8.8.8.8).",
        ),
        (("10.0.0.5",), "no_target", "The members' pods have no owner that could be scaled."),
        (
            ("10.0.0.6",),
            "no_target",
            "DaemonSet shop/agent cannot be a target: apps/v1 gives its kind no /scale.",
        ),
        (
            ("10.0.0.1", "10.0.0.2", "10.0.0.4"),
            "ambiguous_target",
            (
                "Members are 1 in pods of Deployment shop/billing and 2 in pods of Deployment shop/orders; "
                "name the target yourself."
            ),
        ),
        (
            ("10.0.0.1", "8.8.8.8"),
            "ambiguous_target",
            "Members are 1 in pods of Deployment shop/orders, and 1 elsewhere (8.8.8.8); name the target yourself.",
        ),
        (
            ("10.0.0.1", "192.168.0.1"),
            "ambiguous_target",
            "Pods of several workloads share a member's address (192.168.0.1); name the target yourself.",
        ),
    ],
)
def test_addresses_without_one_workload_get_a_sentence(hosts: tuple[str, ...], reason: str, sentence: str) -> None:
    """No member, unknown addresses, pods without an owner, owners that cannot be scaled, or several owners."""
    assert one(*hosts) == NotFound(reason=reason, sentence=sentence, members=len(hosts))  # type: ignore[arg-type]  # one of two


def test_one_workload_of_two_groups_is_named_for_both() -> None:
    """It may run both, or be a proxy before them; that cannot be known here."""
    answers = discover({"a": ["10.0.0.1"], "b": ["10.0.0.2"], "c": ["10.0.0.4"]}, PODS)
    shared = {group: answer.shared_with for group, answer in answers.items() if isinstance(answer, Found)}
    assert shared == {"a": ("b",), "b": ("a",), "c": ()}


ADDRESSES = [address for each in PODS for address in each.addresses] + ["8.8.8.8"]


@given(st.lists(st.sampled_from(ADDRESSES), max_size=6))
def test_found_means_that_every_member_can_only_be_there(hosts: list[str]) -> None:
    """For each member, every pod at its address is the workload's, and the order of members does not matter."""
    answer = one(*hosts)
    assert answer == one(*reversed(hosts))
    if isinstance(answer, Found):
        at = [{each.workload for each in PODS if host in each.addresses} for host in hosts]
        assert hosts
        assert all(owners == {answer.workload} for owners in at)
