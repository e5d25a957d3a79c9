"""The conditions that say whether a running machine can move to another node. Pure."""

from collections.abc import Iterator

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.volumes import claim_of

_BRIDGE = "kubevirt.io/allow-pod-bridge-network-live-migration"
_ONE_HOST = "this is a single host: there is no other node to migrate to"
Obstacle = tuple[str, str]


def conditions(nodes: int, kept: Obstacle | None) -> Iterator[Condition]:
    """The two conditions. `kept` is what keeps a machine on its node, as `obstacle` tells it."""
    if nodes == 1:
        yield Condition(type="LiveMigratable", status="False", reason="SingleHost", message=_ONE_HOST)
        yield Condition(type="StorageLiveMigratable", status="False", reason="SingleHost", message=_ONE_HOST)
        return
    reason, message = kept or ("", "")
    status = "False" if reason else "True"
    yield Condition(type="LiveMigratable", status=status, reason=reason or None, message=message or None)
    # Disks that are not shared do not matter to a migration that takes the disks along.
    if reason == "DisksNotLiveMigratable":
        status, reason, message = "True", "", ""
    yield Condition(type="StorageLiveMigratable", status=status, reason=reason or None, message=message or None)


def obstacle(instance: VirtualMachineInstance, claims: dict[str, PersistentVolumeClaim]) -> Obstacle | None:
    """Return reason and message of the first thing that keeps a machine on its node; None if it can move."""
    return next(_obstacles(instance, claims), None)


def _obstacles(instance: VirtualMachineInstance, claims: dict[str, PersistentVolumeClaim]) -> Iterator[Obstacle]:
    devices = instance.spec.domain.devices
    for volume in instance.spec.volumes or ():
        if volume.hostDisk is not None:
            yield "DisksNotLiveMigratable", f"volume {volume.name} is a file of its node (hostDisk)"
        if (name := claim_of(volume)) and not _is_shared(claims.get(name)):
            yield "DisksNotLiveMigratable", f"PVC {name} is not shared: live migration needs the access mode ReadWriteMany"
    pod_networks = {each.name for each in instance.spec.networks or () if each.pod is not None}
    for interface in devices.interfaces or ():
        if interface.name in pod_networks and interface.bridge is not None and _BRIDGE not in (instance.metadata.annotations or {}):
            yield (
                "InterfaceNotLiveMigratable",
                f"interface {interface.name} is on the pod network by a bridge: use masquerade, or set the annotation {_BRIDGE}",
            )
    if devices.hostDevices or devices.gpus:
        yield "HostDeviceNotLiveMigratable", "the machine has devices of its node"


def _is_shared(claim: PersistentVolumeClaim | None) -> bool:
    return claim is not None and claim.spec is not None and "ReadWriteMany" in (claim.spec.accessModes or ())
