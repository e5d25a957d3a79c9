"""The references between objects, by field and kind: one table for the commands and the controllers.

Only references to objects that users write are here. Infrastructure of a cluster (storage classes, nodes) is not: nobody keeps it
beside their machines.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from paddock.plan.changes.patterns import Parts, parse, places
from paddock.schema.finding import Path

KindId = tuple[str, str]


class ReferringField(msgspec.Struct, frozen=True):
    """A field that names an object.

    `to` lists the kinds that will do, the first being the one that is meant. `kind_in` and `namespace_in` are members beside
    the name that choose among them; a name may also be written `namespace/name` where `qualified`. Names in `known` mean
    something without an object.
    """

    path: str
    to: tuple[KindId, ...]
    namespace_in: str = ""
    kind_in: str = ""
    qualified: bool = False
    known: tuple[str, ...] = ()


class ProvidingField(msgspec.Struct, frozen=True):
    """A field that names an object which the owner brings along."""

    path: str
    what: tuple[KindId, ...]


class FieldReference(msgspec.Struct, frozen=True):
    """A reference that an object makes. `namespace` is None where the object's own is meant."""

    path: Path
    to: tuple[KindId, ...]
    name: str
    namespace: str | None


def references(group: str, kind: str, data: dict[str, Any]) -> Iterator[FieldReference]:
    """Every object that an object names."""
    for row, parts in _compiled(group, kind):
        for path, owner, name in places(parts, data):
            if not isinstance(name, str) or not name or name in row.known:
                continue
            chosen = owner.get(row.kind_in) if row.kind_in else None
            to = tuple(each for each in row.to if each[1] == chosen) if chosen else row.to
            if not to:
                continue
            namespace = owner.get(row.namespace_in) if row.namespace_in else None
            if row.qualified and "/" in name:
                namespace, name = name.split("/", 1)
            yield FieldReference(path, to, name, namespace if isinstance(namespace, str) and namespace else None)


def provided(group: str, kind: str, data: dict[str, Any]) -> Iterator[tuple[KindId, str]]:
    """The objects that an object brings along, in its own namespace."""
    for row in PROVIDES.get((group, kind), ()):
        for _, _, name in places(parse(row.path), data):
            if isinstance(name, str) and name:
                for what in row.what:
                    yield what, name


@cache
def _compiled(group: str, kind: str) -> tuple[tuple[ReferringField, Parts], ...]:
    return tuple((row, parse(row.path)) for row in REFERENCES.get((group, kind), ()))


