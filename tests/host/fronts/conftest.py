"""A Paddock in a process of its own, and images of the guest of 512 bytes that fronts name."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import Host, Play, perform
from tests.kit.servers.imageserver import Server, running

MB = 1 << 20


@pytest.fixture
def host(work: Path, registry: Registry) -> Iterator[Host]:
    """A host that was not started yet."""
    made = Host(work, registry.address)
    yield made
    made.end()


@pytest.fixture
def play(host: Host) -> Play:
    """Runs a script with the started host."""
    return partial(perform, host)


@pytest.fixture
def origin() -> Iterator[Server]:
    """A web server on loopback that remembers its requests."""
    server = Server()
    with running(server):
        yield server


def guest(filler: int = 0, size: int = MB) -> bytes:
    """The disk of a guest; what it does not use is one byte repeated."""
    return bootsector.marker().ljust(size, bytes((filler,)))
