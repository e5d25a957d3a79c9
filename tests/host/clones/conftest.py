"""The place for machines, which the tests of machines have too."""

from tests.host.machines.conftest import place

__all__ = ["place"]
