"""The VirtualMachine that a VMClone makes: from its source, with what the target and the customization say. Pure."""

import ipaddress

import msgspec

from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, ProviderPlacement, UserData, VirtrigaudMachineSpec, VMNetworkRef
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION, ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclone import CloneStorage, NetworkCustomization, VMClone
from paddock.dialects.virtrigaud.plan import marks, power, reasons
from paddock.dialects.virtrigaud.plan.clones import judging
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.world import namespace_of

_DEFAULT_PREFIX = 24


def namespace(clone: VMClone) -> str:
    """The namespace of the new machine."""
    return clone.spec.target.namespace or namespace_of(clone)


def from_machine(clone: VMClone, source: VirtrigaudVirtualMachine) -> VirtrigaudVirtualMachine:
    """The clone of a machine. It exists at the provider when its object is made, so it names nothing that it is made from."""
    given, place = source.spec, namespace_of(source)
    target = clone.spec.target
    own_class = target.classRef is not None
    spec = VirtrigaudMachineSpec(
        providerRef=_moved(given.providerRef, place, clone),
        classRef=_class(target.classRef, clone) if target.classRef is not None else _moved(given.classRef, place, clone),
        networks=networks(clone, source),
        disks=whole(target.disks) if target.disks is not None else given.disks,
        userData=_user_data(clone, source),
        placement=_placement(clone, given.placement),
        placementRef=whole(target.placementRef),
        powerState=power.ON if judging.options(clone).powerOn else power.OFF,
        resources=None if own_class else given.resources,
        tags=_tags(clone, given.tags),
    )
    return _machine(clone, spec, f"{place}/{source.metadata.name}", adopted=True)


def from_image(clone: VMClone, user_data: UserData | None) -> VirtrigaudVirtualMachine:
    """A machine that is made from the image or template which the clone names; raises `Refusal` without a Provider or a class."""
    target, source = clone.spec.target, clone.spec.source
    ref = source.imageRef or source.templateRef
    assert ref is not None
    if target.providerRef is None or target.classRef is None:
        name = "providerRef" if target.providerRef is None else "classRef"
        raise Refusal(f"spec.target.{name} is missing, and an image has none", fix=f"set spec.target.{name}")
    place = namespace_of(clone)
    spec = VirtrigaudMachineSpec(
        providerRef=_moved(target.providerRef, place, clone),
        classRef=_class(target.classRef, clone),
        imageRef=_moved(ref, place, clone),
        networks=networks(clone, None),
        disks=whole(target.disks),
        userData=user_data,
        placement=_placement(clone, None),
        placementRef=whole(target.placementRef),
        powerState=power.ON if judging.options(clone).powerOn else power.OFF,
        tags=_tags(clone, None),
    )
    return _machine(clone, spec, f"VMImage/{ref.namespace or place}/{ref.name}", adopted=False)


def is_of(machine: VirtrigaudVirtualMachine, clone: VMClone) -> bool:
    """Return whether a machine was made by this clone, and not by an earlier one of its name."""
    return (machine.metadata.annotations or {}).get(marks.CLONE_UID) == clone.metadata.uid


def networks(clone: VMClone, source: VirtrigaudVirtualMachine | None) -> list[VMNetworkRef] | None:
    """The cards of the new machine: its own, or those of the source without their addresses, which are the source's."""
    if clone.spec.target.networks is not None:
        cards = [_nic(each, namespace_of(clone), clone) for each in whole(clone.spec.target.networks)]
    else:
        before = (source.spec.networks if source is not None else None) or []
        place = namespace_of(source) if source is not None else namespace_of(clone)
        cards = [_nic(VMNetworkRef(name=each.name, networkRef=each.networkRef), place, clone) for each in before]
    addresses = {each.name: each for each in judging.customization(clone).networks or ()}
    if cards:
        unknown = next((name for name in addresses if name not in {each.name for each in cards}), None)
        if unknown is not None:
            raise Refusal(f"customization.networks names the card {unknown}, which the machine does not have", fix="name one of its cards")
    return [_addressed(each, addresses[each.name]) if each.name in addresses else each for each in cards] or None


def rewired(clone: VMClone, source: VirtrigaudVirtualMachine) -> bool:
    """Return whether the new machine has other cards, or its cards on other networks, than the source."""
    if clone.spec.target.networks is None:
        return False
    return _wires(clone.spec.target.networks, namespace_of(clone)) != _wires(source.spec.networks, namespace_of(source))


def resized_disks(clone: VMClone, source: VirtrigaudVirtualMachine) -> bool:
    """Return whether the data disks of the new machine are not those of the source."""
    if clone.spec.target.disks is None:
        return False
    return _sizes(clone.spec.target.disks) != _sizes(source.spec.disks)


