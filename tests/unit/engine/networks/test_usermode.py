"""Machines without root: the same calls, ports opened when somebody asks."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.base.errors import Transient
from paddock.engine.machine.config import UserNetwork
from paddock.engine.networks import hostnetwork, passt, usermode
from paddock.engine.networks.errors import GuestUnreachable, NetworkUnusable
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import NicSpec, Ports, Protocol, TrafficLimit
from paddock.engine.networks.resolver import GuestResolver, ResolverConfig
from tests.coroutines import run_by

USER = NetworkSettings(mode="user")
PLACES = [
    (5, 22, ("127.64.0.5", 64534)),
    (5, 8080, ("127.64.0.5", 8080)),
    (300, 64511, ("127.64.1.44", 64511)),
    (5, 65535, ("127.65.0.5", 65535)),
]


@pytest.mark.parametrize(("index", "port", "place"), PLACES)
def test_each_port_has_a_place_on_the_host(index: int, port: int, place: tuple[str, int]) -> None:
    assert usermode.host_place(index, port) == place


def test_no_two_ports_share_a_place() -> None:
    assert len({usermode.host_place(7, port) for port in range(1, 65536)}) == 65535


@run_by(asyncio.run)
async def test_a_card_is_behind_masquerade_with_its_addresses(tmp_path: Path) -> None:
    networks = Networks(tmp_path, USER)
    plug = await networks.plug(NicSpec("vm", "default", hostname="web", ports=(Ports("tcp", 80), Ports("udp", 53, 54))))
    assert (plug.guest_address, plug.gateway, plug.dns) == ("10.0.2.2/24", "10.0.2.1", ("10.0.2.3",))
    assert plug.address.startswith("127.64.") and usermode.HOST_IS_OPEN in plug.limits
    assert isinstance(plug.backend, UserNetwork) and plug.backend.hostname == "web"
    assert [(each[0], each[3]) for each in plug.backend.forwards] == [("tcp", 80), ("udp", 53), ("udp", 54)]
    again = Networks(tmp_path, USER)
    assert await again.plug(NicSpec("vm", "default", hostname="web")) == await networks.plug(NicSpec("vm", "default", hostname="web"))


@run_by(asyncio.run)
async def test_qemu_tells_a_guest_its_search_list_and_not_its_name_servers(tmp_path: Path) -> None:
    networks = Networks(tmp_path, USER)
    card = NicSpec("vm", "default", resolver=GuestResolver("None", ResolverConfig(("1.1.1.1",), ("a.example",))))
    plug = await networks.plug(card)
    assert isinstance(plug.backend, UserNetwork) and plug.backend.search == ("a.example",)
    assert usermode.NO_SERVERS in plug.limits
    searched = await networks.plug(NicSpec("other", "default", resolver=GuestResolver(given=ResolverConfig((), ("a.example",)))))
    assert isinstance(searched.backend, UserNetwork) and searched.backend.search == ("a.example",)
    assert usermode.NO_SERVERS not in searched.limits


@run_by(asyncio.run)
async def test_another_network_inside(tmp_path: Path) -> None:
    plug = await Networks(tmp_path, USER).plug(NicSpec("vm", "default", network="192.168.7.0/28"))
    assert isinstance(plug.backend, UserNetwork)
    assert (plug.guest_address, plug.backend.gateway, plug.backend.dns) == ("192.168.7.2/28", "192.168.7.1", "192.168.7.3")


@pytest.mark.spec("kubevirt", 254)
@pytest.mark.parametrize("has_ipv6", [True, False])
@run_by(asyncio.run)
async def test_ipv6_leads_out_where_the_host_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ipv6: bool) -> None:
    monkeypatch.setattr(hostnetwork, "has_ipv6", lambda: has_ipv6)
    networks = Networks(tmp_path, USER)
    resolver = GuestResolver(given=ResolverConfig(("2001:db8::53",)))
    plug = await networks.plug(NicSpec("vm", "default"))
    assert isinstance(plug.backend, UserNetwork) and plug.addresses == (plug.address,) and plug.guest_address6 == ""
    told = (plug.backend.network6, plug.backend.gateway6, plug.backend.dns6)
    assert told == (("fd10:0:2::/64", "fd10:0:2::1", "fd10:0:2::3") if has_ipv6 else ("", "", ""))
    assert (usermode.ONLY_IPV4 in plug.limits) is has_ipv6 and usermode.NO_SERVERS6 not in plug.limits
    other = await networks.plug(NicSpec("other", "default", network6="fd20:1:0:7::/112", resolver=resolver))
    assert isinstance(other.backend, UserNetwork) and usermode.NO_SERVERS6 in other.limits
    assert other.backend.network6 == ("fd20:1:0:7::/64" if has_ipv6 else "")


@pytest.mark.parametrize(
    ("card", "why"), [(NicSpec("vm", "a", network="10.0.0.0/30"), "fewer than 8"), (NicSpec("vm", "a", binding="host-bridge"), "need root")]
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, card: NicSpec, why: str) -> None:
    with pytest.raises(NetworkUnusable, match=why):
        asyncio.run(Networks(tmp_path, USER).plug(card))


@run_by(asyncio.run)
async def test_limits_of_traffic_are_named(tmp_path: Path) -> None:
    networks = Networks(tmp_path, USER)
    assert usermode.NO_LIMITS not in (await networks.plug(NicSpec("vm", "default"))).limits
    assert usermode.NO_LIMITS in (await networks.plug(NicSpec("vm", "default", traffic=TrafficLimit(1000)))).limits


@run_by(asyncio.run)
async def test_a_port_is_opened_once_when_somebody_dials(tmp_path: Path) -> None:
    asked: list[tuple[str, str, Protocol, str, int, int]] = []
    networks = Networks(tmp_path, USER)
    plug = await networks.plug(NicSpec("vm", "default"))
    servers = []

    async def forward(owner: str, name: str, protocol: Protocol, address: str, port: int, guest: int) -> None:
        asked.append((owner, name, protocol, address, port, guest))
        servers.append(await asyncio.start_server(lambda _, writer: writer.close(), address, port))

    networks.forward_by(forward)
    for _ in range(2):
        reader, writer = await networks.dial("vm", "default", 8080)
        assert await reader.read() == b""
        writer.close()
    assert asked == [("vm", "default", "tcp", plug.address, 8080, 8080)]
    servers.pop().close()
    await asyncio.sleep(0)
    _, writer = await networks.dial("vm", "default", 8080)
    writer.close()
    assert len(asked) == 2, "a new process has nothing open"
    servers.pop().close()


@run_by(asyncio.run)
async def test_a_forward_that_is_there_already_is_used(tmp_path: Path) -> None:
    networks = Networks(tmp_path, USER)
    plug = await networks.plug(NicSpec("vm", "default"))

    async def forward(*_: object) -> None:
        raise Transient("could not set up host forwarding rule")

    networks.forward_by(forward)
    with pytest.raises(Transient, match="forwarding"):
        await networks.dial("vm", "default", 8080)

    servers = []

    async def late(*_: object) -> None:
        servers.append(await asyncio.start_server(lambda _, writer: writer.close(), plug.address, 8080))
        raise Transient("somebody else was faster")

    networks.forward_by(late)
    _, writer = await networks.dial("vm", "default", 8080)
    writer.close()
    servers.pop().close()


@run_by(asyncio.run)
async def test_a_port_that_is_not_listed_is_not_opened(tmp_path: Path) -> None:
    networks = Networks(tmp_path, USER)
    await networks.plug(NicSpec("vm", "default", ports=(Ports("tcp", 80),)))
    with pytest.raises(GuestUnreachable, match="lists other ports"):
        await networks.dial("vm", "default", 22)
    with pytest.raises(GuestUnreachable, match="lists other ports"):
        await networks.datagrams("vm", "default", 80)
    await networks.unplug("vm", "default")
    with pytest.raises(GuestUnreachable, match="not plugged"):
        await networks.dial("vm", "default", 80)


@run_by(asyncio.run)
async def test_release_gives_the_address_back(tmp_path: Path) -> None:
    networks = Networks(tmp_path, USER)
    await networks.plug(NicSpec("vm", "default"))
    await networks.release({"vm"})
    with pytest.raises(GuestUnreachable):
        await networks.dial("vm", "default", 80)
    assert '"cards": []' in (tmp_path / "addresses.json").read_text()


def test_passt_shuts_the_way_to_the_hosts_loopback_and_takes_no_options_from_users() -> None:
    wanted = passt.PasstRequest(
        Path("/m/passt.sock"),
        "10.0.2.0/24",
        "02:00:00:00:00:00",
        dns=ResolverConfig(("10.0.2.3",), ("--log-file", "x")),
        forwards=(("tcp", "127.64.0.5", 64592, 80),),
    )
    command = passt.argv("passt", wanted)
    assert "--no-map-gw" in command and "--one-off" in command
    assert [word for word in command if "log-file" in word] == ["--search=--log-file"] and "--search=x" in command
    assert [word for word in command if word.startswith("--dns=")] == ["--dns=10.0.2.3"]
    assert command[command.index("--tcp-ports") + 1] == "127.64.0.5/64592:80"
    assert command[command.index("--udp-ports") + 1] == "none"
    assert "--ipv4-only" in command
    dual = passt.argv("passt", replace(wanted, inner6="fd10:0:2::/120"))
    assert "--ipv4-only" not in dual and dual[dual.index("fd10:0:2::2") + 1 :][:2] == ["--gateway", "fe80::1"]
