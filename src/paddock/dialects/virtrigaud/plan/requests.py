"""The requests to a provider for a machine: create, reconfigure, and the names and owner that stand in all of them."""

import math

import msgspec
from msgspec import UNSET

from paddock.base import duration
from paddock.contract import messages as m
from paddock.contract import payloads, specs
from paddock.contract.payloads import (
    ClassPayload,
    DesiredPayload,
    DiskPayload,
    ImagePayload,
    MetaDataPayload,
    PlacementPayload,
    ScsiPayload,
    UserDataPayload,
)
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, ProviderPlacement, VirtualMachineLifecycle
from paddock.dialects.virtrigaud.kinds.provider import Provider, ProviderDefaults
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage
from paddock.dialects.virtrigaud.plan import guest, hardware, references, resizing, rootdisk, support, wiring
from paddock.dialects.virtrigaud.plan.placement import decision
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.world import namespace_of


def owner(vm: VirtrigaudVirtualMachine) -> m.ObjectIdentity:
    """The identity by which a provider knows whose machine it is."""
    return m.ObjectIdentity(uid=vm.metadata.uid or "", namespace=namespace_of(vm), name=vm.metadata.name)


def shutdown_seconds(vm: VirtrigaudVirtualMachine) -> float:
    """The time that a guest has to shut down."""
    lifecycle = vm.spec.lifecycle or VirtualMachineLifecycle()
    return duration.parse(lifecycle.gracefulShutdownTimeout) / duration.SECOND


def power(vm: VirtrigaudVirtualMachine, machine_id: str, operation: str) -> m.PowerRequest:
    """The request for a change of power: on, off or shutdown."""
    operations = {"on": m.PowerOp.ON, "off": m.PowerOp.OFF, "shutdown": m.PowerOp.SHUTDOWN_GRACEFUL}
    seconds = max(1, math.ceil(shutdown_seconds(vm))) if operation == "shutdown" else 0
    return m.PowerRequest(
        id=machine_id, op=operations[operation], graceful_timeout_seconds=seconds, target_host_id=host_of(vm), owner=owner(vm)
    )


def describe(vm: VirtrigaudVirtualMachine, machine_id: str) -> m.DescribeRequest:
    """The request for a description."""
    return m.DescribeRequest(id=machine_id, target_host_id=host_of(vm), owner=owner(vm))


def delete(vm: VirtrigaudVirtualMachine, machine_id: str) -> m.DeleteRequest:
    """The request for a deletion."""
    return m.DeleteRequest(id=machine_id, target_host_id=host_of(vm), owner=owner(vm))


def host_of(vm: VirtrigaudVirtualMachine) -> str:
    """The host that a clustered provider is asked for a machine: where it was last, or where it was placed."""
    placed = decision.of(vm).target_host
    return ((vm.status.provider or {}).get("host") or placed) if placed and vm.status is not None else placed


def create(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, prepared: ProviderImage | None) -> m.CreateRequest:
    """The request for a new machine; raises `Refusal` for what cannot be requested."""
    _check_sources(vm)
    support.refuse(vm, dependencies, references.reported(dependencies))
    return build(vm, dependencies, prepared)


def build(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, prepared: ProviderImage | None) -> m.CreateRequest:
    """The request for a new machine, whatever its provider can do; raises `Refusal` for what the contract cannot say."""
    provider, vmclass = dependencies.provider, dependencies.vmclass
    assert provider is not None and vmclass is not None
    sizes = resizing.wanted(vm, vmclass)
    return m.CreateRequest(
        name=vm.metadata.name,
        user_data=guest.user_data(vm, dependencies.secrets),
        class_json=payloads.encode(_hardware(vm, vmclass, sizes)),
        image_json=payloads.encode(_root_disk(vm, dependencies, prepared)),
        networks_json=wiring.encoded(wiring.cards(vm, provider, dependencies), provider.spec.type),
        disks_json=payloads.encode_list(_disks(vm, vmclass, sizes)),
        placement_json=payloads.encode(placement(vm, provider, _image_storage(dependencies))),
        tags=tuple(vm.spec.tags or ()),
        meta_data=guest.meta_data(vm, dependencies.secrets),
        target_host_id=decision.of(vm).target_host,
        owner=owner(vm),
    )


def reconfigure(
    vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, sizes: MachineSizes, prepared: ProviderImage | None
) -> m.ReconfigureRequest:
    """The request for a machine with these sizes, and all else as its spec says."""
    provider, vmclass = dependencies.provider, dependencies.vmclass
    assert provider is not None and vmclass is not None
    user, meta = guest.user_data(vm, dependencies.secrets), guest.meta_data(vm, dependencies.secrets)
    desired = DesiredPayload(
        name=vm.metadata.name,
        machine_class=_hardware(vm, vmclass, sizes),
        image=_root_disk(vm, dependencies, prepared) or ImagePayload(),
        networks=wiring.cards(vm, provider, dependencies) or None,
        disks=_disks(vm, vmclass, sizes) or None,
        user_data=UserDataPayload(cloud_init_data=user.decode(errors="replace"), type=guest.user_data_type(vm)) if user else None,
        meta_data=MetaDataPayload(meta_data_yaml=meta.decode(errors="replace")) if meta else None,
        placement=placement(vm, provider, _image_storage(dependencies)),
        tags=tuple(vm.spec.tags) if vm.spec.tags else None,
    )
    machine_id = (vm.status.id if vm.status is not None else None) or ""
    return m.ReconfigureRequest(id=machine_id, desired_json=payloads.encode(desired), target_host_id=host_of(vm), owner=owner(vm))


