"""Whose things are: what ends with a run of a machine, and what stays for the next one."""

from paddock.dialects.kubevirt.instance import VirtualMachineInstance


def owner_of(instance: VirtualMachineInstance) -> str:
    """What addresses, firmware variables and the TPM's state belong to: the machine above, or the instance where there is none."""
    for each in instance.metadata.ownerReferences or ():
        if each.controller and each.kind == "VirtualMachine":
            return each.uid
    return instance.metadata.uid or ""
