"""Scalers on a real Kafka with real replicas, as processes or in a real control plane."""
