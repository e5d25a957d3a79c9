"""Snapshots of volumes: which layers a machine goes on in, and that a guest is always thawed."""

import asyncio
from pathlib import Path
from tempfile import mkdtemp
from typing import cast

import pytest

from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machines import Machines
from paddock.engine.memorystates import MemoryStates
from paddock.engine.snapshots import SnapshotContext, Snapshots, WantedMemory, _rounds, _steps
from paddock.engine.storage.errors import VolumeBusy
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by
from tests.kit.engine.enginefakes import FakeMachine, FakeMachines
from tests.kit.engine.enginefakes_storage import FakeVolumes

GIB = 1 << 30


def chain(*names: str) -> DiskLayer:
    layer: DiskLayer | None = None
    for name in names:
        layer = DiskLayer(Path(name), "qcow2", layer)
    assert layer is not None
    return layer


@pytest.mark.parametrize(
    ("used", "wanted", "steps"),
    [
        (("a",), ("a", "b"), ["b"]),
        (("a",), ("a", "b", "c"), ["b", "c"]),
        (("a", "b"), ("a", "b"), []),
        (("a", "b", "c"), ("a", "b"), []),
    ],
)
def test_steps(used: tuple[str, ...], wanted: tuple[str, ...], steps: list[str]) -> None:
    assert [str(each.path) for each in _steps(chain(*used), chain(*wanted))] == steps


def test_all_disks_take_their_last_step_together() -> None:
    one, two = [chain("b"), chain("c")], [chain("y")]
    assert _rounds({"one": one, "two": two}) == [{"one": one[0]}, {"one": one[1], "two": two[0]}]
    assert _rounds({"one": []}) == []


async def running(machines: FakeMachines, volumes: FakeVolumes, *, agent: bool = True) -> FakeMachine:
    disks = []
    for name in ("root", "data"):
        volume = await volumes.create(f"vol-{name}", GIB)
        disks.append(DiskConfig(name, volume.layer))
    machine = await machines.define("m", MachineConfig("m", CpuConfig(), MemoryConfig(GIB, GIB), disks=tuple(disks)))
    await machine.start()
    await asyncio.sleep(0.01)
    volumes.open |= {"vol-root", "vol-data"}
    if agent:
        machine.agent.connect()
    return machine


def play(script: object) -> None:
    asyncio.run(script)  # type: ignore[arg-type]  # a coroutine


WANTED = {"vol-root": "s1", "vol-data": "s2"}


def parts() -> tuple[FakeMachines, FakeVolumes, Snapshots]:
    machines, volumes = FakeMachines(), FakeVolumes()
    memories = MemoryStates(Path(mkdtemp(prefix="pdk-memory-")))
    return machines, volumes, Snapshots(cast(Machines, machines), cast(Volumes, volumes), memories)


@run_by(play)
async def test_the_disks_of_a_machine_go_on_together_while_it_is_quiet() -> None:
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)
    taken = await snapshots.take(WANTED)
    assert taken == SnapshotContext(online=True, agent=True, quiesced=True)
    assert [set(each) for each in machine.overlays] == [{"root", "data"}]
    names = [name for name, *_ in machine.agent.calls]
    assert (names, machine.agent.is_frozen) == (["freeze", "thaw"], False)
    assert all(volumes.get_snapshot(each) is not None for each in ("s1", "s2"))
    # Repeated, nothing is done.
    await snapshots.take(WANTED)
    assert len(machine.overlays) == 1


@run_by(play)
async def test_without_an_agent_it_is_taken_all_the_same() -> None:
    machines, volumes, snapshots = parts()
    await running(machines, volumes, agent=False)
    assert await snapshots.take(WANTED) == SnapshotContext(online=True)


@run_by(play)
async def test_a_guest_that_cannot_be_quiet_is_thawed_and_said() -> None:
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)
    machine.agent.refuse["freeze"] = "a disk is busy"
    taken = await snapshots.take(WANTED)
    assert taken.agent and not taken.quiesced and "a disk is busy" in taken.problem
    assert [name for name, *_ in machine.agent.calls] == ["freeze", "thaw"]


