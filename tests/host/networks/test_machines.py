"""Cards of real machines: what QEMU and a guest's drivers make of them, with root and without."""

import asyncio
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from paddock.engine.machine.config import CpuConfig, DeviceConfig, FirmwareConfig, Forwarded, KernelConfig, MachineConfig, MemoryConfig, Nic
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import AttachedNic, ForwardTarget, NicSpec, Ports, Protocol, PublishedPort, PublishedService
from paddock.engine.networks.usermode import HOST_IS_OPEN, NO_MEETING
from tests.coroutines import played_by, run_by
from tests.host.machines.conftest import Place, surroundings, until
from tests.host.machines.conftest import place as machine_place
from tests.host.networks.namespaces import Child, Lab, in_host
from tests.host.networks.talking import transfer

place = machine_place
_SIZE = 128 << 20


@pytest.fixture
def readable(place: Place, tiny_guest: tiny.TinyImage) -> tuple[Path, Path, str]:
    """Kernel and initrd where the machine's own user may read them."""
    for path in (tiny_guest.bare, tiny_guest.initrd):
        shutil.copy(path, place.root / path.name)
        (place.root / path.name).chmod(0o644)
    return place.root / tiny_guest.bare.name, place.root / tiny_guest.initrd.name, tiny_guest.flavour


