"""The references of Stakater's machine (see `paddock.kubevirt.plan.changes.references`)."""

from paddock.kubevirt.plan.changes.references import (
    ATTACHMENT,
    CLAIM,
    CONFIG_MAP,
    DATA_SOURCE,
    SECRET,
    Provides,
    References,
    ReferringField,
)

_DISK = "spec.parameters.additionalDisks[].source"

REFERENCES: References = {
    ("infrastructure.stakater.com", "VirtualMachine"): (
        ReferringField("spec.parameters.dataSource.name", (DATA_SOURCE,), "namespace"),
        ReferringField("spec.parameters.networks[].multus.networkName", (ATTACHMENT,), qualified=True),
        ReferringField("spec.parameters.sshPublicKey.secretName", (SECRET,)),
        ReferringField(f"{_DISK}.pvc.name", (CLAIM,), "namespace"),
        *(ReferringField(f"{_DISK}.{kind}.secretRef", (SECRET,)) for kind in ("http", "registry")),
        *(ReferringField(f"{_DISK}.{kind}.certConfigMap", (CONFIG_MAP,)) for kind in ("http", "registry")),
    ),
}
PROVIDES: Provides = {}
