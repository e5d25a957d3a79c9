"""Reasons why values of a machine, its template and its networks have no effect in KubeVirt's objects."""

from collections.abc import Iterator

from paddock.dialects.vitistack.kinds import boot, marks, ownform
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machineclass import MachineClass
from paddock.dialects.vitistack.kinds.machinetemplate import MachineTemplate
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.translate.comparable import BOOKKEEPING
from paddock.dialects.vitistack.translate.resolved import VitistackInputs
from paddock.kubernetes.meta.fieldrecord import FieldRecord, Reasons
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.finding import Path

_FOREIGN = ("somebody else's NetworkAttachmentDefinition has the name of the network", "that definition is used as it is")
# The kinds whose objects are looked up, and why their values are not used. What is not named here is a field that nobody translates.
REASONS: dict[type[Resource], Reasons] = {
    MachineTemplate: (),
    MachineClass: ((("spec",), ("only processors and memory of a class count", "the machine is made without it")),),
    NetworkConfiguration: (
        *((("spec", name), _FOREIGN) for name in ("bridge", "vlan", "mtu")),
        *(
            (("spec", name), ("a NetworkAttachmentDefinition says only how a network is wired", "the network itself has to see to it"))
            for name in ("networkId", "ipam", "dhcp", "security")
        ),
    ),
}
_CLOUD = "the provider kubevirt has none of it"
# Members of Vitistack's own form, by their last word.
_OWN: dict[str, str] = {
    **dict.fromkeys(("machineType", "providerConfig", "securityGroups", "monitoring", "vpc", "subnet", "assignPublicIP"), _CLOUD),
    **dict.fromkeys(("publicIP", "interfaces", "imageFamily"), _CLOUD),
    "privateIP": "addresses of a guest stand in cloudInit.networkData",
    "tags": "machines have labels",
    "backup": "snapshots have schedules of their own",
    **dict.fromkeys(("family", "distribution", "version"), "it describes the guest and changes nothing"),
    "device": "the guest names its devices",
    **dict.fromkeys(("iops", "throughput"), "KubeVirt has no such limit"),
}


def tell(resolved: VitistackInputs, ledger: FieldRecord[Machine]) -> None:
    """Note what has no effect for a reason that depends on the rest of the machine."""
    for path, value in _own_values(ledger.resource):
        if path[-1] in _OWN:
            ledger.lose(path, value, _OWN[str(path[-1])], "it is kept and has no effect")
        elif path[-1] == "encrypted":
            ledger.take(*path)
        elif path[-1] == "type" and value == "nvme":
            ledger.lose(path, value, "KubeVirt has no NVMe disks", "the disk is virtio")
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


def _own_values(machine: Machine) -> Iterator[tuple[Path, object]]:
    """Yield the members of Vitistack's own form with their values."""
    for path in ownform.own_members(machine.spec):
        value: object = machine.spec
        for part in path[1:]:
            value = value[part] if isinstance(value, list) and isinstance(part, int) else getattr(value, str(part))
        yield path, value
