"""VirtRigaud's kinds that are no machine and describe none: wishes that its controllers carry out. They become nothing, and say so."""

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.translated import LossCollector, Translated

_WHY: dict[str, tuple[str, str]] = {
    "VMSet": ("its machines are made by VirtRigaud's controller", "write a VirtualMachinePool, or the machines themselves"),
    "VMSnapshot": ("it is a wish about a machine that runs", "write a VirtualMachineSnapshot of the machine"),
    "VMClone": ("it is a wish about a machine that runs", "write a VirtualMachineClone of the machine"),
    "VMMigration": ("it moves a machine between two hypervisors, and KubeVirt is one", "import the machine's disks"),
    "VMPlacementPolicy": ("KubeVirt schedules by what each machine says", "write nodeSelector and affinity into the machines"),
}


def tell(resource: Resource) -> Translated[tuple[Resource, ...]]:
    """Nothing, with the reason."""
    why, instead = _WHY[resource.kind]
    ledger = LossCollector(f"{resource.kind}/{resource.metadata.name}")
    ledger.lose((), resource.kind, why, instead)
    return Translated((), ledger.losses)
