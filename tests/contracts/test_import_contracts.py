"""Each import contract is seen to fail when it is broken on purpose: a fence that cannot fall keeps nobody out."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PACKAGES: list[str] = CONFIGURATION["root_packages"]
CONTRACTS: list[str] = [contract["name"] for contract in CONFIGURATION["contracts"]]

# By the beginning of the contract's name: a module, and an import that it must not have.
BREAKING = {
    "One direction:": ("forecasting/scores.py", "import cost_model.pricing.price"),
    "One direction within the cost model": (
        "cost_model/physics/capacity.py",
        "import cost_model.pricing.price",
    ),
    "The collector and the features job stand beside": ("collector/sinks.py", "import forecasting.history"),
    "The core is pure": ("cost_model/pricing/price.py", "import time"),
    "A decision reads downwards": ("recommender/guards.py", "import recommender.compose"),
    "Spark lives in the features job alone": ("recommender/facts.py", "import pyspark"),
    "The Kafka client lives in the collector alone": ("replay/trace.py", "import confluent_kafka"),
    "The Kubernetes client lives in the executor alone": ("api/app.py", "import kubernetes"),
    "The executor knows nothing of ours but the wire": ("executor/plan.py", "import forecasting.units"),
    "The wire knows nothing of ours": ("api/schemas.py", "import forecasting.units"),
    "Whoever advises never sees whoever acts": ("recommender/run.py", "import executor.plan"),
    "The judge shares no physics with the judged": ("replay/world.py", "import cost_model.physics.capacity"),
    "Adapters of the recommender do not know each other": (
        "recommender/adapters/metrics.py",
        "import recommender.adapters.store_sql",
    ),
}


def test_every_contract_has_a_way_to_break_it() -> None:
    """A contract that is added to pyproject.toml has to be broken here too."""
    assert [begin for begin in BREAKING if not any(name.startswith(begin) for name in CONTRACTS)] == []
    assert [name for name in CONTRACTS if not name.startswith(tuple(BREAKING))] == []


def test_every_package_is_in_the_first_contract_or_stands_beside() -> None:
    """A new folder with Python in it has to take its place."""
    found = {path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"}
    assert found == set(PACKAGES)
    layers = {name.strip() for layer in CONFIGURATION["contracts"][0]["layers"] for name in layer.split(":")}
    assert found - layers == {"collector", "spark_features"}


@pytest.mark.slow
@pytest.mark.parametrize("begin", BREAKING)
def test_a_broken_contract_is_reported(begin: str, tmp_path: Path) -> None:
    """One forbidden import in a copy of the tree, and lint-imports names the contract and fails."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module, forbidden = BREAKING[begin]
    path = tmp_path / module
    path.write_text(f"{path.read_text()}\n{forbidden}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    name = next(name for name in CONTRACTS if name.startswith(begin))
    broken = done.stdout.replace("\n", " ").partition("Broken contracts")[2]
    assert done.returncode != 0
    assert " ".join(name.split()) in " ".join(broken.split())
