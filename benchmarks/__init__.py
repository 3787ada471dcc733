"""Programs that measure: run from the root of a checkout with `python -m benchmarks....`; no part of the product."""
