"""Refuses claims and DataVolumes that ask for more than any disk has, in this host's storage classes (docs/spec/kubevirt.md, item 124).

Other provisioners have limits of their own. A claim whose class does not exist yet is taken; if the class turns out to be one of this host,
an event says why the claim stays Pending.
"""

from collections.abc import Iterator

import msgspec

from paddock.base import quantity
from paddock.base.disksizes import LARGEST
from paddock.base.jsondata import Data
from paddock.kubernetes.core.persistentvolumeclaim import REQUEST, PersistentVolumeClaim
from paddock.kubernetes.core.storageclass import PROVISIONER, StorageClass, default_class
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.storage import claimsizes
from paddock.server.resources.strategy import WriteContext

CLASSES = "storageclasses.storage.k8s.io"
_RULE = "core/claim-size"


def of_claim(new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
    """Yield a finding if a claim, or its growth, asks for more than a disk has."""
    size = _vast(new.get("spec") or {})
    if size is None or (old is not None and size == _vast(old.get("spec") or {})):
        return
    try:
        claim = msgspec.convert(new, PersistentVolumeClaim)
    except msgspec.ValidationError:
        # The schema's own findings say so.
        return
    # The claim of a DataVolume asks for more than the guest sees.
    if claimsizes.guest_size(claim) > LARGEST and _is_ours(claim.spec.storageClassName if claim.spec else None, context):
        yield _too_large(REQUEST, size)


def of_data_volume(new: Data, context: WriteContext) -> Iterator[Finding]:
    """Yield a finding if a DataVolume asks for more than a disk has."""
    spec = new.get("spec") or {}
    for member in ("pvc", "storage"):
        given = spec.get(member) or {}
        size = _vast(given)
        name = given.get("storageClassName") or spec.get("storageClassName") or _default(context)
        if size is not None and _is_ours(name, context):
            yield _too_large(("spec", member, *REQUEST[1:]), size)


def _vast(spec: Data) -> int | str | None:
    """Return the request of a claim's spec if no disk is that large."""
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return size if size is not None and quantity.is_quantity(size) and quantity.whole(size) > LARGEST else None


def _is_ours(name: str | None, context: WriteContext) -> bool:
    """Return True if this host makes the volumes of a class."""
    found = context.view.get(CLASSES, "", name) if name else None
    return found is not None and found.get("provisioner") == PROVISIONER


def _default(context: WriteContext) -> str | None:
    """The class of a DataVolume that names none."""
    found = default_class(msgspec.convert(each, StorageClass) for each in context.view.list(CLASSES))
    return found.metadata.name if found is not None else None


def _too_large(path: Path, size: int | str) -> Finding:
    return finding.invalid(path, size, f"a disk has at most {quantity.binary(LARGEST)}: ask for less", _RULE)
