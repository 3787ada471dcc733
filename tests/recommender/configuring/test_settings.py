"""Settings: what may be written, where values come from, and the error for a wrong value."""

from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cost_model.physics.detected import DetectedPrice, ObservedGroup, ObservedStreams, ObservedWorkload
from cost_model.physics.profile import GroupProfile
from forecasting.units import MessagesPerSecond, Partitions, Replicas, Seconds
from recommender.configuring.settings import GroupSettings, Settings, SettingsError, load_settings
from recommender.configuring.settings_check import invalid_decision
from recommender.deciding.decision import DecisionSettings, priced

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def _load(tmp_path: Path, text: str, **env: str) -> Settings:
    path = tmp_path / "lagcast.yaml"
    path.write_text(text)
    return load_settings(path, env)


def test_nothing_needs_to_be_set(tmp_path: Path) -> None:
    """Without a file the service is local, its state lies below XDG_STATE_HOME, and the store is SQLite in it."""
    settings = load_settings(None, {"XDG_STATE_HOME": str(tmp_path)})
    assert (settings.host, settings.port) == ("127.0.0.1", 8686)
    assert settings.state_dir == tmp_path / "lagcast"
    assert settings.store_url == f"sqlite:///{tmp_path}/lagcast/decisions.sqlite"
    assert settings.decision == DecisionSettings()


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    """A variable overrides its key and leaves the keys beside it; other programs' variables are ignored."""
    settings = _load(
        tmp_path,
        "port: 9000\nhost: 0.0.0.0\ndecision: {target_utilization: 0.5}",
        LAGCAST_PORT="9001",
        LAGCAST_DECISION__MAX_LAG_SECONDS="5",
        LAGCAST_STATE_DIR=str(tmp_path),
        LAGCAST_JAVA_HOME="/opt/java",
    )
    assert (settings.port, settings.host, settings.state_dir) == (9001, "0.0.0.0", tmp_path)  # noqa: S104  # compared, not bound
    assert (settings.decision.target_utilization, settings.decision.max_lag_seconds) == (0.5, 5.0)


def test_a_groups_own_keys_win_over_the_shared_ones(tmp_path: Path) -> None:
    """`*` holds for every group, a group's own keys come before it, defaults come last."""
    settings = _load(
        tmp_path,
        "groups: {'*': {max_replicas: 10, protocol: cooperative}, orders: {max_replicas: 20, min_replicas: 3}}",
    )
    orders, other = settings.group("orders"), settings.group("billing")
    assert (orders.min_replicas, orders.max_replicas, orders.protocol) == (3, 20, "cooperative")
    assert (other.min_replicas, other.max_replicas, other.protocol) == (1, 10, "cooperative")
    assert _load(tmp_path, "").group("orders") == GroupSettings()


def test_a_profile_has_the_set_and_the_observed_values(tmp_path: Path) -> None:
    """A set capacity is a band of no width, and a set partition count takes precedence over the observed one."""
    group = "{capacity_messages_per_second_per_replica: 1000, partitions: 12, start_up_seconds: 45, max_replicas: 6}"
    profile = (
        _load(tmp_path, f"groups: {{orders: {group}}}")
        .group("orders")
        .profile("prod", "orders", ObservedGroup(partitions=Partitions(24)))
    )
    assert profile.capacity is not None
    assert (profile.capacity.p20, profile.capacity.p90, profile.capacity.source) == (1000.0, 1000.0, "configured")
    assert (profile.partitions, profile.replica_ceiling, profile.start_up_seconds) == (12, 6, 45.0)


def test_every_field_of_a_profile_can_be_set(tmp_path: Path) -> None:
    """Every field of a profile has its setting, except fields that are only learned."""
    learnt = {"cluster", "group", "capacity", "ungraceful_share", "partition_weights"}
    sources = {"configured", "detected"}
    broker = {"consumer_heartbeat_seconds", "sync_seconds"}
    settable = {field.name for field in fields(GroupProfile)} - learnt - broker - sources
    assert settable <= set(GroupSettings.model_fields)
    group = "{client: librdkafka, static_membership: true, poll_batch_seconds: 5, commit_mode: batch}"
    profile = (
        _load(tmp_path, f"groups: {{orders: {group}}}")
        .group("orders")
        .profile("prod", "orders", ObservedGroup(partitions=Partitions(24)))
    )
    assert (profile.client, profile.static_membership, profile.commit_mode) == ("librdkafka", True, "batch")
    assert profile.poll_batch_seconds == 5.0


