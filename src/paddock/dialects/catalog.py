"""The module of each kind. The table names modules and loads each on first use, because a command that reads
at one manifest must not pay for all dialects; a test holds this table against the declarations.

What a server has to know of every kind is generated from the declarations (`facts/kinds.json`), so that it loads the declaration of a
kind only when somebody uses it.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import msgspec

from paddock.schema.kind import Kind, KindFacts

DIALECTS = ("kubevirt", "kubermatic", "stakater", "virtrigaud", "vitistack")

# (group, kind) -> module below paddock.dialects; each module has a tuple KINDS.
_DECLARED_IN: dict[tuple[str, str], str] = {
    ("", "ConfigMap"): "core.configmap",
    ("", "Event"): "core.event",
    ("", "Namespace"): "core.namespace",
    ("", "PersistentVolumeClaim"): "core.persistentvolumeclaim",
    ("", "Secret"): "core.secret",
    ("", "Service"): "core.service",
    ("", "ServiceAccount"): "core.serviceaccount",
    ("apps", "ControllerRevision"): "core.controllerrevision",
    ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"): "core.networkattachment",
    ("snapshot.storage.k8s.io", "VolumeSnapshot"): "core.volumesnapshot",
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"): "core.volumesnapshot",
    ("snapshot.storage.k8s.io", "VolumeSnapshotContent"): "core.volumesnapshot",
    ("storage.k8s.io", "StorageClass"): "core.storageclass",
    ("infrastructure.stakater.com", "VirtualMachine"): "stakater.virtualmachine",
    ("infra.virtrigaud.io", "VirtualMachine"): "virtrigaud.virtualmachine",
    ("infra.virtrigaud.io", "VMClass"): "virtrigaud.vmclass",
    ("infra.virtrigaud.io", "VMImage"): "virtrigaud.vmimage",
    ("infra.virtrigaud.io", "VMNetworkAttachment"): "virtrigaud.vmnetworkattachment",
    ("infra.virtrigaud.io", "Provider"): "virtrigaud.provider",
    ("infra.virtrigaud.io", "VMSnapshot"): "virtrigaud.vmsnapshot",
    ("infra.virtrigaud.io", "VMClone"): "virtrigaud.vmclone",
    ("infra.virtrigaud.io", "VMMigration"): "virtrigaud.vmmigration",
    ("infra.virtrigaud.io", "VMSet"): "virtrigaud.vmset",
    ("infra.virtrigaud.io", "VMPlacementPolicy"): "virtrigaud.vmplacementpolicy",
    ("vitistack.io", "Machine"): "vitistack.machine",
    ("vitistack.io", "MachineClass"): "vitistack.machineclass",
    ("vitistack.io", "MachineTemplate"): "vitistack.machinetemplate",
    ("vitistack.io", "NetworkConfiguration"): "vitistack.networkconfiguration",
    ("kubevirt.io", "VirtualMachine"): "kubevirt.virtualmachine",
    ("kubevirt.io", "VirtualMachineInstance"): "kubevirt.instance",
    ("kubevirt.io", "KubeVirt"): "kubevirt.kubevirt_cr",
    ("kubevirt.io", "VirtualMachineInstanceMigration"): "kubevirt.migration",
    ("kubevirt.io", "VirtualMachineInstancePreset"): "kubevirt.preset",
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): "kubevirt.replicaset",
    ("kubevirt.io", "VirtualMachinePool"): "kubermatic.pool",
    ("pool.kubevirt.io", "VirtualMachinePool"): "kubevirt.pool",
    ("snapshot.kubevirt.io", "VirtualMachineSnapshot"): "kubevirt.snapshot",
    ("snapshot.kubevirt.io", "VirtualMachineSnapshotContent"): "kubevirt.snapshot",
    ("snapshot.kubevirt.io", "VirtualMachineRestore"): "kubevirt.restore",
    ("clone.kubevirt.io", "VirtualMachineClone"): "kubevirt.clone",
    ("export.kubevirt.io", "VirtualMachineExport"): "kubevirt.export",
    ("instancetype.kubevirt.io", "VirtualMachineInstancetype"): "kubevirt.instancetype",
    ("instancetype.kubevirt.io", "VirtualMachineClusterInstancetype"): "kubevirt.instancetype",
    ("instancetype.kubevirt.io", "VirtualMachinePreference"): "kubevirt.preference",
    ("instancetype.kubevirt.io", "VirtualMachineClusterPreference"): "kubevirt.preference",
    ("migrations.kubevirt.io", "MigrationPolicy"): "kubevirt.migrationpolicy",
    ("cdi.kubevirt.io", "DataVolume"): "kubevirt.datavolume_kind",
    ("cdi.kubevirt.io", "DataSource"): "kubevirt.datasource",
    ("cdi.kubevirt.io", "DataImportCron"): "kubevirt.dataimportcron",
    ("cdi.kubevirt.io", "VolumeImportSource"): "kubevirt.volumesources",
    ("cdi.kubevirt.io", "VolumeUploadSource"): "kubevirt.volumesources",
    ("cdi.kubevirt.io", "VolumeCloneSource"): "kubevirt.volumesources",
    ("cdi.kubevirt.io", "StorageProfile"): "kubevirt.storageprofile",
    ("cdi.kubevirt.io", "CDIConfig"): "kubevirt.cdiconfig",
    ("cdi.kubevirt.io", "CDI"): "kubevirt.cdiconfig",
    ("cdi.kubevirt.io", "ObjectTransfer"): "kubevirt.objecttransfer",
    ("upload.cdi.kubevirt.io", "UploadTokenRequest"): "kubevirt.uploadtoken",
    ("virtualization.k8c.io", "Image"): "kubermatic.image",
}


_FACTS = Path(__file__).parent / "facts" / "kinds.json"


@cache
def _kinds_of(module: str) -> tuple[Kind, ...]:
    kinds: tuple[Kind, ...] = import_module(f"paddock.dialects.{module}").KINDS
    return kinds


def find(group: str, kind: str) -> Kind | None:
    """The declaration of a kind, or None."""
    module = _DECLARED_IN.get((group, kind))
    if module is None:
        return None
    return next(found for found in _kinds_of(module) if found.group == group and found.kind == kind)


def known() -> tuple[tuple[str, str], ...]:
    """Every (group, kind), without loading any."""
    return tuple(_DECLARED_IN)


@cache
def facts() -> tuple[KindFacts, ...]:
    """The facts of all kinds, in the order of the table, without loading any."""
    return msgspec.json.decode(_FACTS.read_bytes(), type=tuple[KindFacts, ...])


def declaration(kind: KindFacts) -> Kind:
    """The whole declaration of a kind."""
    found = kind if isinstance(kind, Kind) else find(kind.group, kind.kind)
    assert found is not None, f"{kind.kind} of {kind.group} is not in the table"
    return found


def every() -> tuple[Kind, ...]:
    """All declarations, loaded, in the order of the table."""
    return tuple(found for group, kind in _DECLARED_IN if (found := find(group, kind)) is not None)
