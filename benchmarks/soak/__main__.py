"""Twenty-four simulated hours of 300 groups beside a real Kafka and PostgreSQL, with faults at random.

    make soak OUT=FILE MINUTES=30 SEED=1 GROUPS=300
    python -m benchmarks.soak --page FILE > docs/soak.md

The first form takes three minutes more than MINUTES. FILE is a JSON document. Exit code 1 where a bar is missed. The
second form prints the page of such a document, and runs nothing.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import print_page, swap_in
from benchmarks.soak.page import bars_of, page_of
from benchmarks.soak.run import soaked


def main(words: Sequence[str] | None = None) -> int:
    """Run the soak and write its document, or print the page of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/soak.json"), help="where the JSON goes")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long 24 simulated hours take (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults' order, times and kinds (default 1)")
    parser.add_argument("--groups", type=int, default=300, help="how many, a thirtieth of them with real members")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, [arguments.page], page_of, of="the soak")
        return 0
    document = soaked(minutes=arguments.minutes, seed=arguments.seed, groups=arguments.groups)
    swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    bars = bars_of(document)
    for bar in bars:
        print(f"{'kept  ' if bar.is_kept else 'MISSED'} {bar.what}: {bar.figure} (bar {bar.wanted})")
    return 0 if all(bar.is_kept for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
