"""The disks of a pool's machines that outlive them (docs/spec/kubevirt.md 6, docs/design/0011-hand-over-of-disks.md). Pure.

A machine is marked before its disks are released and before it is deleted. The mark stays as long as the machine is there, so whoever
goes on after an interruption knows what was promised; a machine that is marked adopts nothing.
"""

from collections.abc import Iterator, Mapping

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

# On a VirtualMachine that is scaled in: its disks stay.
STATE_PRESERVATION = ownnames.STATE_PRESERVATION.name
OFFLINE = "Offline"
_KEEPING = (OFFLINE, "Online")


def keeps_scaled_in(pool: VirtualMachinePool) -> bool:
    """Return whether the disks of a machine that the pool deletes are kept."""
    strategy = pool.spec.scaleInStrategy
    way = (strategy.proactive or strategy.opportunistic) if strategy is not None else None
    return way is not None and way.statePreservation in _KEEPING


def keeps_deleted(pool: VirtualMachinePool) -> bool:
    """Return whether the disks of a machine that anybody deletes are kept: a pool that scales in opportunistically leaves it to others."""
    way = pool.spec.scaleInStrategy.opportunistic if pool.spec.scaleInStrategy is not None else None
    return way is not None and way.statePreservation in _KEEPING


def is_marked(annotations: Mapping[str, str] | None) -> bool:
    """Return whether a machine of these annotations leaves its disks behind."""
    return STATE_PRESERVATION in (annotations or {})


def may_own(machine: Data) -> bool:
    """Return whether a machine may have further disks: not while it gives its own away."""
    return not is_marked(machine["metadata"].get("annotations"))


def may_adopt(machine: Data) -> bool:
    """Return whether a machine may have the DataVolumes of its templates that nobody owns: not while a restore replaces them."""
    return may_own(machine) and not (machine.get("status") or {}).get("restoreInProgress")


def disk_names(machine: VirtualMachine) -> Iterator[str]:
    """Return the names of the DataVolumes and claims that may belong to a machine."""
    for template in machine.spec.dataVolumeTemplates or ():
        if template.metadata is not None and template.metadata.name:
            yield template.metadata.name
    for volume in machine.spec.template.spec.volumes or ():
        if volume.dataVolume is not None:
            yield volume.dataVolume.name
        elif volume.persistentVolumeClaim is not None:
            yield volume.persistentVolumeClaim.claimName
