"""The references of KubeVirt's and CDI's kinds (see `paddock.kubevirt.plan.changes.references`)."""

from paddock.kubevirt.plan.changes.references import (
    ATTACHMENT,
    CLAIM,
    CONFIG_MAP,
    DATA_SOURCE,
    DATA_VOLUME,
    IMAGE,
    INSTANCE,
    MACHINE,
    SECRET,
    SNAPSHOT,
    Provides,
    ProvidingField,
    References,
    ReferringField,
)

TRACKER = ("backup.kubevirt.io", "VirtualMachineBackupTracker")
_TYPES = ("VirtualMachineInstancetype", "VirtualMachineClusterInstancetype")
_PREFERENCES = ("VirtualMachinePreference", "VirtualMachineClusterPreference")


def _http(at: str) -> tuple[ReferringField, ...]:
    """An import from a server, in DataVolumes and DataSources."""
    return (
        *(ReferringField(f"{at}.{kind}.secretRef", (SECRET,)) for kind in ("http", "registry", "s3", "gcs", "imageio", "vddk")),
        *(ReferringField(f"{at}.{kind}.certConfigMap", (CONFIG_MAP,)) for kind in ("http", "registry", "s3", "imageio")),
        *(ReferringField(f"{at}.http.certConfig{part}.secretRef.name", (SECRET,)) for part in ("", ".cert", ".key")),
        ReferringField(f"{at}.pvc.name", (CLAIM,), "namespace"),
    )


def _volume(at: str) -> tuple[ReferringField, ...]:
    """The spec of a DataVolume."""
    return (*_http(f"{at}.source"), ReferringField(f"{at}.sourceRef.name", (DATA_SOURCE, IMAGE), "namespace", "kind"))


def _instance(at: str) -> tuple[ReferringField, ...]:
    """The spec of a machine instance."""
    volumes = f"{at}.volumes[]"
    clouds = (f"{volumes}.cloudInitNoCloud", f"{volumes}.cloudInitConfigDrive")
    return (
        ReferringField(f"{volumes}.dataVolume.name", (DATA_VOLUME, CLAIM)),
        ReferringField(f"{volumes}.persistentVolumeClaim.claimName", (CLAIM,)),
        ReferringField(f"{volumes}.ephemeral.persistentVolumeClaim.claimName", (CLAIM,)),
        *(ReferringField(f"{cloud}.{name}.name", (SECRET,)) for cloud in clouds for name in ("secretRef", "networkDataSecretRef")),
        ReferringField(f"{volumes}.secret.secretName", (SECRET,)),
        ReferringField(f"{volumes}.configMap.name", (CONFIG_MAP,)),
        ReferringField(f"{volumes}.sysprep.secret.name", (SECRET,)),
        ReferringField(f"{volumes}.sysprep.configMap.name", (CONFIG_MAP,)),
        ReferringField(f"{at}.networks[].multus.networkName", (ATTACHMENT,), qualified=True),
        ReferringField(f"{at}.accessCredentials[].sshPublicKey.source.secret.secretName", (SECRET,)),
        ReferringField(f"{at}.accessCredentials[].userPassword.source.secret.secretName", (SECRET,)),
    )


def _machine(at: str) -> tuple[ReferringField, ...]:
    """The spec of a machine."""
    return (
        ReferringField(f"{at}.instancetype.name", tuple(("instancetype.kubevirt.io", kind) for kind in _TYPES), kind_in="kind"),
        ReferringField(f"{at}.preference.name", tuple(("instancetype.kubevirt.io", kind) for kind in _PREFERENCES), kind_in="kind"),
        *_volume(f"{at}.dataVolumeTemplates[].spec"),
        *_instance(f"{at}.template.spec"),
    )


POOL = "spec.virtualMachineTemplate.spec"
POOLED = (*_machine(POOL), *_instance(POOL))
REFERENCES: References = {
    MACHINE: _machine("spec"),
    INSTANCE: _instance("spec"),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _instance("spec.template.spec"),
    ("kubevirt.io", "VirtualMachineInstanceMigration"): (ReferringField("spec.vmiName", (INSTANCE, MACHINE)),),
    ("pool.kubevirt.io", "VirtualMachinePool"): POOLED,
    SNAPSHOT: (ReferringField("spec.source.name", (MACHINE,), kind_in="kind"),),
    ("snapshot.kubevirt.io", "VirtualMachineRestore"): (ReferringField("spec.virtualMachineSnapshotName", (SNAPSHOT,)),),
    ("clone.kubevirt.io", "VirtualMachineClone"): (ReferringField("spec.source.name", (MACHINE, SNAPSHOT), kind_in="kind"),),
    ("export.kubevirt.io", "VirtualMachineExport"): (
        ReferringField("spec.source.name", (MACHINE, SNAPSHOT, CLAIM), kind_in="kind"),
        ReferringField("spec.tokenSecretRef", (SECRET,)),
    ),
    TRACKER: (ReferringField("spec.source.name", (MACHINE,), kind_in="kind"),),
    ("backup.kubevirt.io", "VirtualMachineBackup"): (
        ReferringField("spec.source.name", (MACHINE, TRACKER), kind_in="kind"),
        ReferringField("spec.pvcName", (CLAIM,)),
    ),
    DATA_VOLUME: _volume("spec"),
    DATA_SOURCE: (*_http("spec.source"), ReferringField("spec.source.dataSource.name", (DATA_SOURCE,), "namespace")),
    ("cdi.kubevirt.io", "DataImportCron"): _http("spec.template.spec.source"),
}

_TEMPLATES = ProvidingField("spec.dataVolumeTemplates[].metadata.name", (DATA_VOLUME, CLAIM))
POOL_TEMPLATES = ProvidingField(f"{POOL}.dataVolumeTemplates[].metadata.name", (DATA_VOLUME, CLAIM))
PROVIDES: Provides = {
    MACHINE: (_TEMPLATES, ProvidingField("metadata.name", (INSTANCE,))),
    DATA_VOLUME: (ProvidingField("metadata.name", (CLAIM,)),),
    ("pool.kubevirt.io", "VirtualMachinePool"): (POOL_TEMPLATES,),
}
