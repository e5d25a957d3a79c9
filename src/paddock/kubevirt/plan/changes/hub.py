"""The effects of changes of KubeVirt's and CDI's kinds (see `paddock.kubevirt.plan.changes.table`)."""

from paddock.kubevirt.plan.changes.effects import EffectRow
from paddock.kubevirt.plan.changes.rows import (
    COMING,
    DATA_SOURCE,
    DATA_VOLUME,
    DOWN,
    FIXED,
    GOING,
    HARDWARE,
    KEPT,
    LABELS,
    LIVE,
    LOSS,
    NONE,
    POWER,
    RECREATE,
    RESTART,
    REWRITTEN,
    SETTINGS,
    TOPOLOGY,
    Effects,
    Rows,
    members,
    pluggable,
)


def _instance(at: str) -> Rows:
    """The spec of the instance in a machine's template."""
    volume, interface = f"{at}.volumes[]", f"{at}.domain.devices.interfaces[]"
    claims = ("dataVolume", "persistentVolumeClaim")
    plugged = "volumes from claims are plugged in and out while the machine runs; their data stays"
    return (
        EffectRow(at, RESTART, HARDWARE),
        *pluggable(f"{at}.domain.cpu.sockets", "sockets"),
        *pluggable(f"{at}.domain.memory.guest", "memory"),
        *members(at, "nodeSelector affinity tolerations", LIVE, "takes hold when the machine moves or starts next"),
        EffectRow(volume, RESTART, "the guest has the other volume after a restart; the old one keeps its data"),
        EffectRow(volume, LIVE, plugged, (*COMING, *GOING), claims),
        EffectRow(f"{at}.domain.devices.disks[]", LIVE, "plugged in or out together with its volume", (*COMING, *GOING)),
        *members(volume, "cloudInitNoCloud cloudInitConfigDrive", RESTART, REWRITTEN),
        EffectRow(f"{volume}.emptyDisk", LOSS, "an empty disk lives as long as the running machine: a new one is made at the restart"),
        EffectRow(
            interface, LIVE, "a card with the bridge binding is plugged in or out while the machine runs", (*COMING, *GOING), ("bridge",)
        ),
        EffectRow(f"{interface}.state", LIVE, "the link goes up or down at once"),
        EffectRow(f"{at}.networks[]", LIVE, "plugged in or out together with its card", (*COMING, *GOING), ("multus",)),
    )


def _machine(at: str) -> Rows:
    """The spec of a KubeVirt machine."""
    return (
        EffectRow(f"{at}.runStrategy", LIVE, POWER),
        EffectRow(f"{at}.running", LIVE, POWER),
        EffectRow(f"{at}.template.metadata", RESTART, "the running instance keeps its labels and annotations"),
        *_instance(f"{at}.template.spec"),
        EffectRow(f"{at}.dataVolumeTemplates", NONE, "DataVolumes are made once: one that exists keeps its data and its size"),
        EffectRow(f"{at}.dataVolumeTemplates[]", LIVE, "a new DataVolume is made", COMING),
        EffectRow(f"{at}.dataVolumeTemplates[]", NONE, "the DataVolume stays, with its data, as long as the machine", GOING),
        EffectRow(f"{at}.instancetype", RESTART, TOPOLOGY),
        EffectRow(f"{at}.preference", RESTART, HARDWARE),
        EffectRow(f"{at}.updateVolumesStrategy", LIVE, "counts for the next change of a volume"),
    )


