"""What rebalances stop and repeat, on a real Kafka."""
