"""The owner of each thing: the run of a machine with which it ends, or the machine with which it stays for the next run."""

from uuid import UUID, uuid5

from paddock.kubevirt.kinds.instance import VirtualMachineInstance

_LAUNCHERS = UUID("0d6ad7d1-5a0e-4d55-a7f5-5b8f7c1f6f3e")


def owner_of(instance: VirtualMachineInstance) -> str:
    """Return the owner of addresses, firmware variables and the TPM's state: the machine above, or the instance where there is none."""
    for each in instance.metadata.ownerReferences or ():
        if each.controller and each.kind == "VirtualMachine":
            return each.uid
    return instance.metadata.uid or ""


def launcher_uid(instance: VirtualMachineInstance) -> str:
    """Return the UID of the Pod that shows an instance; an instance that has moved to another node has another Pod there."""
    pods = (instance.status.activePods if instance.status is not None else None) or {}
    return next(iter(pods), launcher_of(instance.metadata.uid or ""))


def launcher_of(uid: str) -> str:
    """Return the UID of a Pod that was made for an instance, or for a migration."""
    return str(uuid5(_LAUNCHERS, uid))
