"""Measures the stops and repeated messages of rebalances, on a real Kafka."""
