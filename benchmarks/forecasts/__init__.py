"""Compares the accuracy of lagcast's forecasts with that of other forecasters."""
