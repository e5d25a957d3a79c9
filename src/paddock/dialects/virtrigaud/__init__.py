"""The VirtRigaud dialect: ten kinds of `infra.virtrigaud.io/v1beta1` (docs/spec/virtrigaud.md section 1)."""

from paddock.kubernetes.schema.dialect import Dialect, DialectMachine

GROUP = "infra.virtrigaud.io"
MACHINE_FINALIZER = "virtualmachine.infra.virtrigaud.io/finalizer"
DIALECT = Dialect(
    name="virtrigaud",
    title="VirtRigaud",
    group=GROUP,
    kinds={
        (GROUP, "VirtualMachine"): "virtualmachine",
        (GROUP, "VMClass"): "vmclass",
        (GROUP, "VMImage"): "vmimage",
        (GROUP, "VMNetworkAttachment"): "vmnetworkattachment",
        (GROUP, "Provider"): "provider",
        (GROUP, "VMSnapshot"): "vmsnapshot",
        (GROUP, "VMClone"): "vmclone",
        (GROUP, "VMMigration"): "vmmigration",
        (GROUP, "VMSet"): "vmset",
        (GROUP, "VMPlacementPolicy"): "vmplacementpolicy",
    },
    machines=(
        DialectMachine(
            group=GROUP,
            version="v1beta1",
            kind="VirtualMachine",
            plural="virtualmachines",
            words=("virtrigaud",),
            finalizer=MACHINE_FINALIZER,
            carried_out={"id": "made"},
        ),
    ),
    translator="paddock.dialects.virtrigaud.translate",
    # The others than VirtualMachine are wishes about machines: they become nothing, and the translator says so.
    translated=tuple((GROUP, kind) for kind in ("VirtualMachine", "VMSet", "VMSnapshot", "VMClone", "VMMigration", "VMPlacementPolicy")),
    makes_disks=True,
    keeps_empty_root=True,
    adapter="paddock.dialects.virtrigaud.plan.adapter",
    diagnosis="paddock.dialects.virtrigaud.plan.diagnosis",
    effects="paddock.dialects.virtrigaud.plan.effects",
    references="paddock.dialects.virtrigaud.plan.referring",
    predictions="paddock.dialects.virtrigaud.plan.predictions",
    quotas="paddock.dialects.virtrigaud.plan.quotas",
    power_words={(GROUP, "VirtualMachine"): ("spec", "powerState"), (GROUP, "VMSet"): ("spec", "template", "spec", "powerState")},
    wiring="paddock.dialects.virtrigaud.wiring",
    embedding="paddock.app.controllers.virtrigaud",
    stored=GROUP,
)
