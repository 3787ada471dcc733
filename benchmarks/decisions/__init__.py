"""Compares the cost of lagcast's decisions with that of other policies: the tournament, its loads and its worlds."""
