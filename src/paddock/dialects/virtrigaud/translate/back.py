"""A KubeVirt machine as VirtRigaud's objects: the machine, its class, image and networks, and a Provider to run it.

The machine is read as far as VirtRigaud can say it. The result is translated forward again and compared with the original, and
every value that the image lacks is a loss. Annotations that a translation to KubeVirt has left make names, and what only names
could tell, come back as they were.
"""

import msgspec

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds.machine import ProviderPlacement, VirtrigaudMachineSpec, VirtualMachineLifecycle
from paddock.dialects.virtrigaud.kinds.provider import Provider, ProviderRuntime, ProviderSpec
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION, ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.translate import disks, forward, marks, read_class, read_disks, read_guest, read_image, read_network
from paddock.dialects.virtrigaud.translate.account import Reason, Reasons
from paddock.dialects.virtrigaud.translate.comparable import comparable
from paddock.dialects.virtrigaud.translate.read_disks import DataDisk
from paddock.dialects.virtrigaud.translate.read_guest import IGNITION_ANNOTATION
from paddock.dialects.virtrigaud.translate.reading import MachineReader, from_json, template_name
from paddock.dialects.virtrigaud.translate.resolved import resolve
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.redaction import HIDDEN
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.translated import LossCollector, Translated
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine

_TEMPLATE: Path = ("spec", "template", "spec")
_DOMAIN: Path = (*_TEMPLATE, "domain")
_NO_FIELD: Reason = ("VirtRigaud's API has no field for it", "the machine is made without it")
_REASONS: Reasons = (
    (("spec", "runStrategy"), ("a machine of VirtRigaud is on or off", "it is on, and off when it says Halted or Manual")),
    (("spec", "running"), ("a machine of VirtRigaud is on or off", "powerState says the same")),
    (("spec", "instancetype"), ("VirtRigaud does not read instancetypes", "give cpu and memory explicitly")),
    (("spec", "preference"), ("VirtRigaud does not read preferences", "the defaults of the provider apply")),
    (
        ("spec", "template", "metadata", "labels"),
        ("VirtRigaud's labels are put on the machine, and from there on what runs", "running machines go without"),
    ),
    (
        ("spec", "template", "metadata"),
        ("VirtRigaud's annotations are put on the machine only", "running machines go without"),
    ),
    (
        ("spec", "dataVolumeTemplates"),
        (
            "VirtRigaud's root disk comes from a URL, a registry or a claim, and its data disks begin blank",
            "fill the disk by other means before the machine uses it",
        ),
    ),
    ((*_TEMPLATE, "volumes"), ("VirtRigaud's disks are its own, made for the machine or imported", "the machine is made without it")),
    ((*_TEMPLATE, "networks"), ("VirtRigaud attaches cards to bridges and to the pod network", "the card is attached like that")),
    ((*_TEMPLATE, "nodeSelector"), ("VirtRigaud places machines by the name of a host", "name one in placement.host")),
    ((*_DOMAIN, "devices", "disks"), ("VirtRigaud's disks are virtio or SCSI hard disks", "the disk is one of those, or left out")),
    ((*_DOMAIN, "devices", "interfaces"), ("VirtRigaud says model and address of a card", "the card is made without it")),
    ((*_DOMAIN, "cpu"), ("a class counts processors", "the guest has as many, in another arrangement")),
    ((*_DOMAIN, "memory"), ("a class says how much memory there is", "the guest has as much")),
    ((*_DOMAIN, "resources"), ("a class limits and reserves memory, and counts processors", "the host decides about the rest")),
    ((*_DOMAIN, "firmware"), ("a class says BIOS or UEFI, with or without Secure Boot", "the provider makes up the rest")),
)
# Some fields by their name, wherever they stand.
_BY_NAME: dict[str, Reason] = {
    "containerDisk": (
        "a root disk of VirtRigaud is kept, not thrown away",
        "the root disk is a copy of the image; other such disks are left out",
    ),
    "accessModes": ("VirtRigaud leaves access modes to the storage", "those that the StorageClass has are taken"),
    "volumeMode": ("VirtRigaud leaves the volume mode to the storage", "the one that the StorageClass has is taken"),
    "cloudInitConfigDrive": ("cloud-init of VirtRigaud is on a disk of the kind NoCloud", "the same documents are on such a disk"),
    IGNITION_ANNOTATION: ("VirtRigaud says it in userData.ignition", "the guest finds the document on a config drive"),
    "terminationGracePeriodSeconds": ("a guest of VirtRigaud has from no time to some 292 years", "it has the nearest one"),
    "networkInterfaceMultiqueue": ("a network says how many queues its cards have", "cards have one queue"),
}
# Set by servers and controllers, not said by anybody.
_NOT_SAID = ("apiVersion", "kind", "status")
_SAID_OF_METADATA = ("name", "namespace", "labels", "annotations")
_OFF = ("Halted", "Manual", "WaitAsReceiver")
_GRACE = 30
# As many seconds as a duration can be.
_LONGEST_GRACE = (2**63 - 1) // duration.SECOND
_RUNTIME_IMAGE = "provider-qemu:latest"


