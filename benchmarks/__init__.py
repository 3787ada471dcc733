"""Measuring programs, run from the root of a checkout with `python -m benchmarks....`; not part of the product."""