class Yard:
    """Networks and machines of one Paddock."""

    def __init__(self, place: Place, settings: NetworkSettings, boot: tuple[Path, Path, str]) -> None:
        self._kernel = KernelConfig(boot[0], boot[1], "console=ttyS0 quiet")
        self._memory = _SIZE if boot[2] == "own" else 2 * _SIZE
        self.networks = Networks(place.root / "networks", settings)
        self.networks.forward_by(self._forward)
        self.machines = Machines(place.machines, surroundings())

    async def begin(self) -> "Yard":
        """Take over what is there."""
        await self.networks.open()
        await self.machines.adopt()
        return self

    async def end(self) -> None:
        """As at the end of the process: guests stay."""
        await self.networks.close()
        self.machines.close()

    async def machine(self, card: NicSpec) -> tuple[QemuMachine, AttachedNic]:
        """A guest that has booted."""
        plug = await self.networks.plug(card)
        config = MachineConfig(
            f"ns_{card.owner}",
            CpuConfig(model="qemu64", features=(("rdrand", True),)),
            MemoryConfig(self._memory, self._memory),
            kernel=self._kernel,
            nics=(Nic(card.name, plug.mac, plug.backend),),
            devices=DeviceConfig(graphics=False, balloon=False),
            firmware=FirmwareConfig(uuid=str(uuid.uuid4())),
        )
        machine = await self.machines.define(card.owner, config)
        await machine.start()
        await until(machine, lambda one: one.observed.agent or one.observed.phase == "ended", "the agent", 60)
        return machine, plug

    async def says(self, owner: str, port: int = 80) -> str:
        """Return its web server's answer; the agent is there a moment before it."""
        for _ in range(50):
            try:
                return await self._says(owner, port)
            except ConnectionResetError:
                await asyncio.sleep(0.1)
        pytest.fail("every connection is reset")

    async def _says(self, owner: str, port: int) -> str:
        reader, writer = await self.networks.dial(owner, "default", port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        said = await reader.read()
        writer.close()
        await writer.wait_closed()
        return (
            said.decode().rpartition("\n\r\n")[2].strip() if "\n\r\n" in said.decode() else said.decode().rpartition("\r\n\r\n")[2].strip()
        )

    async def _forward(self, owner: str, name: str, protocol: Protocol, address: str, outside: int, inside: int) -> None:
        machine = self.machines.get(owner)
        assert machine is not None
        await machine.forward(name, Forwarded(protocol, address, outside, inside))


def card(owner: str, **more: object) -> NicSpec:
    """A masqueraded card."""
    return NicSpec(owner, "default", hostname=owner, group="default", **more)  # type: ignore[arg-type]


def leading(port: int, target: int, name: str, node: int) -> PublishedService:
    """A node port that leads to a machine."""
    return PublishedService("default/s", (PublishedPort("tcp", port, (ForwardTarget(name, "default", target),), node),), ("10.97.3.4",))


@pytest.mark.needs("qemu")
@run_by(asyncio.run)
async def test_without_root_it_is_the_same_but_for_what_is_said(
    place: Place, readable: tuple[Path, Path, str], free_port: Callable[[], int]
) -> None:
    yard = await Yard(place, NetworkSettings(mode="user"), readable).begin()
    machine, plug = await yard.machine(card("web"))
    assert NO_MEETING in plug.limits and HOST_IS_OPEN in plug.limits and plug.address.startswith("127.64.")
    lease = await machine.agent.execute(["/bin/sh", "-c", "cat /run/net/eth0/lease; ip address show eth0"], 20)
    assert "10.0.2.2" in lease.out.decode() and plug.mac in lease.out.decode()
    assert await yard.says("web") == "web"
    reader, writer = await yard.networks.dial("web", "default", 7)
    writer.write(b"echo")
    writer.write_eof()
    assert await reader.read() == b"echo"
    writer.close()
    await writer.wait_closed()
    flow = await yard.networks.datagrams("web", "default", 7)
    flow.send(b"over UDP")
    assert await flow.receive() == b"over UDP"
    flow.close()
    node = free_port()
    assert await yard.networks.publish([leading(80, 7, "web", node)]) == {}
    sent, got = await asyncio.to_thread(transfer("127.0.0.1", node, 4 << 20))
    assert sent == got
    # Paddock ends and comes back: the machine, its address and what was forwarded are the same.
    await yard.end()
    again = await Yard(place, NetworkSettings(mode="user"), readable).begin()
    assert await again.networks.plug(card("web")) == plug
    assert await again.says("web") == "web"
    adopted = again.machines.get("web")
    assert adopted is not None
    await adopted.stop(0)
    await until(adopted, lambda one: one.observed.phase == "ended", "its end")
    # Started again it is where it was.
    await adopted.start()
    await until(adopted, lambda one: one.observed.agent, "the agent", 60)
    assert await again.says("web") == "web"
    await adopted.stop(0)
    await until(adopted, lambda one: one.observed.phase == "ended", "its end")
    await again.end()


@pytest.mark.needs("qemu", "passt", "root")
@played_by(in_host, "lab")
async def test_behind_passt_a_guest_does_not_reach_the_hosts_loopback(place: Place, readable: tuple[Path, Path, str]) -> None:
    yard = await Yard(place, NetworkSettings(mode="user"), readable).begin()
    secret = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 7443)
    machine, plug = await yard.machine(card("web", binding="passt", ports=(Ports("tcp", 80),)))
    assert HOST_IS_OPEN not in plug.limits
    assert await yard.says("web") == "tiny", "passt tells no host name"
    tried = await machine.agent.execute(["/bin/sh", "-c", "nc -w 2 10.0.2.1 7443 </dev/null"], 20)
    assert tried.code != 0
    tried = await machine.agent.execute(["/bin/sh", "-c", "ip route; ip address show eth0"], 20)
    assert "default via 10.0.2.1" in tried.out.decode() and "10.0.2.2" in tried.out.decode()
    secret.close()
    await machine.stop(0)
    await until(machine, lambda one: one.observed.phase == "ended", "its end")
    await yard.networks.release({"web"})
    await yard.end()


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host and somebody outside."""
    made = Lab(work)
    yield made
    made.close()


@pytest.mark.spec("kubevirt", 34)
@pytest.mark.needs("qemu", "netns", "tun", "nft")
@played_by(in_host, "lab")
async def test_real_machines_on_taps_reach_each_other_and_are_reached(place: Place, readable: tuple[Path, Path, str], lab: Lab) -> None:
    yard = await Yard(place, NetworkSettings(mode="routed"), readable).begin()
    web, one = await yard.machine(card("web"))
    _, two = await yard.machine(card("db", queues=2))
    assert await yard.says("web") == "web" and await yard.says("db") == "db"
    asked = await web.agent.execute(
        ["/bin/sh", "-c", f"wget -qO- http://{two.address}/ http://db.default.vm.cluster.local/; cat /etc/resolv.conf"], 30
    )
    assert asked.code == 0 and asked.out.decode().split("\n")[:2] == ["db", "db"], (asked.out, asked.err)
    assert "nameserver 10.0.2.1" in asked.out.decode() and "default.svc.cluster.local" in asked.out.decode()
    # Offloaded checksums and large segments pass the exchange of addresses.
    await yard.networks.publish([leading(80, 7, "db", 30080)])
    for namespace, address, port in ((lab.outside, "198.51.100.2", 30080), (lab.host, "10.97.3.4", 80), (lab.host, two.address, 7)):
        sent, got = await Child(namespace, transfer(address, port, 16 << 20)).done()
        assert sent == got
    asked = await web.agent.execute(["/bin/sh", "-c", "echo hello | nc -w 5 10.97.3.4 80"], 30)
    assert asked.out == b"hello\n"
    asked = await web.agent.execute(["/bin/sh", "-c", "nc -w 2 10.0.2.1 7443 </dev/null"], 20)
    assert asked.code != 0
    # Stopped and started, by another Paddock: the same MAC and address.
    await yard.end()
    again = await Yard(place, NetworkSettings(mode="routed"), readable).begin()
    machine = again.machines.get("web")
    assert machine is not None
    await machine.stop(0)
    await until(machine, lambda one: one.observed.phase == "ended", "its end")
    await again.networks.unplug("web", "default")
    assert await again.networks.plug(card("web")) == one and await again.networks.plug(card("db", queues=2)) == two
    await machine.start()
    await until(machine, lambda one: one.observed.agent, "the agent", 60)
    assert await again.says("web") == "web"
    for each in (machine, again.machines.get("db")):
        assert each is not None
        await each.stop(0)
        await until(each, lambda one: one.observed.phase == "ended", "its end")
    await again.networks.destroy()
    again.machines.close()


@pytest.mark.needs("qemu", "netns", "tun", "nft")
@pytest.mark.parametrize("queues", [1, 2])
@played_by(in_host, "lab")
async def test_a_connection_through_a_tap_outlives_a_move_into_a_new_qemu(
    place: Place, readable: tuple[Path, Path, str], queues: int
) -> None:
    yard = await Yard(place, NetworkSettings(mode="routed"), readable).begin()
    machine, _ = await yard.machine(card("web", queues=queues))
    assert await yard.says("web") == "web"
    reader, writer = await yard.networks.dial("web", "default", 7)
    answers = 0

    async def talk() -> None:
        nonlocal answers
        while True:
            writer.write(b"%064d" % answers)
            assert await reader.readexactly(64) == b"%064d" % answers
            answers += 1

    talking = asyncio.create_task(talk())
    for _ in range(3):
        old, before = machine.observed.pid, answers
        await machine.renew()
        assert machine.observed.pid != old
        async with asyncio.timeout(60):
            while answers < before + 100:
                await asyncio.sleep(0.05)
    talking.cancel()
    writer.close()
    assert await yard.says("web") == "web"
    await machine.stop(0)
    await until(machine, lambda one: one.observed.phase == "ended", "its end")
    await yard.end()
