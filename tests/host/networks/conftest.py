"""A host made of network namespaces, and `Networks` on it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from paddock.engine.claims import HostReservations
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import NicSpec
from tests.host.networks.namespaces import Guest, Lab, there

Script = Callable[["World"], Awaitable[None]]
Play = Callable[[Script], None]


class World:
    """The context of a script, inside the host's namespace."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.settings = NetworkSettings(mode="routed")
        self.networks = self.fresh()

    def fresh(self) -> Networks:
        """Another Paddock at the same directory, as after a restart."""
        return self.beside("networks")

    def beside(self, directory: str) -> Networks:
        """Another Paddock on this host, with a directory of its own."""
        return Networks(self.lab.folder / directory, self.settings, claims=HostReservations(self.lab.folder / "claims"))

    async def guest(self, card: NicSpec, *, dhcp: bool = True) -> Guest:
        """A machine with this card."""
        guest = Guest(self.lab, card.owner, await self.networks.plug(card))
        if dhcp:
            await guest.dhcp()
        return guest


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host and somebody outside."""
    made = Lab(work)
    yield made
    made.close()


@pytest.fixture
def play(lab: Lab) -> Play:
    """Runs a script in the host's namespace, with networks that are opened before and removed afterwards."""

    def run(script: Script) -> None:
        async def inside() -> None:
            world = World(lab)
            await world.networks.open()
            try:
                async with asyncio.timeout(60):
                    await script(world)
            finally:
                lab.finish()
                await world.networks.destroy()

        there(lab.host, inside)

    return run