def from_kubevirt(vm: Machine, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """VirtRigaud's objects in the order in which they are applied: Provider, class, image, networks, machine.

    The Provider, of type qemu, is made when the world has none of its name.
    """
    reading = MachineReader(vm, object_set, rendering, LossCollector(f"VirtualMachine/{marks.name_of(vm)}"))
    root, spoken = reading.root, read_guest.read(reading)
    booted = read_image.read(reading, root)
    sized = read_class.read(reading, reading.template_of(reading.volumes.get(root.name)) if root is not None else None)
    wires = read_network.read(reading, spoken.network_data)
    data = read_disks.read(reading, root)
    _tell_defaults(reading, sized.vmclass, data)
    provider = reading.reference(marks.PROVIDER, rendering.provider)
    spec = VirtrigaudMachineSpec(
        providerRef=provider,
        classRef=_ref(sized.vmclass, vm),
        imageRef=booted.ref,
        importedDisk=booted.imported,
        networks=wires.cards or None,
        disks=[disk.spec for disk in data] or None,
        userData=spoken.user_data,
        metaData=spoken.meta_data,
        placement=_placement(reading),
        powerState="Off" if _is_off(vm) else "On",
        resources=sized.resources,
        tags=_tags(reading),
        lifecycle=_lifecycle(reading),
    )
    front = VirtrigaudVirtualMachine(apiVersion=API_VERSION, kind="VirtualMachine", metadata=_metadata(reading), spec=spec)
    images = () if booted.image is None else (booted.image,)
    made = (*_provider(reading, provider), sized.vmclass, *images, *wires.attachments, front)
    image = _image(reading, front, made)
    _compare(reading, image, whole=spoken.whole)
    return Translated(made, reading.ledger.losses)


def _ref(target: Resource, vm: Machine) -> ObjectRef:
    namespace = target.metadata.namespace
    return ObjectRef(name=target.metadata.name, namespace=None if namespace == vm.metadata.namespace else namespace)


def _tell_defaults(reading: MachineReader, vmclass: VMClass, data: list[DataDisk]) -> None:
    """A class has one StorageClass for all disks that name none; nothing says "the cluster's default" beside it."""
    defaults = vmclass.spec.diskDefaults
    templates = list(reading.templates)
    for disk in data:
        if defaults is not None and defaults.storageClass and disk.spec.storageClass is None:
            path = ("spec", "dataVolumeTemplates", templates.index(template_name(disk.template)), "spec", "storage", "storageClassName")
            why = "a class has one StorageClass for all disks that name none"
            reading.lose(path, None, why, f"the disk is made in {defaults.storageClass}, as the root disk")


def _metadata(reading: MachineReader) -> ObjectMeta:
    given = reading.vm.metadata
    labels = {key: value for key, value in (given.labels or {}).items() if key not in marks.LABELS}
    annotations = {key: value for key, value in (given.annotations or {}).items() if key not in (*marks.OF_MACHINES, marks.LAST_APPLIED)}
    return ObjectMeta(name=reading.name, namespace=given.namespace, labels=labels or None, annotations=annotations or None)


def _is_off(vm: Machine) -> bool:
    if vm.spec.runStrategy is not None:
        return vm.spec.runStrategy in _OFF
    return vm.spec.running is False


def _placement(reading: MachineReader) -> ProviderPlacement | None:
    host = (reading.instance.nodeSelector or {}).get(forward.HOST)
    return ProviderPlacement(host=host) if host else None


def _tags(reading: MachineReader) -> list[str] | None:
    tags = from_json(reading.annotations.get(marks.TAGS))
    good = isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
    return tags[:50] or None if good else None


def _lifecycle(reading: MachineReader) -> VirtualMachineLifecycle | None:
    given = reading.instance.terminationGracePeriodSeconds
    seconds = min(max(0, _GRACE if given is None else given), _LONGEST_GRACE)
    made = VirtualMachineLifecycle(gracefulShutdownTimeout=f"{seconds}s")
    return None if made == VirtualMachineLifecycle() else made


def _provider(reading: MachineReader, ref: ObjectRef) -> tuple[Resource, ...]:
    """A Provider of Paddock's own engine, and the Secret that every Provider names."""
    metadata = reading.metadata_of(ref)
    if reading.object_set.get(Provider, metadata.namespace or reading.namespace, ref.name) is not None:
        return ()
    credentials = marks.cut(f"{ref.name}-credentials", 253)
    spec = ProviderSpec(
        type="qemu",
        endpoint="qemu:///system",
        credentialSecretRef=ObjectRef(name=credentials),
        runtime=ProviderRuntime(image=f"{reading.rendering.product}/{_RUNTIME_IMAGE}"),
    )
    secret = Secret(apiVersion="v1", kind="Secret", metadata=msgspec.structs.replace(metadata, name=credentials), type="Opaque")
    return secret, Provider(apiVersion=API_VERSION, kind="Provider", metadata=metadata, spec=spec)


def _image(reading: MachineReader, front: VirtrigaudVirtualMachine, made: tuple[Resource, ...]) -> Machine:
    """Return the forward translation of the result."""
    object_set = ObjectSet([*(each for each in reading.object_set.everything() if not isinstance(each, VirtrigaudVirtualMachine)), *made])
    resolved = resolve(front, object_set, reading.rendering)
    attached = list(disks.data(resolved))
    if front.spec.imageRef is not None or front.spec.importedDisk is not None:
        attached.insert(0, disks.root(resolved))
    else:
        path = (*_DOMAIN, "devices", "disks")
        reading.lose(path, [], "a machine of VirtRigaud always has a root disk that it boots from", "give imageRef or importedDisk")
    built = forward.build(resolved, attached).value
    return next(each for each in built if isinstance(each, Machine))


def _compare(reading: MachineReader, image: Machine, *, whole: bool) -> None:
    if not whole and reading.cloud_init is not None:
        path = (*_TEMPLATE, "volumes", reading.cloud_init[0])
        reading.lose(path, HIDDEN, "the user data cannot be read as text", "the guest gets nothing")
    cards = {}
    for old, new in zip(_wired(reading), image.spec.template.spec.domain.devices.interfaces or (), strict=False):
        cards[old] = new.name
    for path, value in residue(comparable(reading, image, cards), image):
        is_lost = any(path[: len(loss.path)] == loss.path for loss in reading.ledger.losses)
        if is_lost or not _is_said(path) or path == ("spec", "running"):
            continue
        named = next((_BY_NAME[str(step)] for step in path if step in _BY_NAME), None)
        why, instead = named or next((said for start, said in _REASONS if path[: len(start)] == start), _NO_FIELD)
        reading.lose(path, value, why, instead)


def _wired(reading: MachineReader) -> list[str]:
    """The names of the cards that the result has, in their order."""
    known = {network.name for network in reading.instance.networks or () if network.pod is not None or network.multus is not None}
    return [interface.name for interface in reading.instance.domain.devices.interfaces or () if interface.name in known]


def _is_said(path: Path) -> bool:
    if path[0] == "metadata":
        return len(path) > 1 and path[1] in _SAID_OF_METADATA and not _is_mark(path)
    return path[0] not in _NOT_SAID


def _is_mark(path: Path) -> bool:
    return len(path) > 2 and path[2] in (*marks.LABELS, *marks.OF_MACHINES, marks.LAST_APPLIED)
