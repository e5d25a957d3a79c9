"""Scripts of Kubermatic's forms on a whole host."""

from tests.scenario.hosts.conftest import play

__all__ = ["play"]
