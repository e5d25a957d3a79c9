"""The objects at the target that a machine consists of. Pure."""

import json
import re

import msgspec

from paddock.contract.description import MachineDescription, on_pod_network
from paddock.contract.messages import ObjectIdentity
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import TemplateMeta
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.storage import ResourceRequirements
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.schema.finding import format_path
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine
from paddock.kubevirt.kinds.volumes import ClaimVolume
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import marks, megahertz
from paddock_drivers.kubevirt.booting import BootDisk, BootKind, asked_size
from paddock_drivers.kubevirt.firewalls import MachineFirewall, firewall
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings

_GIB = 1 << 30
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
# The rest of a create that was interrupted is made by the next one, as long as this is there.
INCOMPLETE = "virtrigaud.io/incomplete"


class MachineDocuments(msgspec.Struct, frozen=True):
    """A machine and what goes with it, in the order in which it is made."""

    machine: VirtualMachine
    secrets: tuple[Secret, ...]
    definitions: tuple[NetworkAttachmentDefinition, ...]
    limitations: tuple[str, ...]
    firewall: MachineFirewall = MachineFirewall()


def build(
    description: MachineDescription, boot: BootDisk, settings: KubeVirtDriverSettings, *, secrets: tuple[Secret, ...] = ()
) -> MachineDocuments:
    """Translate a description. Raises the translation's errors: what cannot be kept is refused, the rest is a limitation."""
    guarded = firewall(description)
    hardware = megahertz.without(description.hardware, settings.processor_mhz)
    if hardware.guest_tools_policy == "skip":
        # KubeVirt installs nothing anyway, as asked.
        hardware = msgspec.structs.replace(hardware, guest_tools_policy="")
    described = msgspec.structs.replace(description, hardware=hardware)
    rendering = Rendering(product=settings.product, architecture=settings.architecture)
    result = settings.translation(described, boot.source(), settings.namespace, rendering, secrets)
    machine = next(each for each in result.value if isinstance(each, VirtualMachine))
    found = tuple(each for each in result.value if isinstance(each, Secret))
    definitions = tuple(each for each in result.value if isinstance(each, NetworkAttachmentDefinition))
    machine = _with_imported(machine, description)
    sizes, templates = _templates(machine, boot, description)
    losses = (each for each in result.losses if not _is_invented(each, boot))
    limitations = (*map(_sentence, losses), *sizes, *_networks_left(description), *guarded.limitations)
    annotations = dict(machine.metadata.annotations or {})
    imported = {each.name: each.size_gib for each in description.disks if each.path}
    annotations[marks.DISKS] = json.dumps({**_disk_sizes(templates, machine), **imported}, sort_keys=True)
    annotations[marks.LIMITATIONS] = json.dumps(limitations)
    annotations[marks.BOOT_VOLUME] = boot_volume(machine)
    metadata = msgspec.structs.replace(machine.metadata, annotations=annotations, ownerReferences=None)
    spec = msgspec.structs.replace(machine.spec, dataVolumeTemplates=templates or None, template=_template(machine, description, settings))
    return MachineDocuments(msgspec.structs.replace(machine, metadata=metadata, spec=spec), found, definitions, limitations, guarded)


def _template(machine: VirtualMachine, description: MachineDescription, settings: KubeVirtDriverSettings) -> VirtualMachineInstanceTemplate:
    """The template with what the translation has no place for."""
    return megahertz.limited(_limited(machine.spec.template, description), description.hardware, settings.processor_mhz)


def _limited(template: VirtualMachineInstanceTemplate, description: MachineDescription) -> VirtualMachineInstanceTemplate:
    """The template with the limits of the pod network's traffic, which has no definition of its own."""
    nic = next((each for each in description.networks if on_pod_network(each)), None)
    if nic is None or not nic.qos:
        return template
    rates = {marks.INGRESS_BANDWIDTH: nic.qos.ingress_limit, marks.EGRESS_BANDWIDTH: nic.qos.egress_limit}
    metadata = template.metadata or TemplateMeta()
    annotations = {**(metadata.annotations or {}), **{name: str(rate) for name, rate in rates.items() if rate}}
    return msgspec.structs.replace(template, metadata=msgspec.structs.replace(metadata, annotations=annotations or None))


