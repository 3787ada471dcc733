"""Pictures of pages, as SVG: the same figures give the same bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")  # before pyplot picks a backend that wants a display

import matplotlib.pyplot as plt
from matplotlib.figure import Figure


@contextmanager
def drawn(path: Path, *, size: tuple[float, float]) -> Iterator[Figure]:
    """An empty figure of that size in inches, which is written to `path` when the block ends."""
    with mpl.rc_context({"svg.hashsalt": "lagcast", "font.size": 8}):
        figure = plt.figure(figsize=size, layout="constrained")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
