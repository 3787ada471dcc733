"""Adapters that the recommender reads from and writes to. They do not import each other."""
