"""The effects of changes of Vitistack's kinds (see `paddock.kubevirt.plan.changes.table`)."""

from paddock.kubevirt.plan.changes.differences import ValueChange
from paddock.kubevirt.plan.changes.effects import EffectRow
from paddock.kubevirt.plan.changes.rows import (
    COMING,
    GOING,
    HARDWARE,
    LIVE,
    LOSS,
    NEW_DISK,
    NONE,
    ORDER,
    RECREATE,
    RESTART,
    REWRITTEN,
    TOPOLOGY,
    WIRING,
    Effects,
    Rows,
    members,
    pluggable,
    size,
)

_UNUSED = "it is kept, and nothing reads it"
_MACHINE: Rows = (
    EffectRow("spec.template", RESTART, "processors and memory follow at the next restart; a larger root disk grows at once"),
    EffectRow("spec.resources.cpu.cores", RESTART, TOPOLOGY),
    EffectRow("spec.resources.cpu.threads", RESTART, TOPOLOGY),
    *pluggable("spec.resources.cpu.sockets", "sockets"),
    *pluggable("spec.resources.memory.size", "memory"),
    EffectRow("spec.disks", RESTART, ORDER, (ValueChange.REORDERED,)),
    EffectRow("spec.disks[]", RESTART, "the claim is made at once, the guest sees the disk after a restart", COMING),
    EffectRow(
        "spec.disks[]", RESTART, "the guest loses the disk at its next restart; the claim is kept until the machine is deleted", GOING
    ),
    EffectRow("spec.disks[].name", RESTART, "the name of a disk is part of the machine"),
    *size("spec.disks[].size"),
    *members("spec.disks[]", "storageClass accessMode volumeMode", LOSS, NEW_DISK),
    EffectRow("spec.networks", RESTART, HARDWARE),
    EffectRow("spec.bootOrder", RESTART, "read when the machine starts"),
    EffectRow("spec.cloudInit", RESTART, REWRITTEN),
    EffectRow("spec.domain", RESTART, HARDWARE),
    EffectRow("spec.os", NONE, "the installation image is fetched when the machine is made"),
    # Vitistack's own form
    EffectRow("spec.provider", NONE, "it tells the form of the machine, which stays the same machine"),
    EffectRow("spec.machineClass", RESTART, "processors and memory follow at the next restart"),
    *members("spec.cpu", "cores threadsPerCore", RESTART, TOPOLOGY),
    *pluggable("spec.cpu.sockets", "sockets"),
    *pluggable("spec.memory", "memory"),
    *size("spec.disks[].sizeGB"),
    *members("spec.disks[]", "type boot", RESTART, HARDWARE),
    *members("spec.disks[]", "device encrypted iops throughput", NONE, _UNUSED),
    EffectRow("spec.network", RESTART, HARDWARE),
    EffectRow("spec.name", RESTART, "the host name reaches the guest at its next first boot"),
    *members("spec", "sshKeys userData", RESTART, REWRITTEN),
    *members("spec", "machineType providerConfig tags securityGroups monitoring backup", NONE, _UNUSED),
)
_NETWORK: Rows = (
    *members("spec", "bridge vlan mtu", RESTART, WIRING),
    EffectRow("spec.networkId", NONE, "a note"),
    EffectRow("spec.ipam", LIVE, "guests get it with their next lease"),
    EffectRow("spec.dhcp", LIVE, "guests get it with their next lease"),
    EffectRow("spec.security", LIVE, "enforced at once where Paddock runs the machine itself, and not elsewhere"),
)


_GROUP = "vitistack.io"
EFFECTS: Effects = {
    (_GROUP, "Machine"): _MACHINE,
    (_GROUP, "MachineClass"): (
        EffectRow("spec", RESTART, "machines of the class that do not say it themselves follow, at their next restart"),
        *members("spec", "category default description displayName gpu", NONE, _UNUSED),
    ),
    (_GROUP, "MachineTemplate"): (EffectRow("spec", RECREATE, "machines were made with it as it is: make another template and name that"),),
    (_GROUP, "NetworkConfiguration"): _NETWORK,
}
