"""Scripts of a whole host in virtual time, as in tests/scenario/hosts."""

from tests.scenario.hosts.conftest import play

__all__ = ["play"]