def placement(vm: VirtrigaudVirtualMachine, provider: Provider, storage_of_image: str = "") -> PlacementPayload | None:
    """The place of a machine: what was chosen for it, over its own fields, over its image's storage, over the Provider's defaults.

    Datastore and storagePod count as one field.
    """
    own, defaults = whole(vm.spec.placement) or ProviderPlacement(), provider.spec.defaults or ProviderDefaults()
    usual = ProviderPlacement(datastore=storage_of_image) if storage_of_image else defaults
    storage, placed = own if own.datastore or own.storagePod else usual, decision.of(vm)
    made = PlacementPayload(
        datastore=placed.datastore or storage.datastore or "",
        storage_pod="" if placed.datastore else storage.storagePod or "",
        cluster=placed.cluster or own.cluster or defaults.cluster or "",
        folder=placed.folder or own.folder or defaults.folder or "",
        host=placed.host or own.host or "",
        resource_pool=placed.resource_pool or own.resourcePool or defaults.resourcePool or UNSET,
    )
    return made if made != PlacementPayload() else None


def _image_storage(dependencies: MachineDependencies) -> str:
    """The storage that the image names for its copies, where its block counts."""
    source = dependencies.image.spec.source if dependencies.image is not None else None
    if source is None or source.proxmox is None or dependencies.provider is None:
        return ""
    return (source.proxmox.storage or "") if specs.image_block(source, dependencies.provider.spec.type) == "proxmox" else ""


def _check_sources(vm: VirtrigaudVirtualMachine) -> None:
    spec = vm.spec
    if spec.imageRef is not None and spec.importedDisk is not None:
        raise Refusal("the machine has imageRef and importedDisk", fix="remove one of them")
    if spec.imageRef is None and spec.importedDisk is None:
        raise Refusal("the machine has neither imageRef nor importedDisk", fix="set one of them")


def _root_disk(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, prepared: ProviderImage | None) -> ImagePayload | None:
    if vm.spec.importedDisk is not None:
        return rootdisk.imported(vm.spec.importedDisk)
    if dependencies.image is None or dependencies.provider is None:
        return None
    return rootdisk.from_image(dependencies.image, dependencies.provider.spec.type, prepared)


def _hardware(vm: VirtrigaudVirtualMachine, vmclass: VMClass, sizes: MachineSizes) -> ClassPayload:
    """The class of the machine. Its storage class gives way to a place that the machine itself, or its policy, names."""
    made = hardware.class_payload(vmclass.spec, sizes, vm.spec.resources)
    if made.disk_defaults is None or not _names_storage(vm):
        return made
    return msgspec.structs.replace(made, disk_defaults=msgspec.structs.replace(made.disk_defaults, storage_class=UNSET))


def _names_storage(vm: VirtrigaudVirtualMachine) -> bool:
    own, placed = vm.spec.placement or ProviderPlacement(), decision.of(vm)
    return bool(own.datastore or own.storagePod or placed.datastore)


def _disks(vm: VirtrigaudVirtualMachine, vmclass: VMClass, sizes: MachineSizes) -> tuple[DiskPayload, ...]:
    """The data disks with these sizes, those of the spec in its order; one that is only to be detached later keeps its size."""
    specs: dict[str, DiskSpec] = {each.name: each for each in vm.spec.disks or ()}
    names = [name for name in specs if name in (sizes.disks or {})]
    names += [name for name in sizes.disks or {} if name not in specs]
    paths, defaults = rootdisk.imported_data(vm), vmclass.spec.diskDefaults
    usual = defaults.storageClass if defaults is not None and not _names_storage(vm) else None
    return tuple(_disk(name, (sizes.disks or {})[name], specs.get(name), paths.get(name), usual) for name in names)


def _disk(name: str, size: int, spec: DiskSpec | None, path: str | None, usual: str | None) -> DiskPayload:
    if spec is None:
        return DiskPayload(size_gib=size, name=name, path=path or UNSET)
    scsi = spec.scsi
    return DiskPayload(
        size_gib=size,
        type=spec.type,
        name=name,
        storage_class=spec.storageClass or usual or UNSET,
        scsi=UNSET
        if scsi is None
        else ScsiPayload(controller=scsi.controller, shared_bus=scsi.sharedBus, controller_type=scsi.controllerType),
        path=path or UNSET,
    )
