"""Forks with real QEMUs: a guest of another machine gets an identity of its own, whoever is killed before."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from paddock.base.images.build import tiny
from paddock.engine.machine import identities, rehosting
from paddock.engine.machine.errors import StartFailed
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.memorystates import MemoryState, MemoryStates
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, qemus, run, until, until_phase
from tests.host.machines.test_memory import fresh_of, kept, memories
from tests.host.machines.test_renewal import booted, says, small

pytestmark = pytest.mark.needs("qemu")
MAC = "02:00:00:00:00:fe"
_COUNT = "(i=0; while :; do i=$((i+1)); echo $i > /tmp/next; mv /tmp/next /tmp/count; sleep 0.05; done) </dev/null >/dev/null 2>&1 &"
# Each change of what its network interface has.
_LINK = "$(cat /sys/class/net/eth0/carrier 2>/dev/null) $(cat /sys/class/net/eth0/address)"
_EACH = f'while :; do now="{_LINK}"; [ "$now" = "$was" ] || echo "$now" >>/tmp/links; was=$now; sleep 0.02; done'
_WATCH = f"({_EACH}) </dev/null >/dev/null 2>&1 &"


async def _source(place: Place, guest: tiny.TinyImage, port: int) -> tuple[QemuMachine, Machines, MemoryStates, MemoryState]:
    """A guest that counts, and its memory."""
    machines, states = place.open(), memories(place)
    await machines.adopt()
    config = small(place, guest, port)
    backend = replace(config.nics[0].backend, forwards=())
    machine = await machines.define("a", replace(config, disks=config.disks[:1], nics=(replace(config.nics[0], backend=backend),)))
    await booted(machine)
    await identities.check(machine.agent, "a")
    await says(machine, f"{_COUNT} {_WATCH} sleep 1")
    return machine, machines, states, await kept(machine, states, place.root)


async def _begun(place: Place, machines: Machines, states: MemoryStates, state: MemoryState) -> QemuMachine:
    fresh = fresh_of(state.record.saved.config, place.root, "b")
    fresh = replace(fresh, nics=(replace(fresh.nics[0], mac=MAC),))
    assert rehosting.differences(state.record.saved, fresh) == ()
    fork = await machines.define("b", fresh)
    await fork.begin_suspended(rehosting.rehosted(state.record.saved, fresh, hostname="fork"), states.filler("s"))
    await fork.start()
    await until(fork, lambda one: one.observed.phase in ("running", "ended") and not one.observed.stands_still, "it goes on")
    return fork


def _adopted(machines: Machines, id: str) -> QemuMachine:
    found = machines.get(id)
    assert found is not None
    return found


async def _is_itself(fork: QemuMachine) -> None:
    await until(fork, lambda one: one.observed.agent, "it is itself", 120)
    assert await says(fork, "hostname; cat /sys/class/net/eth0/address") == f"fork\n{MAC}"
    links = (await says(fork, "sleep 1; cat /tmp/links")).splitlines()
    # It was unplugged before it got another address, and had no network with the former one.
    unplugged = next(number for number, line in enumerate(links) if not line.startswith("1 "))
    assert links[-1] == f"1 {MAC}" and all(line == links[-1] for line in links[unplugged:] if line.startswith("1 ")), links
    count = int(await says(fork, "cat /tmp/count"))
    assert int(await says(fork, "sleep 1; cat /tmp/count")) > count


@pytest.mark.spec("kubevirt", 245)
@pytest.mark.spec("kubevirt", 249)
@pytest.mark.parametrize("killed", ["", "before", "meanwhile"])
@played_by(run, seconds=600)
async def test_a_fork_is_itself_before_it_has_a_network(
    place: Place, tiny_guest: tiny.TinyImage, free_port: Callable[[], int], monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    """Paddock goes before the agent is asked, or while the guest has half of its identity; the next one gives all of it."""
    change, reached = identities.change, asyncio.Event()

    async def hangs(*arguments: object) -> None:
        if killed == "meanwhile":
            await change(*arguments)  # type: ignore[arg-type]
        reached.set()
        await asyncio.Event().wait()

    source, machines, states, state = await _source(place, tiny_guest, free_port())
    pid, name = source.observed.pid, await says(source, "hostname")
    if killed:
        monkeypatch.setattr(identities, "change", hangs)
    fork = await _begun(place, machines, states, state)
    if killed:
        await asyncio.wait_for(reached.wait(), 60)
        assert not fork.observed.agent
        machines.close()
        monkeypatch.undo()
        machines = place.open()
        await machines.adopt()
        source, fork = _adopted(machines, "a"), _adopted(machines, "b")
    await _is_itself(fork)
    await until(source, lambda one: one.observed.agent, "its agent is found")
    assert (source.observed.pid, await says(source, "hostname")) == (pid, name)
    count = int(await says(source, "cat /tmp/count"))
    assert int(await says(source, "sleep 1; cat /tmp/count")) > count
    assert fork._owner.record.identity is None and not fork.observed.detail


@pytest.mark.spec("kubevirt", 249)
@played_by(run, seconds=600)
async def test_a_guest_that_takes_no_identity_has_no_network(
    place: Place, tiny_guest: tiny.TinyImage, free_port: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, machines, states, state = await _source(place, tiny_guest, free_port())

    async def fails(*_: object) -> None:
        raise StartFailed("cannot give it an identity", why="its kernel does not want one")

    monkeypatch.setattr(identities, "change", fails)
    fork = await _begun(place, machines, states, state)
    await until(fork, lambda one: "has no network" in one.observed.detail, "it says so", 60)
    assert "its kernel does not want one" in fork.observed.detail and not fork.observed.agent
    # QEMU is killed: the run is over, and the next one boots as itself.
    os.kill(fork.observed.pid, signal.SIGKILL)
    await until_phase(fork, "ended")
    monkeypatch.undo()
    await booted(fork)
    assert await says(fork, "cat /sys/class/net/eth0/address; ls /tmp/count 2>/dev/null; true") == MAC
    assert set(qemus(place.machines)) == {"a", "b"} and source.observed.phase == "running"
