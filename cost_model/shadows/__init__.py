"""Shadows: groups that are played beside the real one, scaled by other scalers."""
