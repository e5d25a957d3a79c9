"""A guest whose memory was kept, in another run of its machine or in a fork: is that the same hardware, and what is new? Pure."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from paddock.engine.machine import forks
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.memorysnapshots import hardware_of

# Given anew at each start, or seen by the host alone.
_NOT_SEEN = ("label", "limits", "reboot_ends")
_KEPT = Path("kept")


def mismatches(saved: SavedMachine, qemu: str, host: HostView, verb: str = "was taken") -> Iterator[str]:
    """Yield the reasons why the guest cannot go on on this host. Releases of one series of QEMU read the states of each other."""
    here = ".".join(map(str, host.version))
    if _series(qemu) != _series(here):
        yield f"it {verb} with QEMU {qemu}, and this host has {here}"
    if host.accelerator != saved.accelerator:
        yield f"it {verb} under {saved.accelerator}, and this host has {host.accelerator}"
    elif saved.accelerator == "kvm" and host.processor != saved.processor:
        yield f"it {verb} on a processor {saved.processor or 'of an unknown model'}, and this host has {host.processor or 'another one'}"


def _series(version: str) -> list[str]:
    return version.split(".")[:2]


def differences(saved: SavedMachine, fresh: MachineConfig) -> tuple[str, ...]:
    """Return the members in which a machine differs from the one that the guest knows; empty: it finds all that it had.

    A fork has MAC addresses and a firmware UUID of its own.
    """
    fork = forks.is_fork(saved.config, fresh)
    before, now = _seen(saved.started, fork=fork), _seen(_with_counter_of(saved, fresh), fork=fork)
    return tuple(sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)))


def described_differences(saved: SavedMachine, fresh: MachineConfig) -> tuple[str, ...]:
    """Return the same members for people: each with what differs in it, as far as that has a name."""
    fork = forks.is_fork(saved.config, fresh)
    before, now = _seen(saved.started, fork=fork), _seen(_with_counter_of(saved, fresh), fork=fork)
    parts = {name: sorted(_parts(before.get(name), now.get(name))) for name in differences(saved, fresh)}
    nics = {nic.name: nic.mac for nic in saved.started.nics}
    parts |= {"nics": [f"MAC of {nic.name}" for nic in fresh.nics if nics.get(nic.name, nic.mac) != nic.mac]} if "nics" in parts else {}
    return tuple(f"{name} ({', '.join(found)})" if found else name for name, found in parts.items())


def _parts(before: object, now: object) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        yield from (str(name) for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _with_counter_of(saved: SavedMachine, fresh: MachineConfig) -> MachineConfig:
    """Return a machine without a generation counter if the guest knows none: one that was started by an earlier Paddock."""
    return fresh if saved.started.devices.generation_id else replace(fresh, devices=replace(fresh.devices, generation_id=""))


def _seen(config: MachineConfig, *, fork: bool) -> dict[str, object]:
    """The config as far as the guest sees it, or a state of QEMU depends on it."""
    config = hardware_of(config)
    # QEMU writes the variables and the TPM's state that come with the guest's into the machine's own files.
    variables, tpm = config.firmware.variables and _KEPT, config.devices.tpm
    firmware = replace(config.firmware, variables=variables, acpi_tables=(), files=())
    tpm = replace(tpm, state=_KEPT) if tpm is not None and tpm.state is not None else tpm
    generation = "set" if config.devices.generation_id else ""
    if fork:
        firmware = replace(firmware, uuid="", serial="")
        config = replace(config, nics=tuple(replace(nic, mac="") for nic in config.nics))
    found: dict[str, object] = {
        **to_builtins(config, enc_hook=str),
        "machine_type": "",
        "firmware": to_builtins(firmware, enc_hook=str),
        "kernel": config.kernel is not None,
        "cpu": to_builtins(replace(config.cpu, pinned=(), emulator_pinned=())),
        "nics": [(nic.name, nic.mac, nic.model, nic.pci_address, nic.acpi_index, nic.mtu, _queues(nic.backend)) for nic in config.nics],
        "devices": to_builtins(replace(config.devices, generation_id=generation, tpm=tpm), enc_hook=str),
    }
    return {name: value for name, value in found.items() if name not in _NOT_SEEN}


def _queues(backend: object) -> int:
    return getattr(backend, "queues", 1)


def rehosted(saved: SavedMachine, fresh: MachineConfig, *, hostname: str = "") -> SavedMachine:
    """The guest as it is saved, with the files and networks of a machine that was prepared anew; `hostname` is that of a fork."""
    fresh = _with_counter_of(saved, fresh)
    links = {nic.name: nic.link_up for nic in saved.config.nics}
    config = replace(fresh, nics=tuple(replace(nic, link_up=links.get(nic.name, nic.link_up)) for nic in fresh.nics))
    has_other_identity = saved.agent and forks.is_fork(saved.config, fresh)
    identity = forks.identity(saved.config, fresh, hostname) if has_other_identity else None
    return replace(saved, started=replace(fresh, machine_type=saved.started.machine_type), config=config, identity=identity)
