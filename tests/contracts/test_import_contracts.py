"""Each import contract fails when it is broken on purpose, which shows that it is checked."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONFIGURATION = PROJECT["tool"]["importlinter"]
PACKAGES: list[str] = CONFIGURATION["root_packages"]
CONTRACTS: list[str] = [contract["name"] for contract in CONFIGURATION["contracts"]]
LAYERS: list[str] = CONFIGURATION["contracts"][0]["layers"]
# Folders of Python that are no packages: programs of the repository and its tests.
NO_PACKAGES = {"notebooks", "scripts", "tests"}

# The beginning of a contract's name, a module, and an import that the contract forbids there.
BREAKING = (
    ("One direction:", "forecasting/scores.py", "import cost_model.pricing.price"),
    ("One direction:", "cli/logs.py", "import benchmarks.command"),
    ("One direction:", "recommender/deciding/facts.py", "import collector.sample"),
    ("One direction:", "replay/trace.py", "import manifests.objects"),
    ("The collector and the features job stand beside", "collector/sinks.py", "import forecasting.blend"),
    ("The product needs no test", "api/app.py", "import tests.live.harness.clients"),
    ("Benchmarks have an order of their own", "benchmarks/forecasts/run.py", "import benchmarks.decisions.run"),
    ("One direction within the cost model", "cost_model/physics/capacity.py", "import cost_model.pricing.price"),
    ("The core is pure", "cost_model/pricing/price.py", "import time"),
    ("One direction within the recommender", "recommender/deciding/pace.py", "import recommender.following.grading"),
    ("A decision reads downwards", "recommender/deciding/guards.py", "import recommender.deciding.compose"),
    ("Deciding and following neither log", "recommender/following/session.py", "import structlog"),
    ("The core is pure", "manifests/objects.py", "import os"),
    ("The core is pure", "api/pictures/picture.py", "import time"),
    ("Spark lives in the features job alone", "recommender/deciding/facts.py", "import pyspark"),
    ("The Kafka client lives in the collector alone", "replay/trace.py", "import confluent_kafka"),
    ("The Kubernetes client lives in the executor alone", "api/app.py", "import kubernetes"),
    ("The executor imports nothing of lagcast but the wire", "executor/plan.py", "import api.keda.protocol"),
    ("The wire imports nothing of lagcast", "api/schemas.py", "import forecasting.units"),
    ("The advising packages do not import the executor", "recommender/run.py", "import executor.plan"),
    ("The judge shares no physics with the judged", "replay/world.py", "import cost_model.physics.capacity"),
    (
        "Adapters of the recommender do not import each other",
        "recommender/adapters/metrics.py",
        "import recommender.adapters.store_sql",
    ),
)


def broken_by(tree: Path) -> str:
    """The contracts that a tree breaks according to lint-imports, in one line, empty if it keeps them all."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    found = " ".join(done.stdout.partition("Broken contracts")[2].split())
    assert bool(found) == (done.returncode != 0), done.stdout + done.stderr
    return found


def unplaced(tree: Path, places: Collection[str]) -> set[str]:
    """Folders with Python in them that are in none of the places."""
    return {path.parent.name for path in tree.glob("*/*.py")} - set(places)


@pytest.fixture(name="tree")
def tree_fixture(tmp_path: Path) -> Path:
    """A copy of all packages and of the contracts."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_has_a_way_to_break_it() -> None:
    """A contract in pyproject.toml that no test here breaks fails this one."""
    begins = tuple(begin for begin, _, _ in BREAKING)
    assert [begin for begin in begins if not any(name.startswith(begin) for name in CONTRACTS)] == []
    assert [name for name in CONTRACTS if not name.startswith(begins)] == []


def test_every_package_has_its_place_among_the_layers(tmp_path: Path) -> None:
    """A new folder with Python in it needs a place among the layers, whether it is a package or not."""
    layers = {name.strip() for layer in LAYERS for name in layer.split("|")}
    assert layers == set(PACKAGES)
    assert unplaced(ROOT, layers) == NO_PACKAGES
    (tmp_path / "newcomer").mkdir()
    (tmp_path / "newcomer" / "anything.py").touch()
    assert unplaced(tmp_path, layers) == {"newcomer"}


def test_every_folder_of_python_is_checked_and_only_the_product_is_shipped() -> None:
    """Types are checked everywhere, benchmarks are not in the wheel, and doctests run in all of the product."""
    product = set(PACKAGES) - {"benchmarks"}
    assert set(PROJECT["tool"]["mypy"]["packages"]) == set(PACKAGES) | NO_PACKAGES
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == product
    assert set(PROJECT["tool"]["pytest"]["ini_options"]["testpaths"]) == product | {"tests"}


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "module", "forbidden"), BREAKING, ids=str)
def test_a_broken_contract_is_reported(begin: str, module: str, forbidden: str, tree: Path) -> None:
    """With one forbidden import in a copy of the tree, lint-imports fails and names the contract."""
    path = tree / module
    path.write_text(f"{path.read_text()}\n{forbidden}\n")
    name = next(name for name in CONTRACTS if name.startswith(begin))
    assert " ".join(name.split()) in broken_by(tree)


@pytest.mark.slow
def test_a_new_benchmark_needs_a_place(tree: Path) -> None:
    """A package of benchmarks that the order does not name breaks it."""
    (tree / "benchmarks" / "newcomer").mkdir()
    (tree / "benchmarks" / "newcomer" / "__init__.py").touch()
    assert "Benchmarks have an order of their own, in which each has its place" in broken_by(tree)
