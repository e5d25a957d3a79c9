"""The binding of claims to PersistentVolumes, and the phase of a volume. Pure; the rules are those of kube-controller-manager."""

from collections.abc import Iterable

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.core.storageclass import PROVISIONER
from paddock.kubernetes.meta import selectors

_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_ATTRIBUTES = "volumeAttributesClassName"
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
_COMPLETED = "pv.kubernetes.io/bind-completed"


def chosen(claim: Data, volumes: Iterable[Data], *, waits: bool) -> Data | None:
    """Return the volume of a claim: the one that either names the other, or the smallest that fits.

    `waits`: the class of the claim leaves the choice to whoever uses the claim first.
    """
    spec = claim.get("spec") or {}
    known = [each for each in volumes if not each["metadata"].get("deletionTimestamp")]
    if named := spec.get("volumeName"):
        return next((each for each in known if each["metadata"]["name"] == named and _is_open(each, claim)), None)
    for each in known:
        if (each.get("spec") or {}).get("claimRef") and _is_open(each, claim) and _fits(each, claim):
            return each
    fitting = [each for each in known if not (each.get("spec") or {}).get("claimRef") and _fits(each, claim)] if not waits else []
    return min(fitting, key=lambda each: (_size(each), each["metadata"]["name"]), default=None)


def _is_open(volume: Data, claim: Data) -> bool:
    """Return True for a volume that no other claim has."""
    owner, meta = (volume.get("spec") or {}).get("claimRef"), claim["metadata"]
    if not owner:
        return True
    return (owner.get("namespace"), owner.get("name")) == (meta["namespace"], meta["name"]) and owner.get("uid") in (None, "", meta["uid"])


def _size(volume: Data) -> int:
    return quantity.parse(((volume.get("spec") or {}).get("capacity") or {}).get("storage", 0))


def _fits(volume: Data, claim: Data) -> bool:
    offered, wanted = volume.get("spec") or {}, claim.get("spec") or {}
    selector = wanted.get("selector")
    size = ((wanted.get("resources") or {}).get("requests") or {}).get("storage", 0)
    return (
        (offered.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and (offered.get("volumeMode") or "Filesystem") == (wanted.get("volumeMode") or "Filesystem")
        and (offered.get(_ATTRIBUTES) or "") == (wanted.get(_ATTRIBUTES) or "")
        and set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
        and (selector is None or selectors.matches(selectors.read(selector), volume["metadata"].get("labels") or {}))
        and _size(volume) >= quantity.parse(size)
    )


def bound_volume(volume: Data, claim: Data) -> Data:
    """Return the volume with its claim."""
    meta, claimed = {**volume["metadata"]}, claim["metadata"]
    if not (volume.get("spec") or {}).get("claimRef"):
        meta["annotations"] = {**(meta.get("annotations") or {}), _BY_CONTROLLER: "yes"}
    owner = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claimed["namespace"],
        "name": claimed["name"],
        "uid": claimed["uid"],
        "resourceVersion": claimed.get("resourceVersion"),
    }
    return {**volume, "metadata": meta, "spec": {**volume["spec"], "claimRef": owner}}


def bound_claim(claim: Data, volume: Data) -> Data:
    """Return the claim with its volume."""
    meta, name = {**claim["metadata"]}, volume["metadata"]["name"]
    marks = {_COMPLETED: "yes", **({} if (claim.get("spec") or {}).get("volumeName") else {_BY_CONTROLLER: "yes"})}
    meta["annotations"] = {**(meta.get("annotations") or {}), **marks}
    return {**claim, "metadata": meta, "spec": {**claim["spec"], "volumeName": name}}


def claim_status(volume: Data) -> Data:
    """Return the status of a claim that has a volume."""
    spec = volume.get("spec") or {}
    attributes = {"currentVolumeAttributesClassName": spec[_ATTRIBUTES]} if spec.get(_ATTRIBUTES) else {}
    bound = {"phase": "Bound", "accessModes": list(spec.get("accessModes") or ()), "capacity": dict(spec.get("capacity") or {})}
    return {**bound, **attributes}


def phase(volume: Data, claim: Data | None) -> str:
    """Return the phase of a volume, given the claim that its reference names."""
    owner = (volume.get("spec") or {}).get("claimRef") or {}
    if not owner.get("uid"):
        return "Available"
    return "Bound" if claim is not None and claim["metadata"]["uid"] == owner["uid"] else "Released"


def is_provisioned(volume: Data) -> bool:
    """Return whether Paddock made a volume, for a claim of its own class."""
    return (volume["metadata"].get("annotations") or {}).get(_PROVISIONED) == PROVISIONER


def is_settled(claim: Data) -> bool:
    """Return True for a claim that has its volume."""
    return _COMPLETED in (claim["metadata"].get("annotations") or {}) and bool((claim.get("spec") or {}).get("volumeName"))
