"""From a Machine to the objects of KubeVirt (docs/spec/vitistack.md sections 2.2 and 2.3)."""

from collections.abc import Iterator

from paddock.dialects.vitistack.kinds import boot
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.marks import CLOUD_INIT_DISK, REQUESTED_MACHINE_TYPE
from paddock.dialects.vitistack.translate import attachments, cloudinit, devices, domain, keys, unused
from paddock.dialects.vitistack.translate.devices import BootOrder
from paddock.dialects.vitistack.translate.resolved import VitistackInputs, resolve
from paddock.dialects.vitistack.translate.unused import REASONS
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.meta.fieldrecord import FieldRecord, RecordedWorld
from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import LossCollector, Translated
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.devices import Devices, DiskTarget
from paddock.kubevirt.kinds.devices import Disk as Device
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec, VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine, VirtualMachineSpec
from paddock.kubevirt.kinds.volumes import Volume


def to_kubevirt(source: Machine, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """The objects that a machine becomes, in the order in which they are applied.

    Raises an `Unmet` when the machine cannot be translated: always without its template or a size, and in a complete world
    for every other reference that leads nowhere. In an incomplete world such a reference is a loss.
    """
    record = FieldRecord(source)
    seen = RecordedWorld(object_set, REASONS)
    resolved = resolve(record.view, seen, rendering)
    _judge_unmet(resolved, object_set, record)
    unused.tell(resolved, record)
    carried = cloudinit.carry(resolved)
    own_secrets = (carried.secret,) if carried and carried.secret else ()
    made = (
        *own_secrets,
        *keys.secrets(resolved),
        *_definitions(resolved, object_set),
        *_claims(resolved),
        _machine(resolved, carried, record),
    )
    return Translated(made, (*record.settle(), *seen.settle()))


def _judge_unmet(resolved: VitistackInputs, object_set: ObjectSet, ledger: LossCollector) -> None:
    for error in resolved.unmet:
        if object_set.complete:
            raise error
        if error.instead:
            ledger.lose(error.path, error.name, error.what, error.instead)


def _definitions(resolved: VitistackInputs, object_set: ObjectSet) -> Iterator[NetworkAttachmentDefinition]:
    """A definition for each network that is used; one that somebody else made under the name is used as it is."""
    for network in {found.metadata.name: found for found in resolved.networks if found is not None}.values():
        there = object_set.get(NetworkAttachmentDefinition, namespace_of(network), network.metadata.name)
        if there is None or attachments.is_managed(there):
            yield attachments.to_definition(network)


def _claims(resolved: VitistackInputs) -> Iterator[Resource]:
    for disk, spec in devices.claims(resolved):
        if devices.is_imported(resolved, disk):
            metadata = resolved.metadata(devices.claim_name(resolved.name, disk.name))
            filled = devices.imported(resolved, spec)
            yield DataVolume(apiVersion="cdi.kubevirt.io/v1beta1", kind="DataVolume", metadata=metadata, spec=filled)
        else:
            yield devices.claim(resolved, disk, spec)


def _machine(resolved: VitistackInputs, carried: cloudinit.CloudInitVolume | None, ledger: LossCollector) -> VirtualMachine:
    requested = domain.requested_type(resolved)
    annotations = {REQUESTED_MACHINE_TYPE: requested} if requested and requested != domain.sent_type(resolved) else None
    order = devices.boot_order(resolved, ledger)
    metadata = resolved.metadata(resolved.name, annotations)
    return VirtualMachine(apiVersion="kubevirt.io/v1", kind="VirtualMachine", metadata=metadata, spec=_spec(resolved, carried, order))


def _spec(resolved: VitistackInputs, carried: cloudinit.CloudInitVolume | None, order: BootOrder) -> VirtualMachineSpec:
    runs = not boot.is_stopped(resolved.machine)
    by_strategy = resolved.rendering.power_field == "runStrategy"
    template, iso = TemplateMeta(labels=resolved.carried_labels), devices.iso_template(resolved)
    return VirtualMachineSpec(
        running=None if by_strategy else runs,
        runStrategy=("Always" if runs else "Halted") if by_strategy else None,
        template=VirtualMachineInstanceTemplate(metadata=template, spec=_instance(resolved, carried, order)),
        dataVolumeTemplates=[iso] if iso else None,
    )


def _instance(resolved: VitistackInputs, carried: cloudinit.CloudInitVolume | None, order: BootOrder) -> VirtualMachineInstanceSpec:
    disks, volumes = devices.disks(resolved, order)
    if carried:
        disks.append(Device(name=CLOUD_INIT_DISK, disk=DiskTarget(bus="virtio")))
        volumes.append(
            Volume(name=CLOUD_INIT_DISK, cloudInitConfigDrive=carried.volume)
            if cloudinit.is_config_drive(resolved)
            else Volume(name=CLOUD_INIT_DISK, cloudInitNoCloud=carried.volume)
        )
    interfaces, networks = devices.cards(resolved, order)
    attached = Devices(networkInterfaceMultiqueue=True, disks=disks or None, interfaces=interfaces)
    return VirtualMachineInstanceSpec(
        domain=domain.build(resolved, attached),
        networks=networks,
        volumes=volumes or None,
        hostname=resolved.machine.spec.name,
        architecture=domain.architecture(resolved),
        accessCredentials=keys.credentials(resolved),
    )
