"""From an empty folder to a priced recommendation on a page, beside somebody else's Kafka: each stage timed.

    make first-five-minutes OUT=FILE
    python -m benchmarks.first_minutes --page FILE > docs/first-minutes.md

The first form starts everything on loopback, installs lagcast into a temporary folder from the index that pip is
configured with, and takes about twenty-five minutes. FILE is a JSON document. Exit code 1 where a bar is missed. With
--installed nothing is installed: the code of the checkout runs. The last form prints the page of such a document.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import print_page, swap_in
from benchmarks.first_minutes.page import bars_of, page_of
from benchmarks.first_minutes.run import measured

SHOTS = Path("build/first-minutes")


def main(words: Sequence[str] | None = None) -> int:
    """Run all stages and write their document, or print the page of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/first-minutes.json"), help="where the JSON goes")
    parser.add_argument("--installed", action="store_true", help="install nothing, run the code of this checkout")
    parser.add_argument("--page", type=Path, metavar="FILE", help="print the page of this document, and run nothing")
    arguments = parser.parse_args(words)
    if arguments.page is not None:
        print_page(parser, [arguments.page], page_of, of="the first minutes")
        return 0
    document = measured(install=not arguments.installed, shots=SHOTS)
    swap_in(json.dumps(document, indent=1) + "\n", arguments.out)
    bars = bars_of(document)
    for bar in bars:
        print(f"{'kept  ' if bar.is_kept else 'MISSED'} {bar.what}: {bar.seconds:.2f} s (bar {bar.most_seconds:g} s)")
    return 0 if all(bar.is_kept for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
