"""A Paddock in a process of its own, for commands that talk to it."""

from tests.host.fronts.conftest import origin
from tests.host.runs.conftest import host, play

__all__ = ["host", "origin", "play"]
