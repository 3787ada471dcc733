"""The soak: a simulated day beside real systems, with faults at random; `python -m benchmarks.soak`."""
