"""The owner of each thing: the run of a machine with which it ends, or the machine with which it stays for the next run."""

from paddock.dialects.kubevirt.instance import VirtualMachineInstance


def owner_of(instance: VirtualMachineInstance) -> str:
    """Return the owner of addresses, firmware variables and the TPM's state: the machine above, or the instance where there is none."""
    for each in instance.metadata.ownerReferences or ():
        if each.controller and each.kind == "VirtualMachine":
            return each.uid
    return instance.metadata.uid or ""