def _with_imported(machine: VirtualMachine, description: MachineDescription) -> VirtualMachine:
    """Put imported disks in the place of the empty ones that the translation makes."""
    paths = {each.name: each.path for each in description.disks if each.path}
    if not paths:
        return machine
    template = machine.spec.template
    dropped, volumes = set(), []
    for volume in template.spec.volumes or ():
        path = paths.get(volume.name)
        if path and volume.dataVolume is not None:
            dropped.add(volume.dataVolume.name)
            claim = ClaimVolume(claimName=path)
            volumes.append(msgspec.structs.replace(volume, dataVolume=None, persistentVolumeClaim=claim))
        else:
            volumes.append(volume)
    templates = [each for each in machine.spec.dataVolumeTemplates or () if template_name(each) not in dropped]
    inside = msgspec.structs.replace(template, spec=msgspec.structs.replace(template.spec, volumes=volumes))
    spec = msgspec.structs.replace(machine.spec, template=inside, dataVolumeTemplates=templates or None)
    return msgspec.structs.replace(machine, spec=spec)


def claimed(machine: VirtualMachine, owner: ObjectIdentity | None, digest: str) -> VirtualMachine:
    """Return a new machine with the marks of its owner and of a create that has not ended."""
    labels, annotations = dict(machine.metadata.labels or {}), {**(machine.metadata.annotations or {}), INCOMPLETE: "true"}
    if owner is not None and owner.uid:
        if _LABEL_VALUE.match(owner.uid) is None:
            raise refusals.invalid("the owner has no proper uid", fix="send the uid of the VirtualMachine")
        labels[marks.OWNER_UID] = owner.uid
        annotations[marks.OWNER] = f"{owner.namespace}/{owner.name}"
    else:
        annotations[marks.REQUEST] = digest
    return msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, labels=labels, annotations=annotations))


def boot_volume(machine: VirtualMachine) -> str:
    """The name of the volume that a machine boots from: the disk with the lowest order, else the first."""
    disks = machine.spec.template.spec.domain.devices.disks or []
    if not disks:
        return ""
    return min(enumerate(disks), key=lambda pair: (pair[1].bootOrder or 1 << 16, pair[0]))[1].name


def template_name(template: DataVolumeTemplate) -> str:
    """The name of the DataVolume that a template makes."""
    return (template.metadata.name if template.metadata is not None else None) or ""


def _templates(
    machine: VirtualMachine, boot: BootDisk, description: MachineDescription
) -> tuple[tuple[str, ...], list[DataVolumeTemplate]]:
    """The DataVolumes with their StorageClass and with room for what is copied."""
    limitations: list[str] = []
    templates = []
    for index, template in enumerate(machine.spec.dataVolumeTemplates or ()):
        storage = template.spec.storage
        if storage is not None and description.placement.datastore and storage.storageClassName is None:
            storage = msgspec.structs.replace(storage, storageClassName=description.placement.datastore)
        asked = asked_size(template.spec)
        copies = index == 0 and boot.kind in (BootKind.COPY_CLAIM, BootKind.COPY_SOURCE)
        if storage is not None and copies and 0 < asked < boot.size:
            storage = msgspec.structs.replace(storage, resources=ResourceRequirements(requests={"storage": str(boot.size)}))
            limitations.append(f"DiskDefaults.SizeGiB: the image has {boot.size} bytes; the root disk is as large")
        templates.append(msgspec.structs.replace(template, spec=msgspec.structs.replace(template.spec, storage=storage)))
    return tuple(limitations), templates


def _disk_sizes(templates: list[DataVolumeTemplate], machine: VirtualMachine) -> dict[str, int]:
    """Return the size of each disk in GiB, by the name of its volume."""
    sizes = {template_name(each): asked_size(each.spec) for each in templates}
    volumes = machine.spec.template.spec.volumes or ()
    named = {each.name: sizes.get(each.dataVolume.name, 0) for each in volumes if each.dataVolume is not None}
    return {name: -(-size // _GIB) for name, size in named.items()}


def _is_invented(loss: Loss, boot: BootDisk) -> bool:
    """Return whether a loss is about an object that only stands for what the target has."""
    if boot.kept and "diskDefaults" in loss.path:
        return True
    return loss.of.startswith("VMImage/") and boot.kind is BootKind.COPY_SOURCE


def _sentence(loss: Loss) -> str:
    return f"{format_path(loss.path)}: {loss.why}; {loss.instead}"


def _networks_left(description: MachineDescription) -> tuple[str, ...]:
    found = []
    for each in description.networks:
        if each.vlan and not each.bridge:
            found.append(f"networks[{each.name}].VLAN: it needs a Bridge; the network's own definition counts")
        if each.mtu and on_pod_network(each):
            found.append(f"networks[{each.name}].MTU: the pod network has that of the cluster")
        if each.pci_slot_number is not None:
            found.append(f"networks[{each.name}].PCISlotNumber: KubeVirt chooses slots; name interfaces by their MAC address")
        if each.qos and on_pod_network(each) and (each.qos.priority is not None or each.qos.dscp is not None):
            found.append(f"networks[{each.name}].QoS: rates are limited only; traffic is not marked and has no priority")
    return tuple(found)