SEEN = ObservedGroup(
    partitions=Partitions(24), protocol="cooperative", assignor="sticky", static_membership=True, client="librdkafka"
)


def test_what_kafka_tells_takes_the_place_of_defaults(tmp_path: Path) -> None:
    """Without a setting a profile is as the group was seen, and says so of each figure."""
    profile = _load(tmp_path, "").group("orders").profile("prod", "orders", SEEN)
    assert (profile.protocol, profile.assignor, profile.client) == ("cooperative", "sticky", "librdkafka")
    assert profile.static_membership
    names = ("protocol", "assignor", "client", "static_membership", "session_timeout_seconds")
    assert [profile.source_of(name) for name in names] == ["detected"] * 4 + ["assumed"]


@pytest.mark.parametrize("group", ["orders", "'*'"])
def test_a_setting_wins_over_what_kafka_tells(tmp_path: Path, group: str) -> None:
    """Also one that is the default, and one of all groups; what is set of neither is as it was seen."""
    text = f"groups: {{{group}: {{protocol: eager, static_membership: false}}, billing: {{client: java}}}}"
    profile = _load(tmp_path, text).group("orders").profile("prod", "orders", SEEN)
    assert (profile.protocol, profile.static_membership, profile.client) == ("eager", False, "librdkafka")
    assert profile.source_of("protocol") == profile.source_of("static_membership") == "configured"
    assert profile.source_of("client") == "detected"


WORKLOAD = ObservedWorkload(
    seen_at=datetime(2026, 1, 5, tzinfo=UTC),
    termination_grace_seconds=Seconds(120.0),
    min_replicas=Replicas(3),
    max_replicas=Replicas(9),
)


def test_what_the_cluster_tells_takes_the_place_of_defaults(tmp_path: Path) -> None:
    """Grace period and bounds of the workload, each as detected; without a workload they are assumed."""
    group = _load(tmp_path, "").group("orders")
    names = ("termination_grace_seconds", "min_replicas", "max_replicas")
    seen, unseen = group.profile("prod", "orders", SEEN, WORKLOAD), group.profile("prod", "orders", SEEN)
    assert [getattr(seen, name) for name in names] == [120.0, 3, 9]
    assert [getattr(unseen, name) for name in names] == [30.0, 1, None]
    assert {profile.source_of(name) for profile, name in product([seen], names)} == {"detected"}
    assert {profile.source_of(name) for profile, name in product([unseen], names)} == {"assumed"}


@pytest.mark.parametrize(
    ("text", "bounds", "sources"),
    [
        ("min_replicas: 2", (2, 9), ("configured", "detected")),
        ("max_replicas: 2", (2, 2), ("detected", "configured")),
        ("min_replicas: 12", (12, 12), ("configured", "detected")),
        ("max_replicas: null", (3, None), ("detected", "configured")),
    ],
)
def test_a_bound_of_the_cluster_gives_way_to_one_that_is_set(
    tmp_path: Path, text: str, bounds: tuple[int, int | None], sources: tuple[str, str]
) -> None:
    """The bounds of an HPA or a ScaledObject never cross those of the owner."""
    profile = _load(tmp_path, f"groups: {{orders: {{{text}}}}}").group("orders").profile("p", "orders", SEEN, WORKLOAD)
    assert (profile.min_replicas, profile.max_replicas) == bounds
    assert (profile.source_of("min_replicas"), profile.source_of("max_replicas")) == sources


def test_a_group_with_settings_of_its_own_keeps_those_of_all_groups(tmp_path: Path) -> None:
    """Its own win over those under `*`, and both over what was seen."""
    text = "groups: {'*': {client: java, protocol: eager}, orders: {protocol: kip848}}"
    profile = _load(tmp_path, text).group("orders").profile("prod", "orders", SEEN)
    assert (profile.protocol, profile.client, profile.static_membership) == ("kip848", "java", True)
    assert profile.configured == {"protocol", "client"}


