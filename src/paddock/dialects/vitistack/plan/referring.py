"""The references of Vitistack's kinds (see `paddock.kubevirt.plan.changes.references`)."""

from paddock.kubevirt.plan.changes.references import ATTACHMENT, CONFIG_MAP, SECRET, Provides, ProvidingField, References, ReferringField

_CLASSES = ("small", "medium", "large", "xlarge", "largememory", "largecpu")
REFERENCES: References = {
    ("vitistack.io", "Machine"): (
        ReferringField("spec.template", (("vitistack.io", "MachineTemplate"),), known=("small", "medium", "large")),
        ReferringField("spec.networks[].networkName", (("vitistack.io", "NetworkConfiguration"),)),
        ReferringField("spec.cloudInit.secretRef.name", (SECRET,)),
        ReferringField("spec.machineClass", (("vitistack.io", "MachineClass"),), known=_CLASSES),
        ReferringField("spec.network.networkNamespaceName", (("vitistack.io", "NetworkConfiguration"),)),
        *(ReferringField(f"spec.cloudInit.{each}SecretRef.name", (SECRET,)) for each in ("userData", "networkData")),
        *(ReferringField(f"spec.cloudInit.{each}ConfigMapRef.name", (CONFIG_MAP,)) for each in ("userData", "networkData")),
    ),
}
# The attachment is made of it, under the same name.
PROVIDES: Provides = {("vitistack.io", "NetworkConfiguration"): (ProvidingField("metadata.name", (ATTACHMENT,)),)}
