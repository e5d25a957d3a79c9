"""The effects of changes of Stakater's machine (see `paddock.kubevirt.plan.changes.table`)."""

from paddock.kubevirt.plan.changes.differences import ValueChange
from paddock.kubevirt.plan.changes.effects import EffectRow
from paddock.kubevirt.plan.changes.rows import (
    COMING,
    GOING,
    HARDWARE,
    LABELS,
    LIVE,
    LOSS,
    NEW_DISK,
    NONE,
    ORDER,
    POWER,
    RESTART,
    REWRITTEN,
    TOPOLOGY,
    Effects,
    Rows,
    members,
    pluggable,
    size,
)

_P = "spec.parameters"
_DISK = f"{_P}.additionalDisks[]"
_CROSSPLANE = """
    compositionRef compositionSelector compositionRevisionRef compositionRevisionSelector compositionUpdatePolicy
    compositeDeletePolicy resourceRef resourceRefs claimRef writeConnectionSecretToRef publishConnectionDetailsTo
    providerConfigRef providerConfigsRef crossplane
"""
_MACHINE: Rows = (
    EffectRow(f"{_P}.dataSource", LOSS, "the root disk is a clone of it: another image means a new disk without the old one's data"),
    *size(f"{_P}.storage.size"),
    EffectRow(f"{_P}.storage.storageClassName", LOSS, NEW_DISK),
    EffectRow(f"{_P}.additionalDisks", RESTART, ORDER, (ValueChange.REORDERED,)),
    EffectRow(_DISK, RESTART, "made at once, and seen by the guest at once where disks can be plugged in, else after a restart", COMING),
    EffectRow(_DISK, RESTART, "the guest loses the disk; its data is kept until the machine is deleted or prune-disks is set", GOING),
    EffectRow(f"{_DISK}.name", RESTART, "the name of a disk is part of the machine"),
    *size(f"{_DISK}.size"),
    *members(_DISK, "storageClassName accessModes volumeMode sourceType source", LOSS, NEW_DISK),
    EffectRow(f"{_DISK}.bus", RESTART, HARDWARE),
    *pluggable(f"{_P}.cpu.sockets", "sockets"),
    EffectRow(f"{_P}.cpu.cores", RESTART, TOPOLOGY),
    EffectRow(f"{_P}.cpu.threads", RESTART, TOPOLOGY),
    *pluggable(f"{_P}.memory.guest", "memory"),
    EffectRow(f"{_P}.networks", RESTART, HARDWARE),
    EffectRow(f"{_P}.cloudInit", RESTART, REWRITTEN),
    EffectRow(f"{_P}.sshPublicKey", RESTART, "with qemuGuestAgent at once, else at the next boot and only if cloud-init runs again"),
    EffectRow(f"{_P}.runStrategy", LIVE, POWER),
    EffectRow(f"{_P}.terminationGracePeriodSeconds", RESTART, "the running machine stops as it was started"),
    EffectRow(f"{_P}.enableDynamicCredentials", RESTART, "the guest is prepared for it when it boots"),
    EffectRow(f"{_P}.firmware", RESTART, "the guest boots with it; a system installed for the other firmware may not boot any more"),
    EffectRow(f"{_P}.service", LIVE, "the Service follows at once; disabling it gives up its address"),
    EffectRow(f"{_P}.nodeSelector", LIVE, "takes hold when the machine moves or starts next"),
    EffectRow(f"{_P}.additionalLabels", LIVE, LABELS),
    EffectRow(f"{_P}.additionalAnnotations", LIVE, LABELS),
    *members("spec", _CROSSPLANE, NONE, "Crossplane's own; kept and not honoured"),
)


EFFECTS: Effects = {("infrastructure.stakater.com", "VirtualMachine"): _MACHINE}
