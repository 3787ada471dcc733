"""A thousand groups beside one recommender: its cost, and the age of its advice.

    make bench-fleet GROUPS=1000 OUT=FILE
    python -m benchmarks.fleet --page FILE > docs/fleet.md

The first form starts a Kafka, and takes ten minutes more than MINUTES. With WEEKS=4 it takes hours more: most of it
is until the weeks of each group, which are put into its table before a second start, are read. FILE is a JSON document.
Exit code 1 where a bar is missed. The second form prints the page of such a document, writes its picture, and runs
nothing.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.command import print_page, swap_in
from benchmarks.fleet.page import bars_of, page_of
from benchmarks.fleet.run import measured

# The first minute of ages is left out.
LEAST_MINUTES = 2.0


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write the document, or print the page of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/fleet.json"), help="where the JSON goes")
    parser.add_argument("--groups", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--partitions", type=int, default=24, help="of each group (default 24)")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to measure (default 5, at least 2)")
    parser.add_argument("--weeks", type=int, default=0, help="of past, with which it is started again (default 0)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    parser.add_argument("--picture", type=Path, default=Path("docs/fleet.svg"), help="where the picture goes")
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, [arguments.page], partial(page_of, picture=arguments.picture), of="a fleet")
        return 0
    if arguments.minutes < LEAST_MINUTES or arguments.weeks < 0:
        parser.error(
            f"--minutes {arguments.minutes:g} --weeks {arguments.weeks}: at least {LEAST_MINUTES:g} minutes and 0 weeks"
        )
    document = measured(
        groups=arguments.groups, partitions=arguments.partitions, minutes=arguments.minutes, weeks=arguments.weeks
    )
    swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    bars = bars_of(document)
    for bar in bars:
        print(f"{'kept  ' if bar.is_kept else 'MISSED'} {bar.what}: {bar.figure:,.2f} (bar {bar.most:g})")
    return 0 if all(bar.is_kept for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
