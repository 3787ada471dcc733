"""Manifests of other autoscalers: ConsumerGroupScalers from them, and theirs from our advice. Nothing is applied."""
