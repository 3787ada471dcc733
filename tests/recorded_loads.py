"""Where recorded loads are, which are no part of the project; tests that use them are skipped without them."""

import os
from pathlib import Path

TRACES = Path(os.environ.get("LAGCAST_TRACES") or Path(__file__).parents[2] / "shared" / "traces")
WITHOUT = f"no recorded loads in {TRACES}; set LAGCAST_TRACES to a folder of CSV files"
