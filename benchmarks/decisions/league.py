"""The league on every trace of a folder, as the page docs/traces.md.

    python -m benchmarks.decisions.league --traces DIR > docs/traces.md

Runs `lagcast replay --trace FILE -o json` for each `.csv` and `.csv.gz`, one after another, and writes the page to
stdout. About a minute for each trace of two weeks on 2 cores. `--from-json DIR` reads the documents of an earlier run.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Document = dict[str, Any]  # as `lagcast replay -o json` writes it; a missing key ends the run

# The loads that the target utilization, prices and pauses were chosen on; all others were only reported.
TUNED_ON = ("production-app-noisy-bursts", "nasa-http-july-flash-crowd")

INTRODUCTION = """# Recorded loads

Every policy goes through the same simulated consumer group: the same arrivals, the same start-up times, the same
prices, starting at the same count. The group is simulated per partition and event by event, by code that shares nothing
with lagcast's cost model. Each table is one run of

    lagcast replay --trace FILE

with its defaults: 24 partitions, eager protocol, replicas ready after 25 to 35 s, a replica-hour at 0.05, a message
late after 10 s (100 s of one replica's work late is worth one replica-hour), capacity such that four fifths of all
replicas just carry the load's peak. The last half of a trace, at most seven days, is judged; what comes before it is
history, and passes through the Spark features job. This page is written by

    python -m benchmarks.decisions.league --traces DIR

- `fixed` never moves. `hpa`, `hpa-behavior` and `keda` have a lag target of 10,000 messages, the figure most often
  copied; neither was tuned to the load. `useful-counts` is given the produce rate, one replica's capacity and the
  useful replica counts: the reactive rival to beat.
- `hindsight` is the best plan found by a search that sees the whole load: an upper bound of the optimum, not the
  optimum.
- The late share counts messages that waited longer than 10 s. Costs are in the currency of the prices. One seed each;
  `--seed` gives others.
- Rebalances here are those of short batches and heartbeats in step, as measured on a real broker: pauses of a second.
  Slow pauses favour the policy that moves less; the table then looks different, see `--protocol` and `--start-up`.
"""


def main() -> int:
    """Read the arguments, run or read the leagues, print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--traces", type=Path, help="folder of trace files")
    source.add_argument("--from-json", type=Path, help="folder of documents from an earlier run")
    arguments = parser.parse_args()
    if arguments.traces is not None:
        files = sorted(path for path in arguments.traces.iterdir() if path.name.endswith((".csv", ".csv.gz")))
        documents = [replayed(path) for path in files]
    else:
        documents = [json.loads(path.read_text()) for path in sorted(arguments.from_json.glob("*.json"))]
    print(page(documents), end="")
    return 0


def replayed(path: Path) -> Document:
    """One league, by the command that users run."""
    print(f"{path.name} ...", file=sys.stderr)
    command = [sys.executable, "-m", "cli.main", "replay", "--trace", str(path), "-o", "json"]
    document: Document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
    return document


def page(documents: list[Document]) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, summary(documents), *map(section, documents)])


def summary(documents: list[Document]) -> str:
    """Each policy's cost as a multiple of the fixed count's cost, one row per trace."""
    policies = [entry["policy"] for entry in documents[0]["policies"]]
    lines = [
        "## Cost as a multiple of the fixed count's",
        "",
        f"| trace | {' | '.join(policies)} | lost days |",
        f"|---|{'---:|' * (len(policies) + 1)}",
    ]
    for document in documents:
        cost = {entry["policy"]: entry["cost"] for entry in document["policies"]}
        name = document["trace"] + (" (tuned on)" if document["trace"] in TUNED_ON else "")
        figures = " | ".join(f"{cost[policy] / cost['fixed']:.2f}" for policy in policies)
        lines.append(f"| {name} | {figures} | {len(document['lost_days'])} |")
    return "\n".join(lines) + "\n"


def section(document: Document) -> str:
    """One league's table, and the days that lagcast lost."""
    lines = [
        f"## {document['trace']}",
        "",
        (
            f"{document['judged_from']} until {document['judged_until']}, seed {document['seed']}, "
            f"{document['capacity_messages_per_second_per_replica']:,g} messages/s per replica."
        ),
        "",
        "| policy | pod-hours | cost | pods | late | repeats | wait p99 | late share | moves | rebalances | verdict |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {e['policy']} | {e['pod_hours']:,.0f} | {e['cost']:,.2f} | {e['cost_pods']:,.2f} | {e['cost_late']:,.2f} "
        f"| {e['cost_duplicates']:,.2f} | {e['wait_p99_seconds']:,.1f} s | {e['late_fraction']:.3%} | {e['moves']:,} "
        f"| {e['rebalances']:,} | {e['verdict']} |"
        for e in document["policies"]
    ]
    lost = ", ".join(
        f"{day['day']} to {day['rival']} ({day['lagcast_cost']:,.2f} against {day['rival_cost']:,.2f})"
        for day in document["lost_days"]
    )
    lines += ["", f"Days on which lagcast was more expensive than the cheapest rival: {lost or 'none'}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