def check_disks(clone: VMClone, source: VirtrigaudVirtualMachine) -> None:
    """Raise `Refusal` for a disk that would be smaller than the one it is copied from."""
    before = _sizes(source.spec.disks)
    for name, size in _sizes(clone.spec.target.disks).items():
        if size < before.get(name, 0):
            raise Refusal(f"disk {name} has {before[name]} GiB at the source and cannot shrink to {size} GiB", fix="ask for its size")


def _sizes(disks: list[DiskSpec] | None) -> dict[str, int]:
    return {each.name: each.sizeGiB for each in disks or ()}


def _wires(cards: list[VMNetworkRef] | None, place: str) -> list[tuple[str, str, str]]:
    return [
        (each.name, (each.networkRef.namespace or place) if each.networkRef else "", each.networkRef.name if each.networkRef else "")
        for each in cards or ()
    ]


def _machine(clone: VMClone, spec: VirtrigaudMachineSpec, source: str, *, adopted: bool) -> VirtrigaudVirtualMachine:
    target = clone.spec.target
    labels = {**(target.labels or {}), **({marks.ADOPTED_LABEL: marks.TRUE} if adopted else {})}
    annotations = {
        **(target.annotations or {}),
        marks.CLONED_FROM: source,
        marks.CLONE: f"{namespace_of(clone)}/{clone.metadata.name}",
        marks.CLONE_UID: clone.metadata.uid or "",
    }
    metadata = ObjectMeta(name=target.name, namespace=namespace(clone), labels=labels or None, annotations=annotations)
    return VirtrigaudVirtualMachine(apiVersion=API_VERSION, kind="VirtualMachine", metadata=metadata, spec=spec)


def _moved(ref: ObjectRef, place: str, clone: VMClone) -> ObjectRef:
    """A reference that means the same from the namespace of the new machine."""
    found = ref.namespace or place
    return ObjectRef(name=ref.name, namespace=None if found == namespace(clone) else found)


def _class(ref: LocalObjectReference, clone: VMClone) -> ObjectRef:
    return _moved(ObjectRef(name=ref.name), namespace_of(clone), clone)


def _nic(vm_network_ref: VMNetworkRef, place: str, clone: VMClone) -> VMNetworkRef:
    if vm_network_ref.networkRef is None:
        return vm_network_ref
    return msgspec.structs.replace(vm_network_ref, networkRef=_moved(vm_network_ref.networkRef, place, clone))


def _addressed(vm_network_ref: VMNetworkRef, network_customization: NetworkCustomization) -> VMNetworkRef:
    changed = msgspec.structs.replace(vm_network_ref, macAddress=network_customization.macAddress or vm_network_ref.macAddress)
    if network_customization.dhcp or not network_customization.ipAddress:
        return changed
    prefix = (
        ipaddress.IPv4Network(f"0.0.0.0/{network_customization.subnetMask}").prefixlen
        if network_customization.subnetMask
        else _DEFAULT_PREFIX
    )
    dns = ",".join(network_customization.dns or ()) or None
    return msgspec.structs.replace(
        changed, ipAddress=network_customization.ipAddress, prefix=prefix, gateway=network_customization.gateway, dns=dns
    )


def _user_data(clone: VMClone, source: VirtrigaudVirtualMachine) -> UserData | None:
    """The documents as the objects have them; a Secret of another namespace is not the machine's to read."""
    own = judging.customization(clone).userData
    found, place = (own, namespace_of(clone)) if own is not None else (source.spec.userData, namespace_of(source))
    parts = (found.cloudInit, found.ignition) if found is not None else ()
    hidden = any(each is not None and each.secretRef is not None for each in parts)
    return None if hidden and place != namespace(clone) else whole(found)


def _placement(clone: VMClone, before: ProviderPlacement | None) -> ProviderPlacement | None:
    storage = judging.options(clone).storage or CloneStorage()
    given = before or ProviderPlacement()
    if storage.datastore:
        given = msgspec.structs.replace(given, datastore=storage.datastore, storagePod=None)
    if storage.folder:
        given = msgspec.structs.replace(given, folder=storage.folder)
    return given if given != ProviderPlacement() else None


def _tags(clone: VMClone, before: list[str] | None) -> list[str] | None:
    found = [*(before or ()), *(judging.customization(clone).tags or ())]
    return list(dict.fromkeys(found)) or None


def check_secrets(clone: VMClone) -> None:
    """Raise `Refusal` for a Secret that the machine of an image could not read."""
    parts = judging.customization(clone).userData
    given = (parts.cloudInit, parts.ignition) if parts is not None else ()
    if namespace(clone) != namespace_of(clone) and any(each is not None and each.secretRef is not None for each in given):
        what = "customization.userData names a Secret, and the machine is in another namespace"
        raise Refusal(what, fix="give the document inline, or remove spec.target.namespace", reason=reasons.CONSUMER_NOT_ALLOWED)
