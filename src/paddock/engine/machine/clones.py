"""Warm clones: a guest that runs is frozen, and others go on from there in a moment, each as a machine of its own.

A machine that is to be frozen is started from `freezable(...)`: its memory is a file. `freeze` ends it and leaves a `CloneTemplate`:
the file of its memory, the small rest of its state, and its disks, which nobody writes any more. A clone maps the memory privately, so
that pages it never writes exist once, lays a disk of its own over each of the template's, and wakes with its cards unplugged. Before they
are plugged in, the guest's agent gives it its own name, addresses, host keys, clock and entropy.

What a clone keeps of the template: the firmware's UUID and serial numbers, which a guest reads once, and what programs in it remember.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine.machine import identities
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig, Nic, StreamNetwork, Tap, UserNetwork
from paddock.engine.machine.directory import decode_config, encode_config
from paddock.engine.machine.errors import RequestRefused, StartFailed
from paddock.engine.machine.forks import GuestIdentity
from paddock.engine.machine.machine import QemuMachine

# The memory has another name while its machine runs, so that a template survives another start of that machine.
_LIVE, _MEMORY, _STATE, _DESCRIPTION = "live", "memory", "state", "template.json"
_IDENTITY_SECONDS = 60.0
_PAUSE = 0.004


class CloneTemplate(Struct, frozen=True):
    """A frozen guest. Its folder, and the layers of its disks, must not be written as long as clones of it run or may be started."""

    folder: Path
    config: MachineConfig

    @property
    def memory(self) -> Path:
        return self.folder / _MEMORY

    @property
    def state(self) -> Path:
        """The rest of the machine's state."""
        return self.folder / _STATE


class CloneNic(Struct, frozen=True):
    """A card of a clone, in place of the template's.

    QEMU's own network remembers which address it gave to which card, and a guest is alone in it: there the template's MAC is kept.
    """

    mac: str
    backend: Tap | UserNetwork | StreamNetwork


class Clone(Struct, frozen=True):
    """The own parts of a clone: a layer over each disk that is written, every card, a name."""

    label: str
    disks: Mapping[str, DiskLayer]
    nics: Mapping[str, CloneNic]
    # a fresh UUID
    generation_id: str
    hostname: str = ""


class CloneTimings(Struct):
    """The time of each step, in seconds since the request to start."""

    times: dict[str, float] = field(default_factory=dict)


def obstacles(config: MachineConfig) -> tuple[str, ...]:
    """Return the reasons why a machine cannot be cloned while it runs; empty: it can."""
    found = []
    if config.devices.tpm is not None:
        found.append("its TPM holds secrets that must exist once")
    if config.devices.pci:
        found.append("devices of the host are passed through to it")
    if config.devices.shared:
        found.append("it shares directories with the host, whose state is in another program")
    if config.memory.hugepage:
        found.append("its memory is in huge pages, which cannot be copied on write from a file")
    if config.cpu.pinned:
        found.append("its processors are pinned to ones of the host, which a clone cannot have as well")
    if config.firmware.variables is not None:
        found.append("its firmware keeps variables in a file of its own")
    if not config.devices.agent:
        found.append("it has no channel for a guest agent, which gives a clone its own identity")
    found += [f"disk {disk.name} {why}" for disk in config.disks if (why := _disk_obstacle(disk))]
    return tuple(found)


def _disk_obstacle(disk: DiskConfig) -> str:
    if disk.shareable and not disk.readonly:
        return "is written by several machines"
    if disk.role == "lun":
        return "is a device of the host"
    return ""


def freezable(config: MachineConfig, folder: Path) -> MachineConfig:
    """The machine as it has to be started to be frozen later; `folder` is the template's to be. Raises `RequestRefused` if it cannot be."""
    _demand_none(obstacles(config), config.label)
    devices = replace(config.devices, generation_id=config.devices.generation_id or "00000000-0000-4000-8000-000000000001")
    memory = replace(config.memory, file=folder / _LIVE, private=False)
    return replace(config, memory=memory, devices=devices)


def cold(config: MachineConfig) -> MachineConfig:
    """A clone, or a machine to be frozen, as an ordinary one: what it is started from once it has ended."""
    return replace(config, memory=replace(config.memory, file=None, private=False))


def _demand_none(reasons: tuple[str, ...], who: str) -> None:
    if reasons:
        raise RequestRefused(
            f"cannot clone machine {who}", reason="NotClonable", why="; ".join(reasons), fix="start a new one from its disk"
        )


async def freeze(machine: QemuMachine, folder: Path) -> CloneTemplate:
    """The guest stands still for good, and its machine ends with `saved`. Raises `RequestRefused`, and then it runs on."""
    config = machine.config
    _demand_none(obstacles(config), machine.id)
    if config.memory.file != folder / _LIVE or config.memory.private:
        raise RequestRefused(
            f"cannot freeze machine {machine.id}", reason="NotFreezable", why="its memory is not a file", fix="start it from `freezable`"
        )
    if machine.plugged:
        why = "devices were plugged or unplugged since its start, which a clone would not have"
        raise RequestRefused(f"cannot freeze machine {machine.id}", reason="NotClonable", why=why, fix="start it anew with them")
    # Without an agent no clone could ever become another machine.
    await machine.agent.ping()
    await machine.save(folder / _STATE)
    await _ended(machine)
    os.rename(folder / _LIVE, folder / _MEMORY)
    (folder / f"{_DESCRIPTION}.new").write_bytes(encode_config(config))
    os.rename(folder / f"{_DESCRIPTION}.new", folder / _DESCRIPTION)
    return CloneTemplate(folder, config)


