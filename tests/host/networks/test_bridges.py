"""Cards in bridges of the host: secondary networks."""

import pytest

from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.nics import HostBridge, NicSpec, Range
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import run

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
LAN = HostBridge(
    "br1", mtu=1400, ranges=(Range("172.20.0.0/24", "172.20.0.10", "172.20.0.20", "172.20.0.1"),), is_gateway=True, masquerade=True
)


def card(owner: str, bridge: HostBridge) -> NicSpec:
    """A card in a bridge."""
    return NicSpec(owner, "lan", binding="host-bridge", bridge=bridge, hostname=owner)


@played
async def test_machines_of_a_bridge_have_its_addresses_and_reach_each_other_and_outside(world: World, /) -> None:
    one, two = await world.guest(card("one", LAN)), await world.guest(card("two", LAN))
    assert one.plug.guest_address.startswith("172.20.0.") and one.plug.mtu == 1400 and one.plug.gateway == "172.20.0.1"
    assert one.plug.address != two.plug.address
    assert await one.can_ping(two.plug.address) and await one.can_ping("172.20.0.1") and await one.can_ping("198.51.100.1")
    assert (await one.dhcp())["mtu"] == "1400"
    assert (await world.networks.plug(card("one", LAN))).address == one.plug.address


@played
async def test_a_fixed_address(world: World, /) -> None:
    fixed = HostBridge("br2", static=(("172.21.0.7/24", "172.21.0.1"),), is_gateway=True, routes=(("172.22.0.0/16", "172.21.0.9"),))
    one = await world.guest(card("one", fixed))
    told = await one.dhcp()
    assert (told["ip"], told["mask"], told["router"]) == ("172.21.0.7", "24", "172.21.0.1")
    assert told["staticroutes"] == "172.22.0.0/16 172.21.0.9 0.0.0.0/0 172.21.0.1"
    assert await one.can_ping("172.21.0.1")


@pytest.mark.spec("virtrigaud", 121)
@played
async def test_a_card_in_a_bridge_sends_in_its_own_name_alone(world: World, /) -> None:
    one, two = await world.guest(card("one", LAN)), await world.guest(card("two", LAN))
    free = HostBridge("br1")
    third = await world.guest(card("third", free), dhcp=False)
    third.set_address("172.20.0.99/24")
    assert await third.can_ping(one.plug.address), "whose address is nobody's business"
    one.call("ip", "address", "add", "172.20.0.50/24", "dev", "eth0")
    assert not await one.can_ping(two.plug.address, "-I", "172.20.0.50")
    for mac in ("02:00:00:00:00:77", two.plug.mac):
        third.call("ip", "link", "set", "eth0", "address", mac)
        assert not await third.can_ping(one.plug.address)


@played
async def test_a_bridge_of_ours_goes_with_its_last_card_and_one_of_others_stays(world: World, /) -> None:
    run("ip", "link", "add", "theirs", "type", "bridge")
    await world.networks.plug(card("one", HostBridge("theirs")))
    await world.networks.plug(card("two", LAN))
    assert "master br1" in run("ip", "-o", "link") and "master theirs" in run("ip", "-o", "link")
    await world.networks.release({"one"})
    await world.networks.release({"two"})
    links = run("ip", "-o", "link")
    assert " br1:" not in links and " theirs:" in links
    assert "172.20.0.0/24" not in run("nft", "list", "ruleset")


@played
async def test_vlans_of_a_bridge_of_ours_are_apart(world: World, /) -> None:
    blue, red, long = HostBridge("br3", vlan=10), HostBridge("br3", vlan=20), HostBridge("a-long-bridge", vlan=4094)
    here = await world.guest(card("one", blue), dhcp=False)
    same, other = await world.guest(card("two", blue), dhcp=False), await world.guest(card("three", red), dhcp=False)
    for number, guest in enumerate((here, same, other), 1):
        guest.set_address(f"172.23.0.{number}/24")
    assert await here.can_ping("172.23.0.2")
    assert not await here.can_ping("172.23.0.3")
    await world.networks.plug(card("four", long))
    for owner in ("one", "two", "three", "four"):
        await world.networks.release({owner})
    assert "br3" not in (links := run("ip", "-o", "link")) and ".4094" not in links


@played
async def test_a_bridge_of_the_host_has_to_keep_vlans_apart_itself(world: World, /) -> None:
    run("ip", "link", "add", "theirs", "type", "bridge")
    with pytest.raises(NetworkUnusable, match=r"does not keep VLANs apart.*vlan_filtering 1"):
        await world.networks.plug(card("one", HostBridge("theirs", vlan=10)))


@pytest.mark.needs("vlan")
@played
async def test_vlans_of_a_bridge_of_the_host(world: World, /) -> None:
    run("ip", "link", "add", "theirs", "type", "bridge", "vlan_filtering", "1")
    run("ip", "link", "set", "theirs", "up")
    wanted = {"one": 10, "two": 10, "three": 20, "four": 0}
    guests = [await world.guest(card(owner, HostBridge("theirs", vlan=vlan)), dhcp=False) for owner, vlan in wanted.items()]
    for number, guest in enumerate(guests, 1):
        guest.set_address(f"172.23.0.{number}/24")
    assert await guests[0].can_ping("172.23.0.2")
    assert not await guests[0].can_ping("172.23.0.3")
    assert not await guests[0].can_ping("172.23.0.4")
    with pytest.raises(NetworkUnusable, match="gateway"):
        await world.networks.plug(card("five", HostBridge("theirs", vlan=10, is_gateway=True)))


@played
async def test_what_is_no_bridge_is_refused(world: World, /) -> None:
    for bridge, why in (
        (HostBridge("eth0"), "is no bridge|eth0 is the host's, and only root"),
        (HostBridge("lo"), "is no bridge"),
        (HostBridge("absent", create=False), "has no bridge"),
        (HostBridge("a/b"), "no name of a device"),
    ):
        with pytest.raises(NetworkUnusable, match=why):
            await world.networks.plug(card("one", bridge))
