"""Loads are those of the forecasters' own tests."""

from tests.forecasting.conftest import daily_load, history

__all__ = ["daily_load", "history"]
