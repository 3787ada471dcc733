"""Measuring programs, run from the root of a checkout with `python -m benchmarks....`; they are not in the product."""
