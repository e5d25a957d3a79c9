"""IPv6 of real machines in user mode: it leads out where the host has it, and not to a cloud's metadata."""

import asyncio
from pathlib import Path

import pytest

from paddock.engine.machine.machine import QemuMachine
from paddock.engine.networks.networks import NetworkSettings
from paddock.engine.networks.nics import NicSpec, Ports
from paddock.engine.networks.usermode import LINK_LOCAL, ONLY_IPV4
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, until
from tests.host.machines.conftest import place as machine_place
from tests.host.networks.namespaces import OUTSIDE6, Child, Lab, in_host, run, there
from tests.host.networks.talking import tcp_serve
from tests.host.networks.test_machines import Yard, card, readable

__all__ = ["readable"]
place = machine_place
pytestmark = pytest.mark.needs("qemu", "root", "netns", "nft", "busybox", "ipv6")
METADATA = ("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "64:ff9b::a9fe:a9fe")


async def said(machine: QemuMachine, command: str) -> str:
    """Return what a command in the guest prints."""
    return (await machine.agent.execute(["/bin/sh", "-c", command], 60)).out.decode()


async def heard(machine: QemuMachine, *addresses: str) -> list[str]:
    """Return what the guest hears at port 80 of each address."""
    asked = "; ".join(f"busybox timeout 5 busybox nc -w 3 {address} 80 </dev/null 2>/dev/null; echo" for address in addresses)
    return (await said(machine, asked)).splitlines()


async def addressed(machine: QemuMachine) -> str:
    """Wait until the guest has a valid IPv6 address; return its addresses."""
    for _ in range(100):
        found = await said(machine, "ip -6 address show dev eth0 scope global")
        if "inet6" in found and "tentative" not in found:
            return found
        await asyncio.sleep(0.2)
    pytest.fail("the guest has no IPv6 address")


@pytest.mark.spec("kubevirt", 254)
@pytest.mark.parametrize("binding", ["masquerade", pytest.param("passt", marks=pytest.mark.needs("passt"))])
def test_a_guest_reaches_others_and_no_metadata(place: Place, readable: tuple[Path, Path, str], lab: Lab, binding: str) -> None:
    async def script() -> None:
        yard = await Yard(place, NetworkSettings(mode="user"), readable).begin()
        users = yard.machines._surroundings.users
        yard.networks.users = (users.first, users.shared)
        nic: NicSpec = card("web", binding=binding, ports=(Ports("tcp", 80),), user=users.shared)
        machine, plug = await yard.machine(nic)
        assert "fd10:0:2:" in await addressed(machine)
        found = await heard(machine, OUTSIDE6, *METADATA)
        served = await yard.says("web")
        await machine.stop(0)
        await until(machine, lambda one: one.observed.phase == "ended", "its end")
        await yard.networks.unplug(*nic.key)
        await yard.end()
        assert found == ["outside", *("" for _ in METADATA)]
        assert served in ("web", "tiny"), "others reach it by IPv4"
        assert ONLY_IPV4 in plug.limits and LINK_LOCAL not in plug.limits and plug.address6 == ""

    for address in METADATA:
        run("ip", "-n", lab.outside, "address", "add", f"{address}/128", "dev", "lo")
    outside = Child(lab.outside, tcp_serve(80, b"outside"))
    there(lab.host, script)
    outside.end()


@pytest.mark.spec("kubevirt", 254)
@played_by(in_host, "lab")
async def test_on_a_host_without_ipv6_a_guest_has_none_and_nothing_says_so(place: Place, readable: tuple[Path, Path, str]) -> None:
    run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    yard = await Yard(place, NetworkSettings(mode="user"), readable).begin()
    machine, plug = await yard.machine(card("web"))
    found = await said(machine, "ip -6 address show dev eth0 scope global")
    await machine.stop(0)
    await until(machine, lambda one: one.observed.phase == "ended", "its end")
    await yard.end()
    assert "inet6" not in found and not any("IPv6" in each and "link-local" not in each for each in plug.limits)
