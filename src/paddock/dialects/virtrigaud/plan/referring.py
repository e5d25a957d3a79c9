"""The references of VirtRigaud's kinds (see `paddock.kubevirt.plan.changes.references`)."""

from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import SECRET, Provides, References, ReferringField


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


REFERENCES: References = {
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
}
PROVIDES: Provides = {}
