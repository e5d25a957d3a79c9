"""Several servers on one host, and what stays of them: each has a network of its own, and leaves nothing."""

import asyncio
import itertools
import shutil
from pathlib import Path

import pytest

from paddock.engine.networks import hostnames, hostobjects, nft
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.netlink import Netlink
from paddock.engine.networks.nics import HostBridge, NicSpec
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Guest, run

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
WEB = NicSpec("web", "default", hostname="web", group="default")


def left() -> list[str]:
    """Return the objects of any Paddock on the host's network."""
    rules = [line for line in run("ip", "rule").splitlines() if line.startswith(f"{hostobjects.RULE_PRIORITY}:")]
    routes = run("ip", "route", "show", "table", "all", "proto", "196").splitlines()
    return [*(name for name in Netlink().links() if name.startswith("pk")), *run("nft", "list", "tables").splitlines(), *routes, *rules]


@pytest.mark.spec("kubevirt", 118)
@pytest.mark.rooted("each directory has a namespace of its own")
@played
async def test_many_directories_have_networks_of_their_own_and_their_guests_addresses(world: World, /) -> None:
    servers = [world.networks, *(world.beside(f"server{number}") for number in range(20))]
    # All of them are there before any has a machine.
    for server in servers:
        await server.open()
    assert left() == []
    addresses = []
    for number, server in enumerate(servers):
        guest = Guest(world.lab, f"g{number}", await server.plug(NicSpec(f"vm{number}", "default")))
        if number < 6:
            assert (await guest.dhcp())["ip"] == "10.0.2.2"
            assert await guest.can_ping("10.0.2.1"), "its name server answers"
        addresses.append(guest.plug.address.rpartition(".")[0].rsplit(".", 1)[0] + "/" + guest.plug.address)
    assert len(set(addresses)) == 21 and len({server._ledger.book.network for server in servers}) == 21
    for number, server in enumerate(servers):
        await server.release({f"vm{number}"})
    assert left() == []
    for server in servers[1:]:
        await server.close()


def alike(folder: Path) -> tuple[str, str]:
    """Return the names of two directories whose devices have the same names."""
    seen: dict[str, str] = {}
    for name in map(str, itertools.count()):
        if (other := seen.setdefault(hostnames.every(folder / name)[0].instance, name)) and other != name:
            return other, name
    raise AssertionError


@pytest.mark.spec("kubevirt", 118)
@pytest.mark.rooted("each directory has a namespace of its own")
@played
async def test_two_directories_whose_devices_have_the_same_names_leave_each_other_alone(world: World, /) -> None:
    names = alike(world.lab.folder)
    first, second = map(world.beside, names)
    guest = Guest(world.lab, "guest", await first.plug(WEB))
    await guest.dhcp()
    with pytest.raises(NetworkUnusable, match="rename one of the two directories"):
        await second.plug(NicSpec("db", "default"))
    await second.release({"db"})
    await second.destroy()
    assert await guest.can_ping("10.0.2.1")
    guest.unplug()
    await first.release({"web"})
    assert left() == []
    again = world.beside(names[1])
    assert (await again.plug(NicSpec("db", "default"))).address
    await again.destroy()
    assert left() == []
    await first.close()


@pytest.mark.spec("kubevirt", 118)
@played
async def test_the_network_goes_with_the_last_card_and_comes_back_with_the_next(world: World, /) -> None:
    forwarding = run("ip", "netns", "exec", world.lab.host, "cat", "/proc/sys/net/ipv4/conf/eth0/forwarding")
    first = await world.guest(WEB)
    bridged = await world.networks.plug(NicSpec("db", "second", binding="host-bridge", bridge=HostBridge("shop", create=True)))
    assert left() and bridged.mac
    await world.networks.unplug("web", "default")
    assert left(), "a card in a bridge is left"
    await world.networks.unplug("db", "second")
    assert left() == [] and "shop" not in Netlink().links()
    assert run("ip", "netns", "exec", world.lab.host, "cat", "/proc/sys/net/ipv4/conf/eth0/forwarding") == forwarding
    first.unplug()
    again = await world.networks.plug(WEB)
    assert again.address == first.plug.address
    assert (await Guest(world.lab, "again", again).dhcp())["ip"] == "10.0.2.2"


@pytest.mark.spec("kubevirt", 118)
@played
async def test_the_network_goes_with_the_last_of_many_cards_that_go_together(world: World, /, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy host, a packet filter with rules takes longer to write than to remove."""
    run_nft = nft.run

    async def slow(text: str) -> None:
        if "chain" in text:
            await asyncio.sleep(0.5)
        await run_nft(text)

    async def unplug(owner: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await world.networks.unplug(owner, "default")

    owners = [f"vm{number}" for number in range(4)]
    await asyncio.gather(*(world.networks.plug(NicSpec(owner, "default")) for owner in owners))
    monkeypatch.setattr(nft, "run", slow)
    await asyncio.gather(*(unplug(owner, number * 0.01) for number, owner in enumerate(owners)))
    assert left() == []


@played
async def test_a_restart_after_the_last_machine_leaves_nothing(world: World, /) -> None:
    (await world.guest(NicSpec("web", "default", network="192.168.77.0/28"))).unplug()
    await world.networks.close()
    # Its machine went while nobody looked.
    world.networks = world.fresh()
    await world.networks.open()
    await world.networks.collect(())
    assert left() == []


@pytest.mark.spec("kubevirt", 118)
@pytest.mark.rooted("each directory has a namespace of its own")
@played
async def test_what_a_directory_that_is_gone_left_is_removed_unless_a_guest_lives(world: World, /) -> None:
    gone = world.beside("gone")
    guest = Guest(world.lab, "guest", await gone.plug(NicSpec("vm", "default", network="192.168.77.0/28")))
    await gone.close()
    shutil.rmtree(world.lab.folder / "gone")
    await world.networks.open()
    assert left(), "somebody has the tap open"
    guest.unplug()
    await world.fresh().open()
    assert left() == []
