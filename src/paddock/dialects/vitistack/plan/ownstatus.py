"""The status that a machine in Vitistack's own form has beside the document's: state, addresses, cards, disks and failure."""

import ipaddress
from collections.abc import Iterator

import msgspec

from paddock.base import quantity
from paddock.dialects.vitistack.kinds import ownform
from paddock.dialects.vitistack.kinds.machinespec import MachineStatus
from paddock.dialects.vitistack.kinds.ownfields import CardStatus, DiskStatus
from paddock.dialects.vitistack.plan import phases
from paddock.dialects.vitistack.plan.observed import FINAL, Instance, ObservedMachine

READY = "Ready"


def completed(status: MachineStatus, observed: ObservedMachine) -> MachineStatus:
    """The status in the form of its machine."""
    if not ownform.is_own(observed.machine.spec):
        return status
    ready = next((each for each in status.conditions or () if each.type == READY), None)
    failed = ready is not None and status.phase == phases.FAILED
    addresses = status.ipAddresses or []
    public = [each for each in addresses if ipaddress.ip_address(each).is_global]
    instance = observed.instance if observed.instance is not None and observed.instance.status.phase not in FINAL else None
    return msgspec.structs.replace(
        status,
        state=observed.vm.status.printableStatus or None if observed.vm is not None else None,
        provider=observed.machine.spec.provider,
        message=ready.message if ready is not None else None,
        ipAddresses=[each for each in addresses if ":" not in each] or None,
        ipv6Addresses=[each for each in addresses if ":" in each] or None,
        publicIPAddresses=public or None,
        privateIPAddresses=[each for each in addresses if each not in public] or None,
        networkInterfaces=list(_interfaces(instance)) or None,
        disks=list(_disks(instance)) or None,
        failureReason=ready.reason if ready is not None and failed else None,
        failureMessage=ready.message if ready is not None and failed else None,
    )


def _interfaces(instance: Instance | None) -> Iterator[CardStatus]:
    for each in (instance.status.interfaces if instance is not None else None) or ():
        yield CardStatus(
            name=each.name,
            macAddress=each.mac,
            ipAddresses=list(each.addresses) or None,
            ipv6Addresses=[address for address in each.addresses if ":" in address] or None,
            state=each.linkState,
            type=each.infoSource,
        )


def _disks(instance: Instance | None) -> Iterator[DiskStatus]:
    for each in (instance.status.volumeStatus if instance is not None else None) or ():
        claim = each.persistentVolumeClaimInfo
        if claim is None:
            continue
        size = (claim.capacity or {}).get("storage")
        yield DiskStatus(
            name=each.name,
            size=quantity.whole(size) if size is not None else None,
            pvcName=claim.claimName or None,
            volumeMode=claim.volumeMode,
            accessModes=list(claim.accessModes or ()) or None,
            device=f"/dev/{each.target}" if each.target else None,
        )