def test_a_streams_application_can_be_set(tmp_path: Path) -> None:
    """Ten tasks on 24 partitions are ten replicas' work; fields that are not set have Kafka's defaults."""
    streams = "{tasks: 10, stateful: true, restore_bytes: 4.0e+9, restore_bytes_per_second: 1.0e+7}"
    profile = (
        _load(tmp_path, f"groups: {{orders: {{streams: {streams}}}}}")
        .group("orders")
        .profile("prod", "orders", ObservedGroup(partitions=Partitions(24)))
    )
    assert profile.streams is not None
    assert (profile.work_units, profile.rebalances_as, profile.streams.max_warmup_replicas) == (10, "cooperative", 2)


SHOP = replace(
    SEEN,
    client="java",
    streams=ObservedStreams(tasks=10, stateful=True, standbys=1, restore_bytes=4e9),
)


def test_a_streams_application_need_not_be_set(tmp_path: Path) -> None:
    """What its samples show is its profile; what they cannot show has a default, and each figure its source."""
    profile = _load(tmp_path, "").group("shop").profile("prod", "shop", SHOP)
    streams = profile.streams
    assert streams is not None
    assert (streams.tasks, streams.stateful, streams.standbys, streams.restore_bytes) == (10, True, 1, 4e9)
    assert (profile.work_units, profile.rebalances_as) == (10, "cooperative")
    assert streams.detected == {"tasks", "stateful", "standbys", "restore_bytes"}
    assert streams.source_of("restore_bytes_per_second") == streams.source_of("probing_seconds") == "assumed"


def test_a_restore_rate_that_was_measured_is_used_unless_one_is_set(tmp_path: Path) -> None:
    """Its source is the application itself, and not Kafka; a setting wins, also one that is slower."""
    assert SHOP.streams is not None
    shop = replace(SHOP, streams=replace(SHOP.streams, restore_bytes_per_second=6e7))
    found = {
        text: _load(tmp_path, text).group("shop").profile("prod", "shop", shop).streams
        for text in ("", "groups: {shop: {streams: {restore_bytes_per_second: 5.0e+7}}}")
    }
    rates = [
        (each.restore_bytes_per_second, each.source_of("restore_bytes_per_second")) for each in found.values() if each
    ]
    assert rates == [(6e7, "measured"), (5e7, "configured")]


def test_one_setting_of_a_streams_application_leaves_the_others_as_they_are_seen(tmp_path: Path) -> None:
    """A setting wins over what is seen, also one that is the default; the rest need not be repeated."""
    text = "groups: {shop: {streams: {restore_bytes_per_second: 5.0e+7, standbys: 0}}}"
    streams = _load(tmp_path, text).group("shop").profile("prod", "shop", SHOP).streams
    assert streams is not None
    assert (streams.restore_bytes_per_second, streams.standbys, streams.tasks) == (5e7, 0, 10)
    assert streams.configured == {"restore_bytes_per_second", "standbys"}
    assert streams.detected == {"tasks", "stateful", "restore_bytes"}


def test_a_streams_application_of_which_nothing_is_seen_is_the_slower_one(tmp_path: Path) -> None:
    """Set without figures, and read by a source that shows none: each partition a task, and each with state."""
    seen = ObservedGroup(partitions=Partitions(24))
    streams = _load(tmp_path, "groups: {shop: {streams: {}}}").group("shop").profile("prod", "shop", seen).streams
    assert streams is not None
    assert (streams.tasks, streams.stateful, streams.detected) == (24, True, frozenset())
    assert streams.source_of("stateful") == "assumed"