def load(folder: Path) -> CloneTemplate:
    """A template that was made before. Raises `RequestRefused` when there is none."""
    try:
        config = decode_config((folder / _DESCRIPTION).read_bytes())
    except (OSError, ValueError) as error:
        why = f"{folder} holds none that is whole"
        raise RequestRefused("cannot use the template", reason="NoTemplate", why=why, fix="freeze a machine again") from error
    return CloneTemplate(folder, config)


async def _ended(machine: QemuMachine) -> None:
    async with asyncio.timeout(_IDENTITY_SECONDS):
        while machine.observed.phase != "ended":
            await asyncio.sleep(_PAUSE)
    end = machine.observed.end
    if end is None or end.reason != "saved":
        raise RequestRefused(
            f"cannot freeze machine {machine.id}", reason="Ended", why=f"it ended meanwhile: {end.reason if end else 'unknown'}"
        )


def config_of(template: CloneTemplate, clone: Clone) -> MachineConfig:
    """The machine that a clone is. Its cards are unplugged until it knows who it is."""
    disks = tuple(_disk(disk, clone) for disk in template.config.disks)
    nics = tuple(_nic(nic, clone) for nic in template.config.nics)
    memory = replace(template.config.memory, file=template.memory, private=True)
    devices = replace(template.config.devices, generation_id=clone.generation_id)
    return replace(template.config, label=clone.label, disks=disks, nics=nics, memory=memory, devices=devices)


def _disk(disk: DiskConfig, clone: Clone) -> DiskConfig:
    if disk.readonly or disk.role == "cdrom" or disk.layer is None:
        return disk
    layer = clone.disks.get(disk.name)
    if layer is None or layer.backing != disk.layer:
        raise RequestRefused(
            f"cannot clone {clone.label}", reason="NoLayer", why=f"disk {disk.name} needs a layer of its own over the template's"
        )
    return replace(disk, layer=layer)


def _nic(nic: Nic, clone: Clone) -> Nic:
    own = clone.nics.get(nic.name)
    if own is None:
        raise RequestRefused(
            f"cannot clone {clone.label}", reason="NoCard", why=f"card {nic.name} needs an address and a network of its own"
        )
    if isinstance(own.backend, UserNetwork) and own.backend.forwards and own.mac != nic.mac:
        why = f"the network of card {nic.name} forwards ports to an address that goes with its MAC"
        raise RequestRefused(
            f"cannot clone {clone.label}", reason="KeepMac", why=why, fix="keep the template's: nobody else is in that network"
        )
    return replace(nic, mac=own.mac, backend=own.backend, link_up=False)


async def awaken(machine: QemuMachine, template: CloneTemplate, clone: Clone) -> CloneTimings:
    """Starts a machine that was defined with `config_of`, and returns when it is a machine of its own with its cards plugged in.

    Raises `StartFailed` when it could not become one; it then has no network, and should be stopped.
    """
    began = time.monotonic()
    awakened = await wake(machine, template)
    await identify(machine, template, clone)
    awakened.times["identity"] = time.monotonic() - began
    return awakened


async def wake(machine: QemuMachine, template: CloneTemplate) -> CloneTimings:
    """The first half: returns when the guest runs and its agent answers. It still takes itself for the template, without a network."""
    began = time.monotonic()
    awakened = CloneTimings()
    await machine.start(state=template.state)
    async with _patiently(machine, "wake", "it did not answer"):
        await _until(machine, lambda: machine.observed.phase == "running")
        awakened.times["running"] = time.monotonic() - began
        await _until(machine, lambda: machine.agent.open)
        await machine.agent.ping()
        awakened.times["agent"] = time.monotonic() - began
    return awakened


async def identify(machine: QemuMachine, template: CloneTemplate, clone: Clone) -> None:
    """The second half: the guest gets a name, addresses, keys, a clock and entropy of its own, then its cards are plugged in."""
    identity = GuestIdentity(
        clone.hostname, {nic.name: (nic.mac.lower(), clone.nics[nic.name].mac.lower()) for nic in template.config.nics}
    )
    async with _patiently(machine, "give an identity to", "its agent did not carry that out"):
        await identities.change(machine.agent, machine.id, identity, time.time())
        for nic in template.config.nics:
            await machine.set_link(nic.name, True)
        await identities.lease(machine.agent, machine.id, _leases(template, clone, identity))


def _leases(template: CloneTemplate, clone: Clone, identity: GuestIdentity) -> GuestIdentity:
    """The cards that must ask for an address: all but those that are in a network like before, with the MAC of before."""
    stay = {nic.name for nic in template.config.nics if isinstance(clone.nics[nic.name].backend, UserNetwork)}
    macs = {name: (before, own) for name, (before, own) in identity.macs.items() if before != own or name not in stay}
    return replace(identity, macs=macs)


@contextlib.asynccontextmanager
async def _patiently(machine: QemuMachine, action: str, why: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_IDENTITY_SECONDS):
            yield
    except TimeoutError:
        raise StartFailed(f"cannot {action} machine {machine.id}", why=f"{why} within {_IDENTITY_SECONDS:g} s") from None
    except StartFailed:
        raise
    except PaddockError as error:
        raise StartFailed(f"cannot {action} machine {machine.id}", why=str(error), fix="stop it: it has no network") from error


async def _until(machine: QemuMachine, holds: Callable[[], bool]) -> None:
    while not holds():
        if machine.observed.phase == "ended":
            end = machine.observed.end
            raise StartFailed(f"cannot wake machine {machine.id}", why=(end.text or end.reason) if end else "it ended")
        await asyncio.sleep(_PAUSE)
