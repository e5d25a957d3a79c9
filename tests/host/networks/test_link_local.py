"""Guests do not reach link-local addresses, where a cloud hands out the host's credentials, whatever their card is like."""

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from paddock.engine.claims import BLOCK, FIRST
from paddock.engine.networks import hostobjects
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import HostBridge, NicSpec, Range
from paddock.engine.networks.usermode import LINK_LOCAL
from tests.coroutines import played, played_by
from tests.host.machines.conftest import Place, until
from tests.host.machines.conftest import place as machine_place
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Child, Lab, in_host, run, there
from tests.host.networks.talking import tcp_ask, tcp_serve
from tests.host.networks.test_machines import Yard, card, readable

__all__ = ["readable"]
place = machine_place
pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
METADATA = "169.254.169.254"
# The same of Alibaba and Oracle, which are not link-local.
OTHERS = ("100.100.100.200", "192.0.0.192")
CLOSED = ("refused", "silent")
# Other tests of this host have lower numbers.
RESTING = FIRST + 560 * BLOCK + 7


def serve_metadata(lab: Lab) -> Child:
    """A cloud's metadata service, as the host reaches it."""
    for address, network in ((METADATA, "169.254.0.0/16"), *((each, each) for each in OTHERS)):
        run("ip", "-n", lab.outside, "address", "add", f"{address}/32", "dev", "lo")
        run("ip", "-n", lab.host, "route", "add", network, "via", "198.51.100.1")
    return Child(lab.outside, tcp_serve(80, b"secret"))


@pytest.mark.spec("kubevirt", 119)
@played
async def test_through_the_pod_network_and_through_bridges(world: World, /) -> None:
    metadata = serve_metadata(world.lab)
    run("ip", "address", "add", "169.254.20.10/32", "dev", "lo")
    local = Child(world.lab.host, tcp_serve(5353, b"local"))
    bridge = HostBridge("shop", create=True, ranges=(Range("10.9.9.0/24"),), is_gateway=True, masquerade=True)
    guests = [
        await world.guest(NicSpec("web", "default", hostname="web")),
        await world.guest(NicSpec("own", "default", binding="bridge", hostname="own")),
        await world.guest(NicSpec("shop", "default", binding="host-bridge", bridge=bridge)),
    ]
    # The bridge's guest is told no gateway unless the range has one.
    guests[2].call("ip", "route", "replace", "default", "via", "10.9.9.1")
    for address in (METADATA, *OTHERS):
        assert await Child(world.lab.host, tcp_ask(address, 80)).done() == "secret", "the host itself reaches it"
    for guest in guests:
        assert await guest.child(tcp_ask("198.51.100.1", 80)).done() == "secret", "the rest of the world is there"
        for address, port in (*((each, 80) for each in (METADATA, *OTHERS)), ("169.254.20.10", 5353)):
            assert await guest.child(tcp_ask(address, port, patience=0)).done() in CLOSED, (guest.namespace, address)
    metadata.end()
    local.end()


@pytest.mark.spec("kubevirt", 119)
def test_processes_of_user_mode_are_held_by_their_user(lab: Lab) -> None:
    def ask(user: int, address: str) -> str:
        def work() -> str:
            # Looked up now: another user may not read what it takes.
            "x".encode("idna")
            os.setresuid(user, user, user)
            return str(tcp_ask(address, 80, patience=0)())

        return str(Child(lab.host, work).result())

    async def script() -> None:
        networks = Networks(lab.folder / "user", NetworkSettings(mode="user"))
        networks.users = (2_000_262_144, 2_000_312_144)
        plug = await networks.plug(NicSpec("web", "default"))
        assert LINK_LOCAL not in plug.limits
        for address in (METADATA, *OTHERS):
            said = [await asyncio.to_thread(ask, user, address) for user in (2_000_262_150, 0)]
            assert said == ["refused", "secret"], address
        # Another Paddock at the same directory, then the last card.
        again = Networks(lab.folder / "user", NetworkSettings(mode="user"))
        again.users = networks.users
        await again.plug(NicSpec("web", "default"))
        await again.unplug("web", "default")
        assert run("nft", "list", "tables") == ""

    metadata = serve_metadata(lab)
    there(lab.host, script)
    metadata.end()


@pytest.mark.spec("kubevirt", 118)
@played_by(in_host, "lab")
async def test_the_table_of_a_directory_that_is_gone_goes_with_the_last_process_of_its_users(lab: Lab) -> None:
    def rest() -> None:
        os.setresuid(RESTING, RESTING, RESTING)
        time.sleep(60)

    others = [Networks(lab.folder / name, NetworkSettings(mode="user")) for name in ("gone", "there")]
    for networks, first in zip(others, (FIRST + 560 * BLOCK, FIRST + 561 * BLOCK), strict=True):
        networks.users = (first, first + 50_000)
        await networks.plug(NicSpec("web", "default"))
    guest = Child(lab.host, rest)
    shutil.rmtree(lab.folder / "gone", ignore_errors=True)
    assert (lab.folder / "there").is_dir()
    while os.stat(f"/proc/{guest.pid}").st_uid != RESTING:
        await asyncio.sleep(0.01)
    assert await hostobjects.collect() == [], "a guest lives"
    guest.end()
    await Networks(lab.folder / "other", NetworkSettings(mode="user")).open()
    assert run("nft", "list", "tables") == f"table inet paddock_{others[1].instance}\n"


@pytest.mark.spec("kubevirt", 119)
@played_by(in_host, "lab")
async def test_where_nothing_holds_them_it_is_said(lab: Lab) -> None:
    plug = await Networks(lab.folder / "user", NetworkSettings(mode="user")).plug(NicSpec("web", "default"))
    assert LINK_LOCAL in plug.limits


@pytest.mark.spec("kubevirt", 119)
@pytest.mark.needs("qemu", "root")
def test_a_real_machine_in_user_mode(place: Place, readable: tuple[Path, Path, str], lab: Lab) -> None:
    async def script() -> None:
        yard = await Yard(place, NetworkSettings(mode="user"), readable).begin()
        users = yard.machines._surroundings.users
        yard.networks.users = (users.first, users.shared)
        machine, plug = await yard.machine(card("web"))
        assert LINK_LOCAL not in plug.limits
        fetch = "busybox nc -w 3 {} 80 </dev/null; echo ended"
        outside = await machine.agent.execute(["/bin/sh", "-c", fetch.format("198.51.100.1")], 30)
        inside = await machine.agent.execute(["/bin/sh", "-c", fetch.format(METADATA)], 30)
        await machine.stop(0)
        await until(machine, lambda one: one.observed.phase == "ended", "its end")
        await yard.end()
        assert b"secret" in outside.out and b"secret" not in inside.out and b"ended" in inside.out

    metadata = serve_metadata(lab)
    there(lab.host, script)
    metadata.end()
