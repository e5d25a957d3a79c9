"""Reasons why values of a machine, its template and its networks have no effect in KubeVirt's objects."""

from paddock.dialects.vitistack import boot, marks
from paddock.dialects.vitistack.machinetemplate import MachineTemplate
from paddock.dialects.vitistack.networkconfiguration import NetworkConfiguration
from paddock.meta.fieldrecord import Reasons
from paddock.meta.objects import Resource
from paddock.meta.translated import LossCollector
from paddock.translate.vitistack.comparable import BOOKKEEPING
from paddock.translate.vitistack.resolved import VitistackInputs

_FOREIGN = ("somebody else's NetworkAttachmentDefinition has the name of the network", "that definition is used as it is")
# The kinds whose objects are looked up, and why their values are not used. What is not named here is a field that nobody translates.
REASONS: dict[type[Resource], Reasons] = {
    MachineTemplate: (),
    NetworkConfiguration: (
        *((("spec", name), _FOREIGN) for name in ("bridge", "vlan", "mtu")),
        *(
            (("spec", name), ("a NetworkAttachmentDefinition says only how a network is wired", "the network itself has to see to it"))
            for name in ("networkId", "ipam", "dhcp", "security")
        ),
    ),
}


def tell(resolved: VitistackInputs, ledger: LossCollector) -> None:
    """Note what has no effect for a reason that depends on the rest of the machine."""
    machine, cloud_init = resolved.machine, resolved.machine.spec.cloudInit
    for key, value in (machine.metadata.labels or {}).items():
        if key == marks.MACHINE_TEMPLATE and value != machine.spec.template:
            ledger.lose(("metadata", "labels", key), value, "spec.template decides", "what is made carries the template's name")
        elif key not in (marks.CLUSTER_NAME, marks.MACHINE_TEMPLATE):
            ledger.lose(("metadata", "labels", key), value, "only the label of the cluster is passed on", "it stays on the Machine")
    for key, value in (machine.metadata.annotations or {}).items():
        if key not in (*marks.MEANT_ANNOTATIONS, *BOOKKEEPING):
            ledger.lose(("metadata", "annotations", key), value, "annotations are not passed on", "it stays on the Machine")
    if cloud_init and cloud_init.secretRef and cloud_init.userData:
        path = ("spec", "cloudInit", "secretRef")
        ledger.lose(path, cloud_init.secretRef.name, "user data in the machine wins", "the Secret is not read")
    if boot.root_image(machine) and resolved.effective.root is None:
        path = ("metadata", "annotations", marks.ROOT_IMAGE)
        ledger.lose(path, boot.root_image(machine), "the machine has no disk", "the image is not used")
    if machine.spec.os and machine.spec.os.imageID and boot.annotation(machine, marks.BOOT_SOURCE) != marks.DATA_VOLUME:
        why = f"the annotation {marks.BOOT_SOURCE} is not {marks.DATA_VOLUME}"
        ledger.lose(("spec", "os", "imageID"), machine.spec.os.imageID, why, "the image is not used")
