"""The claim of a DataVolume (docs/spec/kubevirt.md 5.1 and 5.4). Pure."""

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.meta.storage import StorageSpec
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.storageprofile import ClaimPropertySet, StorageProfile
from paddock.kubevirt.plan.storage import requesters
from paddock.kubevirt.plan.storage.contents import POPULATED_FOR, UnclearContent, VolumeContent
from paddock.kubevirt.plan.storage.transfers import CLONE_REQUEST, STORAGE

ADOPT = "cdi.kubevirt.io/allowClaimAdoption"
LABELS = {
    "app": "containerized-data-importer",
    "app.kubernetes.io/component": "storage",
    "app.kubernetes.io/managed-by": "cdi-controller",
}
_SMALLEST = "cdi.kubevirt.io/minimumSupportedPvcSize"
# Notes about the DataVolume itself.
_OWN = (requesters.MAKER, "kubectl.kubernetes.io/last-applied-configuration", ADOPT)
# What a class offers when nobody says.
PROPERTIES = (
    ClaimPropertySet(accessModes=["ReadWriteOnce"], volumeMode="Filesystem"),
    ClaimPropertySet(accessModes=["ReadWriteMany"], volumeMode="Filesystem"),
    ClaimPropertySet(accessModes=["ReadWriteOnce"], volumeMode="Block"),
    ClaimPropertySet(accessModes=["ReadWriteMany"], volumeMode="Block"),
)


class ClaimContext(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a claim depends on besides its DataVolume."""

    # the class that holds, when there is one
    storage_class: StorageClass | None = None
    profile: StorageProfile | None = None
    overhead: str = claimsizes.OVERHEAD
    # what a guest sees of that which is copied; None: nothing is, or it is not known
    copied_size: int | None = None


def claim_of(volume: DataVolume, content: VolumeContent | None, around: ClaimContext) -> Data | UnclearContent:
    """The claim, without its owner; `content` None: something else fills it."""
    spec = volume.spec
    sized: _Sized | UnclearContent
    if spec.pvc is not None:
        given = msgspec.to_builtins(spec.pvc)
        given.setdefault("storageClassName", spec.storageClassName)
        sized = _Sized({name: value for name, value in given.items() if value is not None}, {})
    else:
        sized = _storage(volume, spec.storage or StorageSpec(), around)
    if isinstance(sized, UnclearContent):
        return sized
    meta = volume.metadata
    notes = {name: value for name, value in (meta.annotations or {}).items() if name not in _OWN}
    notes |= sized.notes | _source_notes(content, archive=spec.contentType == "archive", preallocate=bool(spec.preallocation))
    if content is not None:
        notes[POPULATED_FOR] = meta.name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {**(meta.labels or {}), **LABELS},
            "annotations": notes,
        },
        "spec": sized.spec,
    }


class _Sized(msgspec.Struct, frozen=True):
    spec: Data
    notes: dict[str, str]


def _storage(volume: DataVolume, storage: StorageSpec, around: ClaimContext) -> _Sized | UnclearContent:
    """Complete `storage` from the class and its profile; the size is the guest's, and the claim asks for a little more."""
    found = around.storage_class
    properties = _properties(storage, around.profile)
    asked = (storage.resources.requests or {}).get("storage") if storage.resources else None
    guest = quantity.whole(asked) if asked is not None else around.copied_size
    if guest is None:
        return UnclearContent("ErrClaimNotValid", "PVC size is missing: give storage.resources.requests.storage")
    smallest = (found.metadata.annotations or {}).get(_SMALLEST) if found is not None else None
    mode = storage.volumeMode or properties.volumeMode
    name = storage.storageClassName or volume.spec.storageClassName or (found.metadata.name if found is not None else None)
    request = claimsizes.inflated(guest, around.overhead) if mode == "Filesystem" else guest
    if smallest is not None and quantity.is_quantity(smallest):
        request = max(request, quantity.whole(smallest))
    spec: Data = {name: value for name, value in msgspec.to_builtins(storage).items() if value is not None}
    spec["accessModes"] = storage.accessModes or list(properties.accessModes)
    spec["volumeMode"] = mode
    if name is not None:
        spec["storageClassName"] = name
    resources = dict(spec.get("resources") or {})
    spec["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), "storage": str(request)}}
    return _Sized(spec, claimsizes.guest_size_note(guest, request))


def _properties(storage: StorageSpec, profile: StorageProfile | None) -> ClaimPropertySet:
    """The first form of the class that has what is asked for."""
    offered: list[ClaimPropertySet] = list(PROPERTIES)
    if profile is not None:
        decided = profile.spec.claimPropertySets or (profile.status.claimPropertySets if profile.status is not None else None)
        offered = decided or offered
    for each in offered:
        if storage.volumeMode in (None, each.volumeMode) and set(storage.accessModes or ()) <= set(each.accessModes):
            return each
    return ClaimPropertySet(
        accessModes=storage.accessModes or list(offered[0].accessModes), volumeMode=storage.volumeMode or offered[0].volumeMode
    )


def _source_notes(content: VolumeContent | None, *, archive: bool, preallocate: bool) -> dict[str, str]:
    """Return the annotations of the claim that clients of CDI expect."""
    notes = {f"{STORAGE}.contentType": "archive" if archive else "kubevirt", f"{STORAGE}.preallocation.requested": str(preallocate).lower()}
    if content is None:
        return notes
    if content.kind == "upload":
        notes[f"{STORAGE}.upload.target"] = ""
    elif content.kind == "blank":
        notes[f"{STORAGE}.import.source"] = "none"
    elif content.kind in ("pvc", "snapshot"):
        notes[CLONE_REQUEST] = f"{content.namespace}/{content.name}"
    else:
        notes[f"{STORAGE}.import.source"] = content.kind
        notes[f"{STORAGE}.import.endpoint"] = getattr(content.source, "url", None) or ""
    return notes
