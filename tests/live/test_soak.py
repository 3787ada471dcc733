"""P23, P17, P3, P20: the short form of the soak: every fault of the long one, once, beside one `up` and one `land`."""

from pathlib import Path

import pytest

from benchmarks.soak.faults import FAULTS
from benchmarks.soak.page import bars_of
from benchmarks.soak.run import soaked_briefly

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.spark, pytest.mark.slow, pytest.mark.alone]

SEED, GROUPS = 1, 12


def test_fifteen_faults_in_a_row_end_no_process_and_lose_no_decision(jars: Path, tools_for_postgres: None) -> None:
    """Every bar of the soak but those of memory, for which it is too short."""
    del jars, tools_for_postgres
    document = soaked_briefly(seed=SEED, groups=GROUPS)
    assert sorted(fault["name"] for fault in document["faults"]) == sorted(fault.name for fault in FAULTS)
    assert all(fault["advised"] >= GROUPS - len(document["faults"]) for fault in document["faults"])
    missed = [bar for bar in bars_of(document) if not (bar.is_kept or bar.what.startswith("memory"))]
    told = [f"{fault['name']}: {fault['cycles']} cycles {fault['failure']}" for fault in document["faults"]]
    told += [f"{name}: {count}" for name, count in document.items() if name.endswith(("_not_kept", "_not_published"))]
    assert missed == [], "\n".join([*told, *document["not_over"], *document["tracebacks"]])
