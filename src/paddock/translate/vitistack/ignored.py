"""What a machine and its networks say and nothing comes of in KubeVirt's objects."""

from collections.abc import Iterator

from paddock.dialects.vitistack import boot, marks
from paddock.meta.translated import Loss, LossCollector
from paddock.meta.wire import to_data
from paddock.translate.vitistack.comparable import BOOKKEEPING
from paddock.translate.vitistack.resolved import VitistackInputs

# Members of a network beside its wiring.
_BESIDE_WIRING = ("networkId", "ipam", "dhcp", "security")


def tell(resolved: VitistackInputs, ledger: LossCollector) -> None:
    """Note what the machine says in vain."""
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


def of_networks(resolved: VitistackInputs) -> Iterator[Loss]:
    """What networks say beside their wiring; Paddock's own engine looks at the NetworkConfiguration itself."""
    for network in {found.metadata.name: found for found in resolved.networks if found is not None}.values():
        spec = to_data(network.spec)
        for name in _BESIDE_WIRING:
            if name in spec:
                yield Loss(
                    of=f"NetworkConfiguration/{network.metadata.name}",
                    path=("spec", name),
                    value=spec[name],
                    why="a NetworkAttachmentDefinition says only how a network is wired",
                    instead="the network itself has to see to it",
                )
