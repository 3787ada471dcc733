"""Worlds and loads are those of the judge's own tests."""

from tests.replay.conftest import calm_world_fixture, contest_fixture, load_fixture

__all__ = ["calm_world_fixture", "contest_fixture", "load_fixture"]
