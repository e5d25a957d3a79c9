"""The references of Kubermatic's own kinds (see `paddock.kubevirt.plan.changes.references`)."""

from paddock.kubevirt.plan.changes.hubreferences import POOL_TEMPLATES, POOLED
from paddock.kubevirt.plan.changes.references import CLAIM, SECRET, Provides, References, ReferringField

REFERENCES: References = {
    ("kubevirt.io", "VirtualMachinePool"): POOLED,
    ("virtualization.k8c.io", "Image"): (
        ReferringField("spec.credentials.name", (SECRET,)),
        ReferringField("spec.pvc.name", (CLAIM,), "namespace"),
    ),
}
PROVIDES: Provides = {("kubevirt.io", "VirtualMachinePool"): (POOL_TEMPLATES,)}
