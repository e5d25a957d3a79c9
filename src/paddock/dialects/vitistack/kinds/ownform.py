"""The two forms of a Machine, and the way from Vitistack's own to the document's (docs/design/0027-vitistack-forms.md).

`documented` makes the document's form of a machine in the other: it is what the translation works with. What the document has no word
for (the bus of a disk, the disk that boots, keys, the guest's name) stays in the members of the own form, and is read there.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from paddock.base import quantity
from paddock.dialects.vitistack.kinds.fields import (
    Domain,
    MachineBootloader,
    MachineCloudInit,
    MachineCpu,
    MachineDisk,
    MachineFirmware,
    MachineMemory,
    MachineNetwork,
    MachineResources,
)
from paddock.dialects.vitistack.kinds.machinespec import MachineSpec
from paddock.dialects.vitistack.kinds.marks import BOOT_SOURCE, DATA_VOLUME, ROOT_DISK
from paddock.dialects.vitistack.kinds.ownfields import OwnCpu
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine
    from paddock.dialects.vitistack.kinds.machineclass import MachineClassSpec

CARD = "eth0"
# The root disk of a machine that lists no disk.
ROOT_SIZE_GB = 10

DOCUMENT = ("template", "resources", "networks", "bootOrder", "domain")
OWN = (
    *("provider", "machineClass", "name", "cpu", "memory", "network", "sshKeys", "userData"),
    *("machineType", "providerConfig", "tags", "securityGroups", "monitoring", "backup"),
)
DOCUMENT_DISK = ("size", "storageClass", "accessMode", "volumeMode")
OWN_DISK = ("sizeGB", "type", "boot", "device", "encrypted", "iops", "throughput")
OWN_CLOUD_INIT = (
    *("type", "userDataBase64", "networkDataBase64"),
    *("userDataSecretRef", "networkDataSecretRef", "userDataConfigMapRef", "networkDataConfigMapRef"),
)
OWN_NETWORK = ("vpc", "subnet", "assignPublicIP", "privateIP", "publicIP", "interfaces")
OWN_OS = ("isoUri", "architecture", "family", "distribution", "version", "imageFamily")


def own_members(spec: MachineSpec) -> Iterator[Path]:
    """Yield the members of Vitistack's own form that a machine has."""
    yield from _given(spec, OWN)
    for index, disk in enumerate(spec.disks):
        yield from _given(disk, OWN_DISK, "disks", index)
    yield from _given(spec.network, OWN_NETWORK, "network")
    yield from _given(spec.cloudInit, OWN_CLOUD_INIT, "cloudInit")
    yield from _given(spec.os, OWN_OS, "os")


def document_members(spec: MachineSpec) -> Iterator[Path]:
    """Yield the members of the document's form that a machine has."""
    yield from _given(spec, DOCUMENT)
    for index, disk in enumerate(spec.disks):
        yield from _given(disk, DOCUMENT_DISK, "disks", index)
    yield from _given(spec.cloudInit, ("secretRef",), "cloudInit")


def is_own(spec: MachineSpec) -> bool:
    """Return whether a machine is in Vitistack's own form."""
    return next(own_members(spec), None) is not None


def _given(value: Object | None, names: tuple[str, ...], *place: str | int) -> Iterator[Path]:
    for name in names if value is not None else ():
        member = getattr(value, name)
        # The schema gives every machine an empty list of networks.
        if member is not None and (name != "networks" or member):
            yield ("spec", *place, name)


def networks(spec: MachineSpec) -> list[MachineNetwork]:
    """Return the cards that are on a NetworkConfiguration, in either form."""
    name = spec.network.networkNamespaceName if spec.network else None
    return [MachineNetwork(name=CARD, networkName=name)] if name else spec.networks


def disks(spec: MachineSpec) -> list[MachineDisk]:
    """Return the disks with sizes as the document writes them, in either form."""
    if not is_own(spec):
        return spec.disks
    return [_disk(disk) for disk in spec.disks] or [MachineDisk(name=ROOT_DISK, size=f"{ROOT_SIZE_GB}Gi")]


def documented(machine: "Machine", size: "MachineClassSpec") -> "Machine":
    """The document's form of a machine in Vitistack's own; `size` is what its class gives."""
    spec = machine.spec
    made = MachineSpec(
        resources=_resources(spec, size),
        disks=disks(spec),
        networks=networks(spec),
        bootOrder=["disk", "cdrom" if _installs(machine) else "network"],
        cloudInit=_cloud_init(spec),
        domain=Domain(firmware=MachineFirmware(bootloader=MachineBootloader(efi=True))),
        os=spec.os,
        name=spec.name,
        sshKeys=spec.sshKeys,
        provider=spec.provider,
    )
    return msgspec.structs.replace(machine, spec=made)


def _resources(spec: MachineSpec, size: "MachineClassSpec") -> MachineResources:
    cpu, given = spec.cpu or OwnCpu(), size.cpu
    memory = size.memory.quantity
    return MachineResources(
        cpu=MachineCpu(
            cores=cpu.cores or given.cores,
            threads=cpu.threadsPerCore or given.threads or 1,
            sockets=cpu.sockets or given.sockets or 1,
        ),
        memory=MachineMemory(size=quantity.binary(spec.memory) if spec.memory else memory),
    )


def _cloud_init(spec: MachineSpec) -> MachineCloudInit | None:
    """The documents, with the user data that stands beside them; keys need documents to come with."""
    given = spec.cloudInit
    if not spec.userData:
        return MachineCloudInit() if given is None and spec.sshKeys else given
    given = given or MachineCloudInit()
    return MachineCloudInit(
        type=given.type,
        userData=spec.userData,
        networkData=given.networkData,
        networkDataBase64=given.networkDataBase64,
        networkDataSecretRef=given.networkDataSecretRef,
        networkDataConfigMapRef=given.networkDataConfigMapRef,
    )


def _disk(disk: MachineDisk) -> MachineDisk:
    return MachineDisk(
        name=disk.name,
        size=None if disk.sizeGB is None else f"{disk.sizeGB}Gi",
        type=disk.type,
        boot=disk.boot,
    )


def _installs(machine: "Machine") -> bool:
    """Return whether an installation image is named."""
    os = machine.spec.os
    named = (machine.metadata.annotations or {}).get(BOOT_SOURCE) == DATA_VOLUME
    return os is not None and bool(os.isoUri or (os.imageID and named))


# --- the same, as a kube-apiserver asks it --------------------------------------------------------------------------------


# Members for which the empty text means nothing given.
_TEXTS = ("template", "storageClass", "type", "architecture")


def _has(owner: str, names: tuple[str, ...]) -> str:
    return " || ".join(f"(has({owner}.{name}) && {owner}.{name} != '')" if name in _TEXTS else f"has({owner}.{name})" for name in names)


# `self` is the spec.
OWN_CEL = (
    f"({_has('self', OWN)} || self.disks.exists(d, {_has('d', OWN_DISK)}) || "
    f"(has(self.cloudInit) && ({_has('self.cloudInit', OWN_CLOUD_INIT)})) || (has(self.os) && ({_has('self.os', OWN_OS)})))"
)
DOCUMENT_CEL = (
    f"({_has('self', ('template', 'resources', 'bootOrder', 'domain'))} || "
    f"self.networks.size() > 0 || self.disks.exists(d, {_has('d', DOCUMENT_DISK)}) || "
    "(has(self.cloudInit) && has(self.cloudInit.secretRef)))"
)
