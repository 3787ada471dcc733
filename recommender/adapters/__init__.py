"""What the recommender reads from and writes to. Adapters do not know each other."""