def test_an_unset_profile_is_the_default_one(tmp_path: Path) -> None:
    """An unset field has the profile's default, and the capacity is unknown rather than guessed."""
    profile = _load(tmp_path, "").group("orders").profile("prod", "orders", ObservedGroup(partitions=Partitions(24)))
    unset = {field.name: field.default for field in fields(GroupProfile) if field.name != "partitions"}
    assert {name: getattr(profile, name) for name in unset} == unset | {
        "cluster": "prod",
        "group": "orders",
        "capacity": None,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prt: 3", "unknown key 'prt'; the nearest known one is 'port'"),
        (
            "decision: {target_utilisation: 0.3}",
            "unknown key 'decision.target_utilisation'; the nearest known one is 'decision.target_utilization'",
        ),
        ("decision: {head_room: 0.9}", "unknown key 'decision.head_room'; known there: currency, cycle_seconds, "),
        ("groups: {orders: {protocl: eager}}", "unknown key 'groups.orders.protocl'; the nearest known one is"),
        ("groups: {o: {target: {nme: x, namespace: y, name: z}}}", "'groups.o.target.name'"),
        ("decision: {target_utilization: 85}", "target_utilization is 85.0; it has to be from 0.01 to 1"),
        (
            "decision: {max_moves_per_hour: 1" + 400 * "0" + "}",
            "max_moves_per_hour is 1.79769e+308; it has to be",
        ),
        ("decision: {planning_quantile: 0.91}", "planning_quantile is 0.91; it has to be one of 0.05, 0.1"),
        ("decision: {max_lag_seconds: .nan}", "max_lag_seconds is nan"),
        ("decision: {valid_for_seconds: 30}", "valid_for_seconds is 30.0, shorter than cycle_seconds 60"),
        (
            "decision: {target_utilization: much}",
            "'decision.target_utilization' is 'much'; input should be a valid number",
        ),
        (
            "groups: {orders: {min_replicas: 5, max_replicas: 3}}",
            "groups.orders: min_replicas is 5, above max_replicas 3",
        ),
        ("groups: {'*': {max_replicas: 3}, o: {min_replicas: 5}}", "groups.o: min_replicas is 5, above max_replicas 3"),
        (
            "groups: {o: {protocol: eagr}}",
            "'groups.o.protocol' is 'eagr'; input should be 'eager', 'cooperative' or 'kip848'",
        ),
        ("groups: {o: {target: {name: x}}}", "'groups.o.target.namespace' is missing"),
        ("groups: {'*': {target: {name: x, namespace: y}}}", "would have every group scale the same workload"),
        (
            "groups: {'*': {mode: apply}, a: {target: {name: x, namespace: y}}, b: {target: {name: x, namespace: y}}}",
            "groups.b.target is that of group 'a' too, and both have the mode apply",
        ),
        ("store_url: postgresql://lagcast:secret@db/lagcast", "LAGCAST_STORE_URL"),
        ("groups: {o: {streams: {standbys: -1}}}", "'groups.o.streams.standbys' is -1"),
        ("groups: {o: {streams: {tasks: 0, stateful: no}}}", "groups.o.streams: 0 tasks with 2 warm-ups"),
        (
            "groups: {o: {streams: {task: 1, tasks: 1, stateful: no}}}",
            "the nearest known one is 'groups.o.streams.tasks'",
        ),
        (
            "groups: {o: {streams: {restore_bytes_per_second: 0}}}",
            "'groups.o.streams.restore_bytes_per_second' is 0",
        ),
        ("store_url: nowhere", "sqlite:////var"),
        (
            "decision: {windows: [{schedule: 0 22 * * 5, duration_seconds: -1}]}",
            "decision.windows.0: duration_seconds is -1; it has to be above 0",
        ),
        (
            "decision: {windows: [{schedule: 0 22 * * 5, duration_seconds: 60, zone: UTC}]}",
            "unknown key 'decision.windows.0.zone'; the nearest known one is 'decision.windows.0.time_zone'",
        ),
        ("port: 99999", "'port' is 99999"),
        ("- a", "settings are `key: value` lines"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    """The sentence names the file, the key, its value, and what is expected instead; secrets are not repeated."""
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, text)
    sentence = str(caught.value)
    assert sentence.startswith(f"{tmp_path / 'lagcast.yaml'}: ")
    assert message in sentence
    assert "\n" not in sentence
    assert "secret" not in sentence


def test_an_error_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    """The error for a variable does not name the file."""
    with pytest.raises(SettingsError, match=r"^the environment: 'port' is 'many'"):
        _load(tmp_path, "host: 127.0.0.1", LAGCAST_PORT="many")
    with pytest.raises(SettingsError, match=r'^the environment: .*"groups"'):
        _load(tmp_path, "", LAGCAST_GROUPS="{")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error names the file and states that it does not exist."""
    with pytest.raises(SettingsError, match=r"nowhere\.yaml: cannot be read \(No such file or directory\)"):
        load_settings(tmp_path / "nowhere.yaml", {})


def test_every_number_of_a_decision_has_a_limit() -> None:
    """Every number has a limit: minus one is refused for each, and the defaults are within every limit."""
    assert invalid_decision(DecisionSettings()) is None
    words = {"policy", "currency", "fallback_policy", "windows"}
    numbers = [field.name for field in fields(DecisionSettings) if field.name not in words]
    assert len(numbers) >= 15
    for name in numbers:
        wrong: dict[str, Any] = {name: -1}
        trouble = invalid_decision(replace(DecisionSettings(), **wrong))
        assert trouble is not None, name
        assert trouble.startswith(f"{name} is -1"), name


def test_without_a_price_of_a_replica_hour_costs_are_in_pod_hours(tmp_path: Path) -> None:
    """No money is invented: a replica-hour is one pod-hour; with a price it is money, USD unless another is named."""
    capacity = MessagesPerSecond(1000.0)
    for text, unit, price in (
        ("{}", "pod-hours", 1.0),
        ("{price_per_replica_hour: 0.04}", "USD", 0.04),
        ("{price_per_replica_hour: 0.04, currency: EUR}", "EUR", 0.04),
    ):
        prices = _load(tmp_path, f"decision: {text}").decision.prices(capacity)
        assert (prices.currency, prices.price_per_replica_hour) == (unit, price)


def test_a_currency_alone_names_the_money_of_prices_that_are_detected(tmp_path: Path) -> None:
    """Until there is one, costs are in pod-hours."""
    decision = _load(tmp_path, "decision: {currency: EUR}").decision
    assert decision.unit_of_cost == "pod-hours"
    assert priced(decision, DetectedPrice(price_per_replica_hour=0.03, seen_at=NOON)).unit_of_cost == "EUR"


def test_a_currency_beside_prices_in_pod_hours_is_refused(tmp_path: Path) -> None:
    """A late message at so many pod-hours under the name of a money would be wrong; the sentence has both ways out."""
    message = (
        "price_per_late_message is set, currency is 'EUR', and price_per_replica_hour is not set; set it too, or leave "
        "out currency for a price_per_late_message in pod-hours"
    )
    with pytest.raises(SettingsError, match=message):
        _load(tmp_path, "decision: {currency: EUR, price_per_late_message: 0.001}")


def test_a_detected_price_changes_the_unit_of_every_price_and_nothing_else() -> None:
    """Prices beside that of a replica-hour were in pod-hours: each costs so many replica-hours as before."""
    settings = DecisionSettings(price_per_late_message=0.002, price_per_restored_gigabyte=0.5, max_lag_seconds=7.0)
    capacity = MessagesPerSecond(1000.0)
    before, after = (
        settings.prices(capacity),
        priced(settings, DetectedPrice(price_per_replica_hour=0.03, seen_at=NOON)),
    )
    assert after.max_lag_seconds == 7.0
    for name, value in asdict(after.prices(capacity)).items():
        was = getattr(before, name)
        assert value == ("USD" if name == "currency" else pytest.approx(0.03 * was)), name


def test_a_price_that_is_set_wins_over_one_that_is_detected() -> None:
    """The owner knows what he pays."""
    settings = DecisionSettings(price_per_replica_hour=0.04)
    assert priced(settings, DetectedPrice(price_per_replica_hour=0.03, seen_at=NOON)) is settings
    assert priced(DecisionSettings(), None) == DecisionSettings()


def test_every_setting_has_a_description() -> None:
    """Each setting has its sentence, from which the settings page is generated."""
    schema = Settings.model_json_schema()
    names = ("DecisionSettings", "GroupSettings", "HolidaySettings", "StreamsSettings", "TargetSettings", "Window")
    parts = [schema, *(schema["$defs"][name] for name in names)]
    undescribed = [name for part in parts for name, option in part["properties"].items() if "description" not in option]
    assert undescribed == []
