"""The objects that a migration makes: the claim between the Providers, and the new machine."""

import math
from collections.abc import Mapping, Sequence

from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds.machine import ImportedDiskRef, VirtrigaudMachineSpec
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION, ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmmigration import MigratedDisk, PVCStorage, VMMigration
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.migrations import transfer
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec, ResourceRequirements
from paddock.kubernetes.meta.world import namespace_of

_ROOM = 1.1
_FORMATS = ("qcow2", "vmdk", "raw", "vdi", "vhdx")


def target_namespace(migration: VMMigration) -> str:
    """The namespace of the new machine."""
    return migration.spec.target.namespace or namespace_of(migration)


def is_ours(found_annotations: Mapping[str, str] | None, migration: VMMigration) -> bool:
    """Return whether this migration made an object."""
    return bool(migration.metadata.uid) and (found_annotations or {}).get(marks.MIGRATION_UID) == migration.metadata.uid


def claim(migration: VMMigration, disks: Sequence[MigratedDisk]) -> PersistentVolumeClaim:
    """The claim between the Providers. Without a size it has room for every disk."""
    given = transfer.storage_of(migration).pvc or PVCStorage()
    room = max(1, math.ceil(sum(each.sizeBytes or 0 for each in disks) * _ROOM / transfer.GIB))
    return PersistentVolumeClaim(
        apiVersion="v1",
        kind="PersistentVolumeClaim",
        metadata=ObjectMeta(
            name=transfer.claim_name(migration),
            namespace=namespace_of(migration),
            labels={marks.COMPONENT_LABEL: marks.MIGRATION_STORAGE, marks.MIGRATION_LABEL: migration.metadata.name[:63].rstrip("-.")},
            annotations={marks.MIGRATION_UID: migration.metadata.uid or ""},
        ),
        spec=PersistentVolumeClaimSpec(
            accessModes=[given.accessMode],
            storageClassName=given.storageClassName,
            resources=ResourceRequirements(requests={"storage": given.size or f"{room}Gi"}),
        ),
    )


def machine(
    migration: VMMigration, source: VirtrigaudVirtualMachine, disks: Sequence[MigratedDisk], format: str
) -> VirtrigaudVirtualMachine:
    """The new machine, off: it is started when its disks are found good and the source is off."""
    target, first = migration.spec.target, disks[0]
    root = ImportedDiskRef(
        diskID=first.importID or first.targetPath or first.name,
        path=first.targetPath or None,
        format=format if format in _FORMATS else "qcow2",
        source="migration",
        sizeGiB=max(1, -(-(first.sizeBytes or 0) // transfer.GIB)),
        migrationRef=LocalObjectReference(name=migration.metadata.name),
    )
    provider = ObjectRef(name=target.providerRef.name, namespace=target.providerRef.namespace or namespace_of(migration))
    return VirtrigaudVirtualMachine(
        apiVersion=API_VERSION,
        kind="VirtualMachine",
        metadata=ObjectMeta(
            name=target.name,
            namespace=target_namespace(migration),
            labels=dict(target.labels) if target.labels else None,
            annotations=_annotations(migration, disks),
        ),
        spec=VirtrigaudMachineSpec(
            providerRef=provider,
            classRef=class_reference(migration, source),
            importedDisk=root,
            networks=whole(target.networks),
            disks=transfer.target_disks(migration, list(disks)) or None,
            placementRef=whole(target.placementRef),
            powerState="Off",
        ),
    )


def class_reference(migration: VMMigration, source: VirtrigaudVirtualMachine) -> ObjectRef:
    """The class of the new machine; the source's if the migration names none."""
    if migration.spec.target.classRef is not None:
        return ObjectRef(name=migration.spec.target.classRef.name)
    given = source.spec.classRef
    return ObjectRef(name=given.name, namespace=given.namespace or namespace_of(source))


def _annotations(migration: VMMigration, disks: Sequence[MigratedDisk]) -> dict[str, str]:
    place = f"{namespace_of(migration)}/{migration.metadata.name}"
    found = {
        **(migration.spec.target.annotations or {}),
        marks.MIGRATED_FROM: f"{namespace_of(migration)}/{migration.spec.source.vmRef.name}",
        marks.MIGRATION: place,
        marks.MIGRATION_UID: migration.metadata.uid or "",
        marks.IMPORTED_DISK: disks[0].importID or "",
    }
    if disks[0].checksum:
        found[marks.DISK_CHECKSUM] = disks[0].checksum
    if len(disks) > 1:
        found[marks.IMPORTED_DISKS] = transfer.imported_text(list(disks))
    return found
