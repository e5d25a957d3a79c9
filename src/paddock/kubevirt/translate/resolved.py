"""The inputs of a machine's translation: volumes, cards, places for state, the host. Data."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from paddock.engine.machine.config import DiskLayer, KernelConfig, StreamNetwork, Tap, UserNetwork


class ResolvedVolume(msgspec.Struct, frozen=True):
    """A volume. One of: a layer for a disk, a directory for a shared file system, a file, or an error."""

    layer: DiskLayer | None = None
    directory: Path | None = None
    file: Path | None = None
    error: str = ""
    readonly: bool = False
    # the directory is the host's own
    as_owner: bool = False
    # it is a block device of the host
    device: bool = False
    # (logical, physical) size of its blocks where it has its own
    blocks: tuple[int, int] | None = None


class ResolvedCard(msgspec.Struct, frozen=True):
    """A network card. A PCI address is a device of the host that the guest gets itself."""

    mac: str = ""
    backend: Tap | UserNetwork | StreamNetwork | None = None
    mtu: int | None = None
    pci: str = ""
    error: str = ""


class ResolvedHost(msgspec.Struct, frozen=True):
    """The host as far as it decides what a manifest becomes."""

    accelerator: Literal["kvm", "tcg"] = "tcg"
    # names of machine types, aliases among them, to full names; empty: not known, so nothing is refused
    machine_types: Mapping[str, str] = msgspec.field(default_factory=dict)
    # the most processors of each machine type, by full name
    processors: Mapping[str, int] = msgspec.field(default_factory=dict)
    cpu_models: frozenset[str] = frozenset()
    # features that processors can have, and whether emulated ones do; empty: not known
    cpu_features: Mapping[str, bool] = msgspec.field(default_factory=dict)
    # flags of the host's own processor
    cpu_flags: frozenset[str] = frozenset()
    architectures: frozenset[str] = frozenset({"amd64", "arm64"})
    has_timezone: Callable[[str], bool] = lambda name: True
    io_uring: bool = True
    vsock: bool = False
    numa_nodes: int = 1


class MachineInputs(msgspec.Struct, frozen=True):
    """Everything that was found. Members that the machine does not need may be left out."""

    volumes: Mapping[str, ResolvedVolume] = msgspec.field(default_factory=dict)
    cards: Mapping[str, ResolvedCard] = msgspec.field(default_factory=dict)
    # names of gpus and hostDevices to PCI addresses of the host
    devices: Mapping[str, str] = msgspec.field(default_factory=dict)
    kernel: KernelConfig | None = None
    efi_variables: Path | None = None
    tpm_state: Path | None = None
    ignition: Path | None = None
    vsock: int | None = None
    generation_id: str = ""
    # host CPUs for the machine alone
    vcpus: tuple[int, ...] = ()
    emulator: tuple[int, ...] = ()
    host: ResolvedHost = ResolvedHost()
