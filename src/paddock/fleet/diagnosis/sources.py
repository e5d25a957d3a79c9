"""The field, in the object that people write, that sets the source of a disk or a guest."""

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubevirt.plan.changes.references import DATA_VOLUME, INSTANCE, MACHINE
from paddock.kubevirt.plan.diagnosis import kinddiagnosis

_SOMEWHERE = "the image's address (source.http.url, source.registry.url or containerDisk.image)"
_TEMPLATE = "spec.dataVolumeTemplates["


def written(node: WalkNode) -> WalkNode:
    """Return the object that people write: nobody corrects the disk that was made for an image of VirtRigaud's, but the image."""
    above = node.above
    return above if node.ref.id == DATA_VOLUME and above is not None and kinddiagnosis.of(above.ref.id).is_image else node


def address(node: WalkNode, message: str) -> str:
    """`FIELD of OBJECT`, which leads to the image that a message is about."""
    other = _named(node) if node.ref.id == DATA_VOLUME else {}
    if name := texts(other, "name"):
        where = texts(other, "namespace")
        return f"spec.source of {texts(other, 'kind') or 'DataSource'} {name}" + (f" in namespace {where}" if where else "")
    front = next((each for each in node.trail if kinddiagnosis.of(each.ref.id).is_namesake), None)
    if front is not None:
        return f"the image's address in {front.ref}"
    if kinddiagnosis.of(node.ref.id).is_image:
        return f"the address in spec.source of {node.ref}"
    if node.ref.id == DATA_VOLUME:
        return _of_disk(node)
    return _of_guest(node, message) if node.ref.id == INSTANCE else _SOMEWHERE


def _named(node: WalkNode) -> Data:
    """The DataSource that a disk, or the template it was made from, names: what was read there may stand in the disk itself."""
    own: Data = at(node.data, "spec", "sourceRef") or {}
    if own or node.above is None or not node.path.startswith(_TEMPLATE):
        return own
    templates = entries(node.above.data, "spec", "dataVolumeTemplates")
    return next((at(each, "spec", "sourceRef") or {} for each in templates if texts(each, "metadata", "name") == node.ref.name), {})


def _of_disk(node: WalkNode) -> str:
    source = at(node.data, "spec", "source") or {}
    member = next((name for name in source if texts(source, name, "url")), "")
    if not member:
        return _SOMEWHERE
    if node.above is not None and node.path.startswith(_TEMPLATE):
        return f"{node.path.removesuffix('.metadata.name')}.spec.source.{member}.url of {node.above.ref}"
    return f"spec.source.{member}.url of {node.ref}"


def _of_guest(node: WalkNode, message: str) -> str:
    for index, volume in enumerate(entries(node.data, "spec", "volumes")):
        image = texts(volume, "containerDisk", "image")
        if image and image in message:
            if node.above is not None and node.above.ref.id == MACHINE:
                return f"spec.template.spec.volumes[{index}].containerDisk.image of {node.above.ref}"
            return f"spec.volumes[{index}].containerDisk.image of {node.ref}"
    return _SOMEWHERE


def afterwards(node: WalkNode) -> str:
    """Return the step that follows a correction: a disk that failed stays so."""
    if node.ref.id != DATA_VOLUME or texts(node.data, "status", "phase") != "Failed":
        return ""
    anew = "it is made anew" if node.above is not None else "and make it anew"
    return f" Then: paddock delete dv/{node.ref.name} -n {node.ref.namespace} ({anew})."
