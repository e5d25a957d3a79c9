"""A Paddock in a process of its own, for commands that talk to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.commands.isolated import ADDRESS, IsolatedHost
from tests.host.commands.ownservers import Servers
from tests.host.fronts.conftest import origin
from tests.host.networks.namespaces import run as system
from tests.host.runs.conftest import host, play

__all__ = ["host", "origin", "play"]


@contextmanager
def served(work: Path, netns: str, *options: str) -> Iterator[IsolatedHost]:
    """A host with a default route, whose server has these options."""
    system("ip", "-n", netns, "link", "add", "wan", "type", "veth", "peer", "name", "far")
    for words in (("addr", "add", f"{ADDRESS}/24", "dev", "wan"), ("link", "set", "wan", "up"), ("link", "set", "far", "up")):
        system("ip", "-n", netns, *words)
    system("ip", "-n", netns, "route", "add", "default", "via", "192.0.2.254")
    found = IsolatedHost(work, netns)
    found.good("up", "--detach", "--listen", "127.0.0.1:0", *options)
    yield found
    found.good("down", "--purge", "--delete-data", "--yes")


@pytest.fixture
def isolated(work: Path, netns: str, tiny_guest: tiny.TinyImage) -> Iterator[IsolatedHost]:
    """A host whose images are built already, with a default route."""
    with served(work, netns) as found:
        yield found


@pytest.fixture
def servers(work: Path) -> Iterator[Servers]:
    """A user without servers yet."""
    made = Servers(work / "home")
    made.home.mkdir()
    yield made
    made.end()