@run_by(play)
async def test_a_guest_is_thawed_when_its_disks_cannot_go_on() -> None:
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)

    async def refuse(layers: object) -> None:
        raise RequestRefused("cannot lay it", reason="NotAnOverlay")

    machine.overlay_disks = refuse  # type: ignore[method-assign]
    with pytest.raises(RequestRefused):
        await snapshots.take(WANTED)
    assert not machine.agent.is_frozen
    assert volumes.get_snapshot("s1") is None


@run_by(play)
async def test_volumes_at_rest_need_no_machine() -> None:
    _, volumes, snapshots = parts()
    await volumes.create("vol-root", GIB)
    assert await snapshots.take({"vol-root": "s1"}) == SnapshotContext()
    assert volumes.get_snapshot("s1") is not None


@run_by(play)
async def test_disks_of_a_machine_that_is_about_to_open_them_are_left_alone() -> None:
    machines, volumes, snapshots = parts()
    machines.hold("m")
    machine = await running(machines, volumes, agent=False)
    volumes.open.clear()
    layers = {disk.name: disk.layer for disk in machine.config.disks}
    with pytest.raises(VolumeBusy):
        await snapshots.take(WANTED)
    assert {f"vol-{name}": volumes.volumes[f"vol-{name}"].layer for name in layers} == {f"vol-{name}": it for name, it in layers.items()}
    machines.release("m")
    await asyncio.sleep(0.01)
    assert (await snapshots.take(WANTED)).online


# --- with memory ----------------------------------------------------------------------------------------------------------

MEMORY = WantedMemory("m1")


@run_by(play)
async def test_memory_and_disks_are_of_one_moment_and_nobody_is_frozen() -> None:
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)
    taken = await snapshots.take_with_memory(WANTED, MEMORY)
    assert taken.online and taken.memory is not None and taken.memory.size == 38 << 20 and not taken.quiesced
    assert [set(each) for each in machine.overlays] == [{"root", "data"}] and not machine.agent.calls
    assert set(volumes.snapshots) == {"s1", "s2"}
    # Repeated after a kill, it finds all.
    again = await snapshots.take_with_memory(WANTED, MEMORY)
    assert again.memory == taken.memory and len(machine.overlays) == 1


@pytest.mark.parametrize("moved", [("root", "data"), ("root",)])
@run_by(play)
async def test_disks_that_have_gone_on_without_memory_are_never_taken_for_it(moved: tuple[str, ...]) -> None:
    """Paddock was killed after the switch, or it laid a layer over one disk when it was back."""
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)
    layers = {name: await volumes.next_layer(f"vol-{name}", WANTED[f"vol-{name}"]) for name in ("root", "data")}
    await machine.overlay_disks({name: layers[name] for name in moved})
    with pytest.raises(RequestRefused, match="take another one") as caught:
        await snapshots.take_with_memory(WANTED, MEMORY)
    assert caught.value.reason == "MemoryLost" and not volumes.snapshots and len(machine.overlays) == 1


@run_by(play)
async def test_a_failure_leaves_no_memory() -> None:
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)
    machine.unwritable = "QEMU said no"
    with pytest.raises(RequestRefused, match="QEMU said no"):
        await snapshots.take_with_memory(WANTED, MEMORY)
    assert not list(snapshots._memories.root.iterdir())
    machine.unwritable = ""
    assert (await snapshots.take_with_memory(WANTED, MEMORY)).memory is not None


@run_by(play)
async def test_a_machine_that_does_not_run_has_no_memory() -> None:
    _, volumes, snapshots = parts()
    for volume in WANTED:
        await volumes.create(volume, GIB)
    for ask in (snapshots.demand_memory(WANTED, MEMORY), snapshots.take_with_memory(WANTED, MEMORY)):
        with pytest.raises(RequestRefused, match="no machine runs on its volumes") as caught:
            await ask
        assert caught.value.reason == "MemoryNotPossible"


@run_by(play)
async def test_no_machine_is_asked_about_a_volume_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    machines, volumes, snapshots = parts()
    machine = await running(machines, volumes)
    assert snapshots.user_of("vol-root") is cast(object, machine)
    assert snapshots.user_of("vol-other") is None

    def refuse(_: object) -> None:
        raise AssertionError("all machines were looked through")

    monkeypatch.setattr(FakeMachines, "__iter__", refuse)
    assert snapshots.user_of("vol-other") is None
