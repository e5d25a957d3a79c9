"""A Paddock in a process of its own, as the target of a driver."""

from tests.host.runs.conftest import host, play

__all__ = ["host", "play"]
