"""The JSON of played runs: their settings, every run, a summary, and digests of the code that they depend on."""

import ast
import json
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, fields
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.decisions.ours import LAGCAST
from benchmarks.decisions.standings import ScenarioSummary, overall_of, summaries_of, variant_ratios, with_pauses
from benchmarks.decisions.tournament import POLICY_NAMES, VARIANT_SEED, VARIANT_WORLDS, Run
from benchmarks.decisions.worlds import ALL_WORLDS
from replay.contest import PRICED

Document = dict[str, Any]
# Trace, world and seed.
RunKey = tuple[str, str, int]

ROOT = Path(__file__).parents[2]
# The loads that target utilization, prices and pauses were chosen on: reported, but apart from the others.
TUNED_ON = ("production-app-noisy-bursts", "nasa-http-july-flash-crowd", "orders")
# Plant, loads and prices, and all policies: everything that this file imports.
TOURNAMENT = "benchmarks/decisions/tournament.py"
# Imported for lagcast alone, and for rivals alone: a change of one of them does not repeat the runs of the other.
FOR_LAGCAST = ("benchmarks/decisions/ours.py", "replay/policies/lagcast.py", "forecasting/history.py")
FOR_RIVALS = ("replay/policies/catalogue.py",)
COLUMNS = tuple(field.name for field in fields(Run))
# Digits of stored figures: a thousandth of the difference between seeds, and half of the length of floats.
DIGITS = 7


def text_of(runs: list[Run], published: list[Run]) -> str:
    """The document of a tournament as JSON, a run a line."""
    about: Document = {
        "tuned_on": list(TUNED_ON),
        "variants_played_in": {"worlds": list(VARIANT_WORLDS), "seed": VARIANT_SEED},
        "summary": _summary(runs),
    }
    return written({"runs": runs, "whitepaper_runs": published}, about)


def written(runs: Mapping[str, Sequence[Run]], about: Document, *, root: str = TOURNAMENT) -> str:
    """Lists of runs as JSON, a run a line, with a description of each; `root` is the file that plays them."""
    whole = {**_how([run for played in runs.values() for run in played], root), **about, "columns": COLUMNS}
    parts = [f'"{name}": {json.dumps(_rounded(part))}' for name, part in whole.items()]
    for name, played in runs.items():
        rows = ",\n".join(json.dumps(_rounded(astuple(run))) for run in played)
        parts.append(f'"{name}": [\n{rows}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def runs_in(document: Document, name: str) -> list[Run]:
    """The list of runs with this name in a document."""
    return [Run(**dict(zip(document["columns"], row, strict=True))) for row in document[name]]


def runs_kept(out: Path, names: Iterable[str], *, root: str = TOURNAMENT) -> dict[RunKey, list[Run]]:
    """The runs of an earlier document that still hold: lagcast's of the same code, the others' of the same judge."""
    if not out.exists():
        return {}
    document = json.loads(out.read_text())
    same_code, same_judge = document["code"] == digest_of_lagcast(root), document["judge"] == digest_of_judge(root)
    kept: dict[RunKey, list[Run]] = {}
    for run in (run for name in names for run in runs_in(document, name)):
        if same_code if run.policy.startswith(LAGCAST) else same_judge:
            kept.setdefault((run.trace, run.world, run.seed), []).append(run)
    return kept


def digest_of_lagcast(root: str = TOURNAMENT) -> str:
    """The digest of all code that lagcast's runs depend on, the plant included."""
    return _digest_of(imported_by(root, without=FOR_RIVALS))


def digest_of_judge(root: str = TOURNAMENT) -> str:
    """The digest of the code that rivals and hindsight depend on: the plant, the rivals, the loads and the prices."""
    return _digest_of(imported_by(root, without=FOR_LAGCAST))


def imported_by(path: str, *, without: Collection[str] = ()) -> set[str]:
    """The file and all project files that it imports, directly or not; imports of files left out are not followed."""
    found: set[str] = set()
    coming = [path]
    while coming:
        path = coming.pop()
        if path in found or path in without:
            continue
        found.add(path)
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            modules = []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            places = (name for module in modules for name in _files_of(module))
            coming += [place for place in places if (ROOT / place).is_file()]
    return found


def _files_of(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


def _digest_of(paths: Iterable[str]) -> str:
    """The digest of these files in 16 digits: all figures of one document are of the same code."""
    digest = sha256()
    for path in sorted(paths):
        digest.update(path.encode() + (ROOT / path).read_bytes())
    return digest.hexdigest()[:16]


def _rounded(part: Any) -> Any:  # noqa: ANN401  # whatever JSON holds
    if isinstance(part, float):
        return float(f"{part:.{DIGITS}g}")
    if isinstance(part, dict):
        return {name: _rounded(inner) for name, inner in part.items()}
    return [_rounded(inner) for inner in part] if isinstance(part, list | tuple) else part


def _how(runs: Sequence[Run], root: str) -> Document:
    """The settings of the runs."""
    played = {run.world for run in runs}
    names = ("lagcast", "numpy", "numba", "scipy")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "code": digest_of_lagcast(root),
        "judge": digest_of_judge(root),
        "settings": asdict(PRICED),
        "worlds": {
            name: {"sentence": kind.sentence, "pauses": kind.pauses, **asdict(kind.world)}
            for name, kind in ALL_WORLDS.items()
            if name in played
        },
    }


def _summary(runs: Sequence[Run]) -> Document:
    """Scenarios, overall figures with and without the loads that were tuned on, losses, and variants of lagcast."""
    scenarios = summaries_of(runs)
    unseen = [scenario for scenario in scenarios if scenario.trace not in TUNED_ON]
    variants = [policy for policy in POLICY_NAMES if policy.startswith(f"{LAGCAST}-")]
    return {
        "scenarios": [_figures_of(scenario) | {"tuned_on": scenario.trace in TUNED_ON} for scenario in scenarios],
        "overall": {"without_tuned_on": _overall(unseen), "with_tuned_on": _overall(scenarios)},
        "lost": [_figures_of(scenario) for scenario in scenarios if scenario.is_lost],
        "variants": [
            {"variant": variant, "trace": trace, "world": world, "cost_to_lagcast": ratio}
            for variant in variants
            for (trace, world), ratio in variant_ratios(runs, variant).items()
        ],
    }


def _figures_of(scenario: ScenarioSummary) -> Document:
    """Its ratios; the figures of each policy are in the runs."""
    return {field.name: getattr(scenario, field.name) for field in fields(ScenarioSummary) if field.name != "standings"}


def _overall(scenarios: list[ScenarioSummary]) -> Document:
    """Overall figures of all scenarios, and of those with slow and with real pauses."""
    groups = {"all": scenarios, "slow": with_pauses(scenarios, "slow"), "real": with_pauses(scenarios, "real")}
    figures = {name: overall_of(group) for name, group in groups.items()}
    return {name: None if figure is None else asdict(figure) for name, figure in figures.items()}
