"""Simulated machines: their life, and what of them is there after the process has ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig, Nic, Tap
from paddock.engine.machine.errors import AgentError, RequestRefused
from paddock.engine.networks.nics import NicSpec
from paddock.engine.simulated import records
from paddock.engine.simulated.behaviour import PREFIX
from paddock.engine.simulated.engine import SimulatedEngine
from paddock.engine.simulated.machine import SimulatedMachine
from tests import virtualtime
from tests.coroutines import run_by

CONFIG = MachineConfig("ns_web", CpuConfig(max_sockets=4), MemoryConfig(2**28, 2**30))


def _config(**more: object) -> MachineConfig:
    return MachineConfig("ns_web", CpuConfig(max_sockets=4), MemoryConfig(2**28, 2**30), **more)  # type: ignore[arg-type]  # members


@contextlib.asynccontextmanager
async def serving(root: Path, **annotations: str) -> AsyncIterator[SimulatedEngine]:
    engine = SimulatedEngine(root, clock=virtualtime.Clock())
    engine.annotations = lambda id: {PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


# Functions, so that mypy does not believe that a state stays.
def _phase(machine: SimulatedMachine) -> str:
    return machine.observed.phase


def _has_agent(machine: SimulatedMachine) -> bool:
    return machine.observed.agent


async def _running(engine: SimulatedEngine, config: MachineConfig = CONFIG) -> SimulatedMachine:
    machine = await engine.machines.define("a", config)
    await machine.start()
    await asyncio.sleep(1)
    return machine


@run_by(virtualtime.run)
async def test_a_machine_lives(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        told: list[str] = []
        engine.machines.listen(told.append)
        machine = await engine.machines.define("a", CONFIG)
        await machine.start()
        assert _phase(machine) == "queued" and told
        await asyncio.sleep(0.01)
        assert _phase(machine) == "running" and not _has_agent(machine)
        with pytest.raises(AgentError, match="channel is closed"):
            await machine.agent.ping()
        await asyncio.sleep(0.02)
        assert _has_agent(machine) and await machine.agent.hostname() == "web"
        await machine.stop(30)
        await asyncio.sleep(0.01)
        end = machine.observed.end
        assert end is not None and end.reason == "guest-shutdown" and end.asked
        await machine.forget()
        assert engine.machines.get("a") is None


@pytest.mark.spec("kubevirt", 221)
def test_a_guest_goes_on_when_the_process_has_ended(tmp_path: Path) -> None:
    async def first() -> None:
        async with serving(tmp_path, start_seconds="5") as engine:
            starting = await engine.machines.define("starting", CONFIG)
            await starting.start()
            await asyncio.sleep(1)
        async with serving(tmp_path) as engine:
            machine = await _running(engine, _config(nics=(Nic("default", "02:00:00:00:00:01", Tap("sim1")),)))
            await machine.agent.write_file("/tmp/a", 0, b"kept")
            await machine.pause()

    async def second() -> None:
        async with serving(tmp_path) as engine:
            machine = engine.machines.get("a")
            assert machine is not None and _phase(machine) == "running" and machine.observed.paused == "user"
            await machine.resume()
            assert (await machine.agent.read_file("/tmp/a", 0, 10))[0] == b"kept"
            assert machine.observed.run == 1 and machine.config.nics[0].mac == "02:00:00:00:00:01"
            starting = engine.machines.get("starting")
            assert starting is not None and _phase(starting) == "starting"
            await asyncio.sleep(6)
            assert _phase(starting) == "running"

    virtualtime.run(first())
    virtualtime.run(second())


@pytest.mark.spec("kubevirt", 222)
@pytest.mark.parametrize(
    ("annotation", "text", "reason"),
    [
        ("start_failure", "no luck", "never-started"),
        ("panic_after", "0.5", "panicked"),
        ("crash_after", "0.5", "crashed"),
        ("shutdown_after", "0.5", "guest-shutdown"),
        ("agent", "perhaps", "never-started"),
    ],
)
@run_by(virtualtime.run)
async def test_a_guest_ends_as_an_annotation_asks(tmp_path: Path, annotation: str, text: str, reason: str) -> None:
    async with serving(tmp_path, **{annotation: text}) as engine:
        machine = await _running(engine)
        assert machine.observed.end is not None and machine.observed.end.reason == reason
        assert not machine.observed.live
        if reason == "never-started":
            assert text in machine.observed.end.text


@pytest.mark.spec("kubevirt", 222)
@run_by(virtualtime.run)
async def test_slow_and_deaf_guests_and_those_without_an_agent(tmp_path: Path) -> None:
    async with serving(tmp_path / "slow", start_seconds="3", boot_seconds="4") as engine:
        machine = await _running(engine)
        assert _phase(machine) == "starting"
        await asyncio.sleep(3)
        assert _phase(machine) == "running" and not _has_agent(machine)
        await asyncio.sleep(4)
        assert _has_agent(machine)
    async with serving(tmp_path / "deaf", power_button="ignored", agent="absent", reboot_after="0.1") as engine:
        machine = await _running(engine)
        assert not _has_agent(machine) and machine.observed.resets == 1
        await machine.stop(30)
        await asyncio.sleep(29)
        assert _phase(machine) == "stopping"
        await asyncio.sleep(2)
        assert machine.observed.end is not None and machine.observed.end.reason == "killed"


@run_by(virtualtime.run)
async def test_power_from_inside_and_outside(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        machine = await _running(engine)
        await machine.reset()
        assert machine.observed.resets == 1 and not _has_agent(machine)
        await asyncio.sleep(1)
        await machine.soft_reboot()
        await asyncio.sleep(1)
        assert (await machine.agent.execute(["/sbin/reboot"], 5)).code == 0
        await asyncio.sleep(1)
        assert machine.observed.resets == 3 and _has_agent(machine)
        await machine.agent.execute(["systemctl", "poweroff"], 5)
        await asyncio.sleep(0)
        assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown" and not machine.observed.end.asked


@run_by(virtualtime.run)
async def test_suspended_and_resumed(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        layer = DiskLayer(tmp_path / "volumes/v/disk.img", "raw")
        machine = await _running(engine, _config(disks=(DiskConfig("root", layer),)))
        await machine.suspend()
        assert _phase(machine) == "suspended" and engine.machines.holds_disks("a")
        assert engine.machines.will_open(layer.path) and engine.machines.uses(layer.path.parent)
    async with serving(tmp_path) as engine:
        assert engine.machines.will_open(layer.path)
        machine = engine.machines.get("a") or machine
        await machine.start()
        await asyncio.sleep(1)
        assert _phase(machine) == "running" and not engine.machines.will_open(layer.path)
        await machine.stop(0)
        await asyncio.sleep(0.1)
        assert not engine.machines.uses(layer.path.parent)


@run_by(virtualtime.run)
async def test_hardware_changes_while_it_runs(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        machine = await _running(engine)
        volume = await engine.volumes.create("v", 1 << 30)
        await machine.plug_disk(DiskConfig("more", volume.layer, "scsi"))
        assert machine.observed.disks["more"].size == 1 << 30 and machine.config.disks[0].hotplugged and machine.plugged
        await machine.resize_disk("more", 2 << 30)
        assert machine.observed.disks["more"].size == 2 << 30
        await machine.unplug_disk("more")
        assert not machine.config.disks and not machine.observed.disks
        await machine.plug_nic(Nic("second", "02:00:00:00:00:02", Tap("sim2")))
        await machine.set_link("second", up=False)
        assert not machine.observed.nics["second"].link_up
        await machine.unplug_nic("second")
        assert not machine.observed.nics
        await machine.set_sockets(3)
        await machine.set_memory(2**29)
        assert (machine.observed.sockets, machine.observed.memory) == (3, 2**29)
        with pytest.raises(RequestRefused):
            await machine.set_sockets(5)
        with pytest.raises(RequestRefused):
            await machine.set_memory(2**31)


@pytest.mark.spec("kubevirt", 225)
@pytest.mark.parametrize(
    "ask",
    [
        lambda machine: machine.vnc(),
        lambda machine: machine.screenshot(),
        lambda machine: machine.dump_memory(Path("/x")),
        lambda machine: machine.renew(),
        lambda machine: machine.save(Path("/x")),
        lambda machine: asyncio.to_thread(machine.usb),
    ],
)
@run_by(asyncio.run)
async def test_what_needs_a_guest_is_refused_with_the_reason(tmp_path: Path, ask: Callable[[SimulatedMachine], object]) -> None:
    async with serving(tmp_path) as engine:
        machine = await engine.machines.define("a", CONFIG)
        await machine.start()
        await asyncio.sleep(0.1)
        with pytest.raises(RequestRefused, match="guests are simulated") as caught:
            await ask(machine)  # type: ignore[misc]  # each is a coroutine
        assert caught.value.reason == "SimulatedGuest"


@run_by(virtualtime.run)
async def test_the_console_answers(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        machine = await _running(engine)
        console = machine.console()
        assert b"This guest is simulated" in await console.read()
        await console.write(b"whoamx\x7fi\r")
        said = b""
        while b"root" not in said:
            said += await console.read()
        newer = machine.console(screen=False)
        while await console.read():
            pass
        await machine.stop(0)
        await asyncio.sleep(0.1)
        assert await newer.read() == b""


@run_by(virtualtime.run)
async def test_the_agent_tells_the_addresses_of_the_guest(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        card = await engine.networks.plug(NicSpec("vm", "default"))
        machine = await _running(engine, _config(nics=(Nic("default", card.mac, card.backend),)))
        own = (await machine.agent.interfaces())[1]
        assert (own.name, own.mac, own.addresses) == ("eth0", card.mac, (("10.0.2.2", 24),))
        await machine.agent.freeze()
        with pytest.raises(AgentError, match="frozen"):
            await machine.agent.users()
        await machine.agent.thaw()
        await machine.agent.add_keys("root", ["ssh-ed25519 AAAA"])
        assert await machine.agent.keys("root") == ("ssh-ed25519 AAAA",)
        number = await machine.agent.spawn(["echo", "a", "b"])
        assert await machine.agent.outcome(number, 1) == (0, b"a b\n", b"")
        assert (await machine.agent.execute(["sh", "-c", "cat /etc/hostname"], 5)).out == b"web\n"
        assert (await machine.agent.execute(["sh", "-c", "ls | wc"], 5)).code == 2
        assert (await machine.agent.execute(["vim"], 5)).code == 127


@run_by(virtualtime.run)
async def test_a_purge_ends_guests_and_keeps_their_disks(tmp_path: Path) -> None:
    async with serving(tmp_path) as engine:
        await engine.volumes.create("v", 1 << 30)
        await _running(engine)
    assert records.count_guests(tmp_path) == 1
    records.end_guests(tmp_path)
    assert records.count_guests(tmp_path) == 0 == records.count_guests(tmp_path / "missing")
    async with serving(tmp_path) as engine:
        assert not list(engine.machines) and engine.volumes.get("v") is not None
