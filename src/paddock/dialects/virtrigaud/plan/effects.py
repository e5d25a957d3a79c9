"""The effects of changes of VirtRigaud's kinds (see `paddock.kubevirt.plan.changes.table`)."""

from paddock.kubevirt.plan.changes.differences import ValueChange
from paddock.kubevirt.plan.changes.effects import EffectRow
from paddock.kubevirt.plan.changes.rows import (
    COMING,
    DOWN,
    FIRST_BOOT,
    FIXED,
    GOING,
    HARDWARE,
    LABELS,
    LIVE,
    LOSS,
    MADE_ONCE,
    NONE,
    ONCE,
    POWER,
    RECREATE,
    RESTART,
    Effects,
    Rows,
    members,
    pluggable,
    size,
)

# Every Provider ignores something.
_AS_IT_CAN = "as far as its Provider can (the machine's condition Unsupported names the rest)"
_CLASS: Rows = (
    *pluggable("spec.cpu", "sockets"),
    *pluggable("spec.memory", "memory"),
    *members(
        "spec",
        "firmware diskDefaults guestToolsPolicy resourceLimits performanceProfile securityProfile extraConfig",
        NONE,
        f"counts when a machine of this class is made, {_AS_IT_CAN}; those that exist stay as they are",
    ),
)
# What is only kept: of an image, of a network.
_ABOUT = "kept for people and programs: it changes no machine"
_IMAGE: Rows = (
    EffectRow("spec", NONE, f"machines that exist keep their disks; new ones are made from it, {_AS_IT_CAN}"),
    EffectRow("spec.prepare", NONE, "counts when a Provider prepares the image"),
    *members("spec", "metadata distribution", NONE, _ABOUT),
    *members("spec.source", "libvirt.format registry.format", NONE, _ABOUT),
)
_NETWORK: Rows = (
    EffectRow("spec", NONE, f"counts when a machine is made, {_AS_IT_CAN}"),
    EffectRow("spec.metadata", NONE, _ABOUT),
    EffectRow("spec.network.type", NONE, f"{_ABOUT}, but for a network without a block of a Provider of type qemu or firecracker"),
)


def _machine(at: str) -> Rows:
    """The spec of VirtRigaud's machine."""
    return (
        EffectRow(f"{at}.providerRef", LOSS, "another provider makes another machine with new disks: move it with a VMMigration"),
        EffectRow(f"{at}.classRef", RESTART, "processors and memory are plugged in where provider and class allow it, else at a restart"),
        *members(at, "imageRef importedDisk networks placement placementRef tags", NONE, MADE_ONCE),
        EffectRow(f"{at}.disks", NONE, MADE_ONCE, (ValueChange.REORDERED,)),
        *members(f"{at}.disks[]", "name type storageClass scsi", NONE, MADE_ONCE),
        EffectRow(f"{at}.disks[]", LIVE, "attached at once", COMING),
        EffectRow(f"{at}.disks[]", LIVE, "detached at once, and never deleted", GOING),
        *size(f"{at}.disks[].sizeGiB", grow="grown while the machine runs with expandPolicy Online, else when it is off"),
        EffectRow(f"{at}.disks[].expandPolicy", LIVE, "counts for the next growth"),
        EffectRow(f"{at}.userData", NONE, FIRST_BOOT),
        EffectRow(f"{at}.metaData", NONE, FIRST_BOOT),
        EffectRow(f"{at}.powerState", LIVE, POWER),
        *pluggable(f"{at}.resources.cpu", "sockets"),
        *pluggable(f"{at}.resources.memoryMiB", "memory"),
        EffectRow(f"{at}.resources.gpu", RESTART, HARDWARE),
        EffectRow(f"{at}.snapshot", LOSS, "the machine goes back to the snapshot: what was written since is gone"),
        EffectRow(f"{at}.snapshot", NONE, "the machine stays as it is", GOING),
        EffectRow(f"{at}.lifecycle", LIVE, "counts for the next start or stop"),
    )


_T = "spec.template.spec"
_REPLACED = "machines are replaced one after the other, as updateStrategy says, each with new disks"
# What is changed without making the machine anew.
_IN_PLACE = (f"{_T}.powerState", f"{_T}.resources.cpu", f"{_T}.resources.memoryMiB", f"{_T}.disks[].sizeGiB")
_SET: Rows = (
    EffectRow("spec.replicas", LIVE, "machines are added"),
    EffectRow("spec.replicas", LOSS, "the machines with the highest numbers are deleted", DOWN),
    EffectRow("spec.selector", RECREATE, "the selector of a set is fixed: make another set"),
    EffectRow("spec.template", LOSS, _REPLACED),
    EffectRow("spec.template.metadata", LIVE, LABELS),
    *(row for row in _machine(_T) if row.path in _IN_PLACE),
    EffectRow(f"{_T}.disks[]", LIVE, "attached to every machine at once, where the Provider can", COMING),
    *members(
        "spec",
        "updateStrategy minReadySeconds revisionHistoryLimit",
        LIVE,
        "the controller of the set follows at once",
    ),
    *members("spec", "persistentVolumeClaimRetentionPolicy serviceName", NONE, "no effect: the condition Unsupported lists it"),
    EffectRow("spec.ordinals", LOSS, "machines with other numbers are other machines: the old ones are deleted"),
    EffectRow("spec.volumeClaimTemplates", NONE, "a set with claim templates is refused: a provider has no claims; use disks"),
)
_PROVIDER: Rows = (
    EffectRow("spec.type", RECREATE, "another type cannot find the machines of this one: make another Provider"),
    EffectRow("spec.defaults", NONE, "counts when a machine is made"),
    *members(
        "spec",
        "endpoint credentialSecretRef insecureSkipVerify runtime",
        LIVE,
        "the provider's program is started anew; its machines run on",
    ),
    *members("spec", "rateLimit healthCheck connectionPooling", LIVE, "counts for the next call; the provider's machines run on"),
)
_SNAPSHOT: Rows = (
    EffectRow("spec.vmRef", RECREATE, ONCE),
    EffectRow("spec.snapshotConfig", RECREATE, ONCE),
    EffectRow("spec.retentionPolicy", LIVE, "counts at once: a snapshot past its age is deleted"),
    EffectRow("spec.schedule", LIVE, "counts for the next snapshot"),
    EffectRow("spec.metadata", LIVE, "a note"),
)


_GROUP = "infra.virtrigaud.io"
EFFECTS: Effects = {
    (_GROUP, "VirtualMachine"): _machine("spec"),
    (_GROUP, "VMClass"): _CLASS,
    (_GROUP, "VMImage"): _IMAGE,
    (_GROUP, "VMNetworkAttachment"): _NETWORK,
    (_GROUP, "VMPlacementPolicy"): (EffectRow("spec", NONE, "counts when a machine is placed"),),
    (_GROUP, "VMSnapshot"): _SNAPSHOT,
    (_GROUP, "VMClone"): FIXED,
    (_GROUP, "VMMigration"): FIXED,
    (_GROUP, "VMSet"): _SET,
    (_GROUP, "Provider"): _PROVIDER,
}
