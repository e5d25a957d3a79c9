"""KubeVirt and CDI: machines, pools, snapshots, disks and their images (docs/spec/kubevirt.md). The hub of all translations."""

from paddock.kubernetes.schema.dialect import Dialect, DialectMachine

GROUP = "kubevirt.io"
DIALECT = Dialect(
    name="kubevirt",
    group=GROUP,
    kinds={
        (GROUP, "VirtualMachine"): "virtualmachine",
        (GROUP, "VirtualMachineInstance"): "instance",
        (GROUP, "KubeVirt"): "kubevirt_cr",
        (GROUP, "VirtualMachineInstanceMigration"): "migration",
        (GROUP, "VirtualMachineInstancePreset"): "preset",
        (GROUP, "VirtualMachineInstanceReplicaSet"): "replicaset",
        ("pool.kubevirt.io", "VirtualMachinePool"): "pool",
        ("snapshot.kubevirt.io", "VirtualMachineSnapshot"): "snapshot",
        ("snapshot.kubevirt.io", "VirtualMachineSnapshotContent"): "snapshot",
        ("snapshot.kubevirt.io", "VirtualMachineRestore"): "restore",
        ("clone.kubevirt.io", "VirtualMachineClone"): "clone",
        ("backup.kubevirt.io", "VirtualMachineBackup"): "backup",
        ("backup.kubevirt.io", "VirtualMachineBackupTracker"): "backup",
        ("export.kubevirt.io", "VirtualMachineExport"): "export",
        ("instancetype.kubevirt.io", "VirtualMachineInstancetype"): "instancetype",
        ("instancetype.kubevirt.io", "VirtualMachineClusterInstancetype"): "instancetype",
        ("instancetype.kubevirt.io", "VirtualMachinePreference"): "preference",
        ("instancetype.kubevirt.io", "VirtualMachineClusterPreference"): "preference",
        ("migrations.kubevirt.io", "MigrationPolicy"): "migrationpolicy",
        ("cdi.kubevirt.io", "DataVolume"): "datavolume_kind",
        ("cdi.kubevirt.io", "DataSource"): "datasource",
        ("cdi.kubevirt.io", "DataImportCron"): "dataimportcron",
        ("cdi.kubevirt.io", "VolumeImportSource"): "volumesources",
        ("cdi.kubevirt.io", "VolumeUploadSource"): "volumesources",
        ("cdi.kubevirt.io", "VolumeCloneSource"): "volumesources",
        ("cdi.kubevirt.io", "StorageProfile"): "storageprofile",
        ("cdi.kubevirt.io", "CDIConfig"): "cdiconfig",
        ("cdi.kubevirt.io", "CDI"): "cdiconfig",
        ("cdi.kubevirt.io", "ObjectTransfer"): "objecttransfer",
        ("upload.cdi.kubevirt.io", "UploadTokenRequest"): "uploadtoken",
    },
    machines=(
        DialectMachine(
            group=GROUP,
            version="v1",
            kind="VirtualMachine",
            plural="virtualmachines",
            words=("vm", "vms", "kubevirt"),
        ),
        DialectMachine(
            group=GROUP,
            version="v1",
            kind="VirtualMachineInstance",
            plural="virtualmachineinstances",
            words=("vmi", "vmis"),
        ),
    ),
    effects="paddock.kubevirt.plan.changes.hub",
    references="paddock.kubevirt.plan.changes.hubreferences",
)
