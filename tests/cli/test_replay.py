"""`lagcast replay`: it reads the user's own load and prints a league table."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.replay import parse_rivals

Lagcast = Callable[..., tuple[int, str, str]]


def _write_trace(path: Path, minutes: int) -> Path:
    """A load that doubles in the middle, one row a minute."""
    first = datetime(2026, 5, 4, tzinfo=UTC)
    rates = [1000.0 if minute < minutes / 2 else 2000.0 for minute in range(minutes)]
    rows = [f"{(first + timedelta(minutes=minute)).isoformat()},{rate}" for minute, rate in enumerate(rates)]
    path.write_text("\n".join(["timestamp,messages_per_second", *rows, ""]))
    return path


@pytest.fixture
def hour(tmp_path: Path) -> Path:
    """A trace of one hour: too short for a history, so no Spark is started."""
    return _write_trace(tmp_path / "hour.csv", 60)


@pytest.mark.slow
def test_a_short_trace_is_judged_whole(lagcast: Lagcast, hour: Path) -> None:
    """Every policy has a row, the bound is last, and stderr names the judged span and what lagcast lost."""
    code, out, err = lagcast("replay", "--trace", hour, "--against", "fixed,keda", "--partitions", 6)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["Policy", "Fixed", "KEDA", "lagcast", "Perfect"]
    assert "the last 0.0417 are judged, nothing before it is known" in err
    assert err.splitlines()[-1].startswith("lagcast ")
    assert "kept for the page of `lagcast serve` and `lagcast up`: /replays/" in err
    assert "Spark" not in err


@pytest.mark.slow
def test_the_same_seed_gives_the_same_document(lagcast: Lagcast, hour: Path) -> None:
    """The JSON document names what was judged, and a second run gives the same bytes."""
    command = ("replay", "--trace", hour, "--against", "fixed", "--protocol", "cooperative", "--seed", 3, "-o", "json")
    code, out, _ = lagcast(*command)
    document = json.loads(out)
    assert (code, document["trace"], document["seed"], document["protocol"]) == (0, "hour", 3, "cooperative")
    assert [policy["policy"] for policy in document["policies"]] == ["fixed", "lagcast", "hindsight"]
    assert lagcast(*command)[1] == out


@pytest.mark.slow
def test_the_first_table_is_charged_alike(lagcast: Lagcast, hour: Path) -> None:
    """In CSV each cost is the sum of its items, and a fixed count is never moved."""
    words = ("replay", "--trace", hour, "--against", "fixed", "-o", "csv")
    code, out, err = lagcast(*words, "--fail-if", "moves < 0")
    assert (code, "--fail-if" in err) == (0, False)
    assert lagcast(*words, "--fail-if", "saving < 1e9")[0] == 3
    records = list(csv.DictReader(io.StringIO(out)))
    for record in records:
        items = sum(float(record[f"cost_{item}"]) for item in ("pods", "late", "duplicates"))
        assert items == pytest.approx(float(record["cost"]))
    assert records[0]["moves"] == "0"


OWN = """
apiVersion: autoscaling/v2beta1
kind: HorizontalPodAutoscaler
metadata: {name: game, namespace: games}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: game}
  maxReplicas: 4
  metrics:
    - {type: Pods, pods: {metricName: consumer_lag_frames, targetAverageValue: 100000}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: lazy, namespace: shop}
spec:
  scaleTargetRef: {name: lazy}
  minReplicaCount: 1
  triggers: [{type: kafka, metadata: {consumerGroup: lazy, lagThreshold: "50"}}]
---
apiVersion: v1
kind: Service
metadata: {name: lazy}
spec: {ports: [{port: 80}]}
"""


@pytest.mark.slow
def test_b3_the_users_own_autoscalers_are_judged_beside_the_others(
    lagcast: Lagcast, hour: Path, tmp_path: Path
) -> None:
    """An HPA of a removed version and a ScaledObject have a row each, and stderr states how their fields were read."""
    manifest = tmp_path / "own.yaml"
    manifest.write_text(OWN)
    arguments = ("--against", "fixed", "--partitions", 6, "--manifest", manifest, "-o", "json")
    code, out, err = lagcast("replay", "--trace", hour, *arguments)
    assert code == 0
    named = [policy["policy"] for policy in json.loads(out)["policies"]]
    assert named == [
        "fixed",
        "HorizontalPodAutoscaler games/game",
        "ScaledObject shop/lazy",
        "lagcast",
        "hindsight",
    ]
    assert "games/game: its metric consumer_lag_frames is taken for the group's lag in messages, 100,000" in err
    assert "shop/lazy: maxReplicaCount is 100: it is replayed with 6, as many as there are partitions" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Service\nspec: {}", "holds neither a HorizontalPodAutoscaler nor a ScaledObject"),
        ("a: [", "this is not YAML"),
        ("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {}", "does not match autoscaling/v2"),
        ("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nspec: {triggers: []}", "it has no trigger of type kafka"),
    ],
)
def test_a_manifest_that_cannot_be_judged_is_one_sentence(
    text: str, message: str, lagcast: Lagcast, hour: Path, tmp_path: Path
) -> None:
    """The command exits 2 with one line, and prints nothing to stdout."""
    manifest = tmp_path / "own.yaml"
    manifest.write_text(text)
    code, out, err = lagcast("replay", "--trace", hour, "--manifest", manifest)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has nothing"),
        ("timestamp,messages_per_second\n2026-05-04T00:00:00Z,1\n", "at least 2"),
        ("timestamp,messages_per_second\n2026-05-04T00:00:00Z,1\n2026-05-04T00:01:00Z,-5\n", "-5"),
        ("time,rate\n1,2\n", "messages_per_second"),
    ],
)
def test_a_bad_trace_is_one_sentence(text: str, message: str, lagcast: Lagcast, tmp_path: Path) -> None:
    """For an empty, short, negative or foreign trace the command exits 2 with one line that names the file."""
    file = tmp_path / "bad.csv"
    file.write_text(text)
    code, out, err = lagcast("replay", "--trace", file)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "bad.csv" in err
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "fixed,hpaa"), "hpaa is no rival; there are fixed,hpa,hpa-behavior,keda,useful-counts"),
        (("--against", " , "), "nothing is no rival"),
        (("--partitions", "0"), "--partitions"),
        (("--price-per-replica-hour", "0"), "--price-per-replica-hour"),
    ],
)
def test_bad_options_are_one_sentence(arguments: tuple[str, ...], message: str, lagcast: Lagcast, hour: Path) -> None:
    """For an unknown rival, no partitions or no price the command exits 2 and names the option."""
    code, out, err = lagcast("replay", "--trace", hour, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


def test_rivals_keep_the_order_given_without_duplicates() -> None:
    """Rivals are played in the order given, and a rival that is given twice is played once."""
    assert parse_rivals(" keda,fixed, keda") == ("keda", "fixed")


@pytest.mark.spark
@pytest.mark.slow
def test_a_longer_trace_is_read_by_the_features_job(lagcast_process: Lagcast, tmp_path: Path) -> None:
    """The last quarter of a day is judged, and the two days before it come to lagcast through samples and Spark."""
    trace = _write_trace(tmp_path / "longer.csv", 2 * 1440 + 360)
    code, out, err = lagcast_process("replay", "--trace", trace, "--against", "fixed", "--days", 0.25, "-o", "json")
    assert code == 0
    assert json.loads(out)["judged_from"] == "2026-05-06T00:00:00+00:00"
    assert "the last 0.25 are judged, the 2 days before them are history" in err
    assert "276,504 offset samples" in err  # 24 partitions x (2 x 5,760 + 1) instants