def pool(*, flat: bool) -> Rows:
    """A pool of machines; the flat form puts the labels of its template on the running machines, too."""
    inner = "spec.virtualMachineTemplate.spec"
    anew = "the running machines are restarted one after the other, as updateStrategy says"
    disks = "every machine of the pool is deleted and made anew, with new disks"
    return (
        EffectRow("spec.replicas", LIVE, "machines are added"),
        EffectRow("spec.replicas", LOSS, "machines are deleted, with their disks unless scaleInStrategy preserves them", DOWN),
        EffectRow("spec.selector", RECREATE, "the selector of a pool is fixed: make another pool"),
        EffectRow("spec.virtualMachineTemplate", RESTART, anew),
        EffectRow("spec.virtualMachineTemplate.metadata", RESTART if flat else LIVE, anew if flat else LABELS),
        EffectRow(f"{inner}.runStrategy", LIVE, POWER),
        EffectRow(f"{inner}.running", LIVE, POWER),
        EffectRow(f"{inner}.updateVolumesStrategy", LIVE, "counts for the next change of a volume"),
        EffectRow(f"{inner}.dataVolumeTemplates", LOSS, disks),
        EffectRow("spec.nameGeneration", RESTART, "machines refer to other Secrets and ConfigMaps from their next restart on"),
        *members(
            "spec", "paused maxUnavailable scaleInStrategy updateStrategy autohealing", LIVE, "the controller of the pool follows at once"
        ),
    )


_INSTANCE_SPEC: Rows = (EffectRow("spec", RECREATE, "a running instance does not change: it ends, and a new one starts"),)
_REPLICA_SET: Rows = (
    EffectRow("spec.replicas", LIVE, "instances are added or ended"),
    EffectRow("spec.paused", LIVE, "the controller follows at once"),
    EffectRow("spec.selector", RECREATE, "the selector of a replica set is fixed: make another one"),
    EffectRow("spec.template", NONE, "only instances that start from now on are made from it"),
)

EFFECTS: Effects = {
    ("kubevirt.io", "VirtualMachine"): _machine("spec"),
    ("kubevirt.io", "VirtualMachineInstance"): _INSTANCE_SPEC,
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _REPLICA_SET,
    ("kubevirt.io", "VirtualMachineInstancePreset"): KEPT,
    ("kubevirt.io", "VirtualMachineInstanceMigration"): FIXED,
    ("kubevirt.io", "KubeVirt"): SETTINGS,
    ("pool.kubevirt.io", "VirtualMachinePool"): pool(flat=False),
    ("snapshot.kubevirt.io", "VirtualMachineSnapshot"): FIXED,
    ("snapshot.kubevirt.io", "VirtualMachineSnapshotContent"): FIXED,
    ("snapshot.kubevirt.io", "VirtualMachineRestore"): FIXED,
    ("clone.kubevirt.io", "VirtualMachineClone"): FIXED,
    ("backup.kubevirt.io", "VirtualMachineBackup"): FIXED,
    ("backup.kubevirt.io", "VirtualMachineBackupTracker"): FIXED,
    ("export.kubevirt.io", "VirtualMachineExport"): FIXED,
    ("migrations.kubevirt.io", "MigrationPolicy"): SETTINGS,
    ("instancetype.kubevirt.io", "VirtualMachineInstancetype"): KEPT,
    ("instancetype.kubevirt.io", "VirtualMachineClusterInstancetype"): KEPT,
    ("instancetype.kubevirt.io", "VirtualMachinePreference"): KEPT,
    ("instancetype.kubevirt.io", "VirtualMachineClusterPreference"): KEPT,
    ("cdi.kubevirt.io", "DataVolume"): DATA_VOLUME,
    ("cdi.kubevirt.io", "DataSource"): DATA_SOURCE,
    ("cdi.kubevirt.io", "DataImportCron"): FIXED,
    ("cdi.kubevirt.io", "VolumeImportSource"): FIXED,
    ("cdi.kubevirt.io", "VolumeUploadSource"): FIXED,
    ("cdi.kubevirt.io", "VolumeCloneSource"): FIXED,
    ("cdi.kubevirt.io", "StorageProfile"): SETTINGS,
    ("cdi.kubevirt.io", "CDIConfig"): SETTINGS,
    ("cdi.kubevirt.io", "CDI"): SETTINGS,
    ("cdi.kubevirt.io", "ObjectTransfer"): FIXED,
    ("upload.cdi.kubevirt.io", "UploadTokenRequest"): FIXED,
}
