"""A host made of network namespaces, and `Networks` on it: root's, and those of an ordinary user."""

import asyncio
import functools
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from paddock.engine.claims import HostReservations
from paddock.engine.networks import responderprocess
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import NicSpec
from tests.host.machine import lacks
from tests.host.networks.namespaces import Child, Guest, Lab, there
from tests.host.networks.rootless import USER, RemoteNetworks, UserProcess

Script = Callable[["World"], Awaitable[None]]
Play = Callable[[Script], None]


class World:
    """The context of a script, inside the namespace that has the networks of machines."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.settings = NetworkSettings(mode="routed")
        self.networks = self.fresh()

    # a user that cards may belong to, and the MTU of a card in the pod network
    user, mtu = 1234, 1500

    @property
    def inside(self) -> str:
        """The namespace of machines' networks."""
        return self.lab.host

    def fresh(self) -> Networks:
        """Another Paddock at the same directory, as after a restart."""
        return self.beside("networks")

    def build(self, text: str) -> None:
        """The next servers are of other sources."""
        responderprocess.build = functools.cache(lambda: text)

    def beside(self, directory: str) -> Networks:
        """Another Paddock on this host, with a directory of its own."""
        return Networks(self.lab.folder / directory, self.settings, claims=HostReservations(self.lab.folder / "claims"))

    async def guest(self, card: NicSpec, *, dhcp: bool = True) -> Guest:
        """A machine with this card."""
        guest = Guest(self.lab, card.owner, await self.networks.plug(card))
        if dhcp:
            await guest.dhcp()
        return guest


class RootlessWorld(World):
    """The same with networks of an ordinary user. Root can stand in its namespace, and see what the user made there."""

    user, mtu = USER, 65520

    def __init__(self, lab: Lab) -> None:
        self._process = UserProcess(lab)
        self._inside = lab.name(self._process.holder, "inside")
        self._numbers = itertools.count(1)
        super().__init__(lab)

    @property
    def inside(self) -> str:
        return self._inside

    def build(self, text: str) -> None:
        self._process.call((0, "", ""), "build", text)

    def beside(self, directory: str) -> Networks:
        return cast("Networks", RemoteNetworks(self._process, (next(self._numbers), directory, self.settings.pod_network)))

    def close(self) -> None:
        """End the user's process and its namespace."""
        self._process.end()


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host and somebody outside."""
    made = Lab(work / "lab")
    yield made
    made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each script as root, and as an ordinary user unless only root does what it shows."""
    if "play" in metafunc.fixturenames:
        is_rooted = metafunc.definition.get_closest_marker("rooted") is not None
        metafunc.parametrize("play", ["root"] if is_rooted else ["root", "rootless"], indirect=True)


@pytest.fixture
def play(lab: Lab, request: pytest.FixtureRequest) -> Play:
    """Runs a script in the host's namespace, with networks that are opened before and removed afterwards."""
    if request.param == "rootless" and (reason := lacks("rootless")):
        pytest.skip(f"needs rootless: {reason}")

    def run(script: Script) -> None:
        async def inside(world: World) -> None:
            await world.networks.open()
            patch = pytest.MonkeyPatch()
            patch.setattr(responderprocess, "build", responderprocess.build)
            try:
                async with asyncio.timeout(60):
                    await script(world)
            finally:
                lab.finish()
                await world.networks.destroy()
                patch.undo()

        def rootless() -> None:
            world = RootlessWorld(lab)
            try:
                asyncio.run(inside(world))
            finally:
                world.close()

        if request.param == "rootless":
            Child(lab.host, rootless).result()
        else:
            there(lab.host, lambda: inside(World(lab)))

    return run
