"""Facts about a machine that its guest may read: the downward API, and devices by their tags. Pure."""

from collections.abc import Iterable
from fractions import Fraction

from paddock.base import quantity
from paddock.base.seeds.configdrive import TaggedDevice
from paddock.base.seeds.errors import SeedError
from paddock.kubernetes.meta.pods import DownwardAPIFile, ObjectFieldSelector, ResourceFieldSelector
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import downward


def values(instance: VirtualMachineInstance, files: Iterable[DownwardAPIFile]) -> dict[str, bytes]:
    """The files of a downward API volume."""
    found = {}
    for file in files:
        if file.fieldRef is not None:
            found[file.path] = _field(instance, file.fieldRef)
        elif file.resourceFieldRef is not None:
            found[file.path] = _resource(instance, file.resourceFieldRef)
    return found


def _field(instance: VirtualMachineInstance, reference: ObjectFieldSelector) -> bytes:
    path, meta = reference.fieldPath, instance.metadata
    whole = {"metadata.labels": meta.labels, "metadata.annotations": meta.annotations}
    single = {"metadata.name": meta.name, "metadata.namespace": meta.namespace, "metadata.uid": meta.uid}
    if path in whole:
        return downward.mapping(whole[path] or {})
    if path in single:
        return (single[path] or "").encode()
    for name, values in whole.items():
        if path.startswith(f"{name}['") and path.endswith("']"):
            return (values or {}).get(path[len(name) + 2 : -2], "").encode()
    raise SeedError(
        f"cannot tell the guest {path}", why="it is no field that the downward API has", fix="name metadata.labels, for example"
    )


def _resource(instance: VirtualMachineInstance, reference: ResourceFieldSelector) -> bytes:
    resources = instance.spec.domain.resources
    kind, _, name = reference.resource.partition(".")
    amounts = (resources.limits if kind == "limits" else resources.requests) if resources is not None else None
    text = (amounts or {}).get(name)
    amount = Fraction(quantity.parse(text), quantity.UNIT) if text is not None else Fraction(0)
    divisor = Fraction(quantity.parse(reference.divisor), quantity.UNIT) if reference.divisor else Fraction(1)
    return downward.resource(amount, divisor)


def tagged(instance: VirtualMachineInstance) -> tuple[TaggedDevice, ...]:
    """The devices that have a tag, for the config drive's metadata."""
    devices = instance.spec.domain.devices
    cards = [
        TaggedDevice("nic", interface.pciAddress or "", (interface.tag,), interface.macAddress or "")
        for interface in devices.interfaces or ()
        if interface.tag
    ]
    hosts = [TaggedDevice("hostdev", "", (each.tag,)) for each in (*(devices.hostDevices or ()), *(devices.gpus or ())) if each.tag]
    return (*cards, *hosts)