SECRET: KindId = ("", "Secret")
CONFIG_MAP: KindId = ("", "ConfigMap")
CLAIM: KindId = ("", "PersistentVolumeClaim")
ATTACHMENT: KindId = ("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
DATA_VOLUME: KindId = ("cdi.kubevirt.io", "DataVolume")
DATA_SOURCE: KindId = ("cdi.kubevirt.io", "DataSource")
IMAGE: KindId = ("virtualization.k8c.io", "Image")
MACHINE: KindId = ("kubevirt.io", "VirtualMachine")
INSTANCE: KindId = ("kubevirt.io", "VirtualMachineInstance")
SNAPSHOT: KindId = ("snapshot.kubevirt.io", "VirtualMachineSnapshot")
_TYPES = ("VirtualMachineInstancetype", "VirtualMachineClusterInstancetype")
_PREFERENCES = ("VirtualMachinePreference", "VirtualMachineClusterPreference")


def _rigaud(kind: str) -> tuple[KindId, ...]:
    return (("infra.virtrigaud.io", kind),)


def _rigaud_machine(at: str) -> tuple[ReferringField, ...]:
    """The spec of a machine at a provider."""
    return (
        ReferringField(f"{at}.providerRef.name", _rigaud("Provider"), "namespace"),
        ReferringField(f"{at}.classRef.name", _rigaud("VMClass"), "namespace"),
        ReferringField(f"{at}.imageRef.name", _rigaud("VMImage"), "namespace"),
        ReferringField(f"{at}.networks[].networkRef.name", _rigaud("VMNetworkAttachment"), "namespace"),
        ReferringField(f"{at}.placementRef.name", _rigaud("VMPlacementPolicy")),
        ReferringField(f"{at}.snapshot.revertToRef.name", _rigaud("VMSnapshot")),
        ReferringField(f"{at}.importedDisk.migrationRef.name", _rigaud("VMMigration")),
        ReferringField(f"{at}.metaData.cloudInit.secretRef.name", (SECRET,)),
        *_user_data(f"{at}.userData"),
    )


def _user_data(at: str) -> tuple[ReferringField, ...]:
    return tuple(ReferringField(f"{at}.{kind}.secretRef.name", (SECRET,)) for kind in ("cloudInit", "ignition"))


def _rigaud_target(at: str) -> tuple[ReferringField, ...]:
    """Return the references of the target of a clone or a migration."""
    return (
        ReferringField(f"{at}.providerRef.name", _rigaud("Provider"), "namespace"),
        ReferringField(f"{at}.classRef.name", _rigaud("VMClass")),
        ReferringField(f"{at}.networks[].networkRef.name", _rigaud("VMNetworkAttachment"), "namespace"),
        ReferringField(f"{at}.placementRef.name", _rigaud("VMPlacementPolicy")),
    )


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


_POOL = "spec.virtualMachineTemplate.spec"
_POOLED = (*_machine(_POOL), *_instance(_POOL))
_DISK = "spec.parameters.additionalDisks[].source"

_CLASSES = ("small", "medium", "large", "xlarge", "largememory", "largecpu")
REFERENCES: dict[KindId, tuple[ReferringField, ...]] = {
    MACHINE: _machine("spec"),
    INSTANCE: _instance("spec"),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _instance("spec.template.spec"),
    ("kubevirt.io", "VirtualMachineInstanceMigration"): (ReferringField("spec.vmiName", (INSTANCE, MACHINE)),),
    ("kubevirt.io", "VirtualMachinePool"): _POOLED,
    ("pool.kubevirt.io", "VirtualMachinePool"): _POOLED,
    SNAPSHOT: (ReferringField("spec.source.name", (MACHINE,), kind_in="kind"),),
    ("snapshot.kubevirt.io", "VirtualMachineRestore"): (ReferringField("spec.virtualMachineSnapshotName", (SNAPSHOT,)),),
    ("clone.kubevirt.io", "VirtualMachineClone"): (ReferringField("spec.source.name", (MACHINE, SNAPSHOT), kind_in="kind"),),
    ("export.kubevirt.io", "VirtualMachineExport"): (
        ReferringField("spec.source.name", (MACHINE, SNAPSHOT, CLAIM), kind_in="kind"),
        ReferringField("spec.tokenSecretRef", (SECRET,)),
    ),
    DATA_VOLUME: _volume("spec"),
    DATA_SOURCE: (*_http("spec.source"), ReferringField("spec.source.dataSource.name", (DATA_SOURCE,), "namespace")),
    ("cdi.kubevirt.io", "DataImportCron"): _http("spec.template.spec.source"),
    ("infrastructure.stakater.com", "VirtualMachine"): (
        ReferringField("spec.parameters.dataSource.name", (DATA_SOURCE,), "namespace"),
        ReferringField("spec.parameters.networks[].multus.networkName", (ATTACHMENT,), qualified=True),
        ReferringField("spec.parameters.sshPublicKey.secretName", (SECRET,)),
        ReferringField(f"{_DISK}.pvc.name", (CLAIM,), "namespace"),
        *(ReferringField(f"{_DISK}.{kind}.secretRef", (SECRET,)) for kind in ("http", "registry")),
        *(ReferringField(f"{_DISK}.{kind}.certConfigMap", (CONFIG_MAP,)) for kind in ("http", "registry")),
    ),
    ("vitistack.io", "Machine"): (
        ReferringField("spec.template", (("vitistack.io", "MachineTemplate"),), known=("small", "medium", "large")),
        ReferringField("spec.networks[].networkName", (("vitistack.io", "NetworkConfiguration"),)),
        ReferringField("spec.cloudInit.secretRef.name", (SECRET,)),
        ReferringField("spec.machineClass", (("vitistack.io", "MachineClass"),), known=_CLASSES),
        ReferringField("spec.network.networkNamespaceName", (("vitistack.io", "NetworkConfiguration"),)),
        *(ReferringField(f"spec.cloudInit.{each}SecretRef.name", (SECRET,)) for each in ("userData", "networkData")),
        *(ReferringField(f"spec.cloudInit.{each}ConfigMapRef.name", (CONFIG_MAP,)) for each in ("userData", "networkData")),
    ),
    ("infra.virtrigaud.io", "VirtualMachine"): _rigaud_machine("spec"),
    ("infra.virtrigaud.io", "VMSet"): _rigaud_machine("spec.template.spec"),
    ("infra.virtrigaud.io", "Provider"): (
        ReferringField("spec.credentialSecretRef.name", (SECRET,), "namespace"),
        ReferringField("spec.runtime.service.tls.secretRef.name", (SECRET,)),
    ),
    ("infra.virtrigaud.io", "VMImage"): (
        ReferringField("spec.source.vsphere.providerRef.name", _rigaud("Provider")),
        *(
            ReferringField(f"spec.source.http.authentication.{way}.secretRef.name", (SECRET,))
            for way in ("basicAuth", "bearer", "clientCert")
        ),
        ReferringField("spec.source.registry.pullSecretRef.name", (SECRET,)),
    ),
    ("infra.virtrigaud.io", "VMSnapshot"): (ReferringField("spec.vmRef.name", _rigaud("VirtualMachine")),),
    ("infra.virtrigaud.io", "VMClone"): (
        ReferringField("spec.source.vmRef.name", _rigaud("VirtualMachine")),
        ReferringField("spec.source.snapshotRef.name", _rigaud("VMSnapshot")),
        ReferringField("spec.source.templateRef.name", _rigaud("VMImage"), "namespace"),
        ReferringField("spec.source.imageRef.name", _rigaud("VMImage"), "namespace"),
        *_rigaud_target("spec.target"),
        *_user_data("spec.customization.userData"),
        ReferringField("spec.customization.sysprep.adminPassword.secretRef.name", (SECRET,)),
        ReferringField("spec.customization.sysprep.joinDomain.password.secretRef.name", (SECRET,)),
        ReferringField("spec.customization.certificates[].secretRef.name", (SECRET,)),
    ),
    ("infra.virtrigaud.io", "VMMigration"): (
        ReferringField("spec.source.vmRef.name", _rigaud("VirtualMachine")),
        ReferringField("spec.source.providerRef.name", _rigaud("Provider"), "namespace"),
        ReferringField("spec.source.snapshotRef.name", _rigaud("VMSnapshot")),
        ReferringField("spec.target.imageRef.name", _rigaud("VMImage")),
        *_rigaud_target("spec.target"),
        ReferringField("spec.storage.s3.credentialsSecretRef.name", (SECRET,), "namespace"),
    ),
    ("virtualization.k8c.io", "Image"): (
        ReferringField("spec.credentials.name", (SECRET,)),
        ReferringField("spec.pvc.name", (CLAIM,), "namespace"),
    ),
}

_TEMPLATES = ProvidingField("spec.dataVolumeTemplates[].metadata.name", (DATA_VOLUME, CLAIM))
_POOL_TEMPLATES = ProvidingField(f"{_POOL}.dataVolumeTemplates[].metadata.name", (DATA_VOLUME, CLAIM))
PROVIDES: dict[KindId, tuple[ProvidingField, ...]] = {
    MACHINE: (_TEMPLATES, ProvidingField("metadata.name", (INSTANCE,))),
    DATA_VOLUME: (ProvidingField("metadata.name", (CLAIM,)),),
    ("kubevirt.io", "VirtualMachinePool"): (_POOL_TEMPLATES,),
    ("pool.kubevirt.io", "VirtualMachinePool"): (_POOL_TEMPLATES,),
    # The attachment is made of it, under the same name.
    ("vitistack.io", "NetworkConfiguration"): (ProvidingField("metadata.name", (ATTACHMENT,)),),
}
