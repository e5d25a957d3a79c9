"""A whole Paddock in a process of its own, which the tests of runs have too."""

from tests.host.runs.conftest import host, play

__all__ = ["host", "play"]
