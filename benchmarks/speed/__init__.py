"""Measures durations and costs of parts of lagcast, one program each."""
