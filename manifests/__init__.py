"""Manifests of other autoscalers: our objects out of theirs, and theirs out of our advice. Nothing is applied."""
