"""Running machines for tests: from a few changes to the command line QEMU would get."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.view import EfiFiles, FileView, HostView, VirtioFs
from paddock.engine.machine.config import DiskLayer, KernelConfig, Tap, UserNetwork
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.defaults import InstallationDefaults, defaulted
from paddock.kubevirt.translate.config import MachineTranslation, machine_config
from paddock.kubevirt.translate.resolved import MachineInputs, ResolvedCard, ResolvedHost, ResolvedVolume

UUID = "0b0c2d1e-0000-4000-8000-000000000001"
USER = UserNetwork(network="10.0.2.0/24", gateway="10.0.2.1", address="10.0.2.2", dns="10.0.2.3")
HOST = ResolvedHost(
    machine_types={"q35": "pc-q35-7.2", "pc-q35-7.2": "pc-q35-7.2", "virt": "virt-7.2"},
    cpu_models=frozenset({"Skylake-Client", "qemu64"}),
    cpu_flags=frozenset({"aes"}),
    has_timezone=lambda name: name == "Europe/Oslo",
    vsock=True,
)
_OVMF = Path("/usr/share/OVMF")
_EFI = EfiFiles(_OVMF / "OVMF_CODE_4M.fd", _OVMF / "OVMF_VARS_4M.fd")
_VIEW = HostView(
    qemu=Path("/usr/bin/qemu-system-x86_64"),
    accelerator="tcg",
    efi=_EFI,
    secure_efi=EfiFiles(_OVMF / "OVMF_CODE_4M.ms.fd", _OVMF / "OVMF_VARS_4M.ms.fd"),
    swtpm=Path("/usr/bin/swtpm"),
    virtiofs=VirtioFs(Path("/usr/libexec/virtiofsd")),
    io_uring=True,
    files={Path("/dev/device"): FileView(device=True, solid=True)},
)


def changed(data: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data with values put in at dotted paths."""
    for path, given in changes.items():
        *steps, last = path.split(".")
        # The values of a table are used again and again.
        value = copy.deepcopy(given)
        place = data
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
    return data


def instance(
    changes: Mapping[str, Any] | None = None, annotations: Mapping[str, str] | None = None, *, name: str = "vm", defaults: bool = True
) -> VirtualMachineInstance:
    """A running machine of 1Gi with changes to its spec."""
    spec = changed({"domain": {"devices": {}, "memory": {"guest": "1Gi", "maxGuest": "1Gi"}}}, changes or {})
    metadata = {"name": name, "namespace": "ns", "annotations": dict(annotations or {})}
    found = msgspec.convert({"metadata": metadata, "spec": spec}, VirtualMachineInstance)
    return msgspec.structs.replace(found, spec=defaulted(found.spec, InstallationDefaults())) if defaults else found


def resolved(machine: VirtualMachineInstance, host: ResolvedHost = HOST) -> MachineInputs:
    """Return the inputs of a machine: everything, except objects called "missing"."""
    spec = machine.spec
    volumes = {volume.name: _volume(volume.name) for volume in spec.volumes or () if volume.name != "missing"}
    cards = {card.name: _card(card.name) for card in spec.domain.devices.interfaces or () if card.name != "missing"}
    passed = [*(spec.domain.devices.gpus or ()), *(spec.domain.devices.hostDevices or ())]
    boot = spec.domain.firmware.kernelBoot if spec.domain.firmware is not None else None
    has_kernel = boot is not None and boot.container is not None and boot.container.image != "missing"
    cpu = spec.domain.cpu
    pinned = cpu is not None and bool(cpu.dedicatedCpuPlacement)
    return MachineInputs(
        volumes=volumes,
        cards=cards,
        devices={device.name: "0000:01:00.0" for device in passed if device.name != "missing"},
        kernel=KernelConfig(Path("/images/kernel"), Path("/images/initrd")) if has_kernel else None,
        efi_variables=Path("/state/efi-vars.fd"),
        tpm_state=Path("/state/tpm"),
        ignition=Path("/seeds/ignition") if "kubevirt.io/ignitiondata" in (machine.metadata.annotations or {}) else None,
        vsock=42,
        vcpus=(4, 5) if pinned else (),
        emulator=(6,) if pinned and cpu is not None and cpu.isolateEmulatorThread else (),
        host=host,
    )


def _volume(name: str) -> ResolvedVolume:
    if name == "device":
        return ResolvedVolume(layer=DiskLayer(Path("/dev/device"), "raw"), device=True, blocks=(4096, 4096))
    return ResolvedVolume(
        layer=DiskLayer(Path(f"/volumes/{name}.img"), "raw"), directory=Path(f"/seeds/{name}"), file=Path(f"/seeds/{name}")
    )


def _card(name: str) -> ResolvedCard:
    if name == "function":
        return ResolvedCard(pci="0000:02:00.1")
    return ResolvedCard(
        mac="02:00:00:00:00:01", backend=USER if name == "user" else Tap(f"tap-{name}"[:15], queues=4 if name == "queues" else 1)
    )


@dataclass(frozen=True)
class Translated:
    """A machine with its command."""

    result: MachineTranslation
    view: HostView

    @property
    def command(self) -> Command:
        """The command that would start it."""
        return command(self.result.config, self.view)

    @property
    def text(self) -> str:
        """Everything a process owner is told, as one text."""
        found = self.command
        parts = [*found.argv, *(f"{key}={value}" for key, value in found.environment.items())]
        parts += [f"pins {found.pins.vcpus}", f"emulator {found.pins.emulator}"]
        parts += [f"limit {name} {value}" for name, value in self.result.config.limits.items()]
        parts += [f"{request.execute} {dict(request.arguments)}" for request in found.before_start]
        return " ".join(parts)


def translated(machine: VirtualMachineInstance, *, kvm: bool = False, host: Mapping[str, Any] | None = None) -> Translated:
    """The machine on a host, emulated or by KVM."""
    accelerator: Any = "kvm" if kvm else "tcg"
    found = msgspec.structs.replace(HOST, accelerator=accelerator, **(host or {}))
    result = machine_config(machine, resolved(machine, found))
    return Translated(result, msgspec.structs.replace(_VIEW, accelerator=accelerator))
