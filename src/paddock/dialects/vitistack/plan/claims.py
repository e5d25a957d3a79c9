"""The claims of a machine's disks: made once, grown, never shrunk, never replaced by blank ones, and their class decided once."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.dialects.vitistack.kinds import marks
from paddock.dialects.vitistack.kinds.effective import Effective
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.marks import DEFAULT_CLASS
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.rendering import Rendering


class Requests(msgspec.Struct, frozen=True):
    """The requests of a claim."""

    requests: dict[str, int | str] | None = None


class ObservedClaimSpec(msgspec.Struct, frozen=True):
    """The spec of a claim that is there."""

    storageClassName: str | None = None
    accessModes: tuple[str, ...] | None = None
    volumeMode: str | None = None
    resources: Requests | None = None


class ObservedClaimStatus(msgspec.Struct, frozen=True):
    """The status of a claim that is there."""

    phase: str = "Pending"


class ExistingClaim(msgspec.Struct, frozen=True):
    """A claim that is there."""

    spec: ObservedClaimSpec = ObservedClaimSpec()
    status: ObservedClaimStatus = ObservedClaimStatus()

    @property
    def size(self) -> int | str | None:
        return ((self.spec.resources.requests if self.spec.resources else None) or {}).get("storage")


class ClaimAction(msgspec.Struct, frozen=True):
    """`apply` the object, `grow` the claim that somebody else owns, leave it alone (`keep`), or `miss` it."""

    verb: Literal["apply", "grow", "keep", "miss"]
    name: str
    data: Data = {}
    size: int | str = ""


def settle(wanted: Data, existing_claim: ExistingClaim | None, *, filled: bool, known: bool) -> ClaimAction:
    """Return the action for a disk. `filled`: a DataVolume owns its claim; `known`: the machine has used the claim already."""
    name = wanted["metadata"]["name"]
    if existing_claim is None:
        # A DataVolume makes its claim, which may be on its way.
        return ClaimAction("keep", name) if filled else ClaimAction("miss", name, wanted) if known else ClaimAction("apply", name, wanted)
    size = larger(request_of(wanted), existing_claim.size)
    if filled or wanted["kind"] == "DataVolume":
        return (
            ClaimAction("grow", name, size=size)
            if existing_claim.size is not None and size != existing_claim.size
            else ClaimAction("keep", name)
        )
    return ClaimAction("apply", name, _as_it_is(wanted, existing_claim, size))


def _as_it_is(wanted: Data, existing_claim: ExistingClaim, size: int | str) -> Data:
    """The claim as we want it, with what cannot change as it is: a class stays when another becomes the default."""
    spec = {**wanted["spec"], "resources": {"requests": {"storage": size}}}
    if existing_claim.spec.storageClassName is not None:
        spec["storageClassName"] = existing_claim.spec.storageClassName
    if existing_claim.spec.accessModes:
        spec["accessModes"] = list(existing_claim.spec.accessModes)
    if "volumeMode" in spec and existing_claim.spec.volumeMode is not None:
        spec["volumeMode"] = existing_claim.spec.volumeMode
    return {**wanted, "spec": spec}


def request_of(wanted: Data) -> int | str:
    """The size that a claim or a DataVolume asks for."""
    spec = wanted["spec"]
    size: int | str = (spec if wanted["kind"] != "DataVolume" else spec["pvc"])["resources"]["requests"]["storage"]
    return size


def larger(desired: int | str, present: int | str | None) -> int | str:
    """The larger of two sizes, in its own words; the one that is there when they are the same."""
    if present is None or quantity.parse(desired) > quantity.parse(present):
        return desired
    return present


# --- what a translation takes for granted of disks that are there -----------------------------------------------------------


def decided_classes(merged: Effective, existing_claims: Mapping[str, ExistingClaim]) -> list[StorageClass]:
    """The classes of the claims that are there, by disk. A class that is gone is still the class of its claims."""
    names = {each.spec.storageClassName for each in existing_claims.values() if each.spec.storageClassName}
    if len(existing_claims) < len(merged.disks):
        # A disk that is still to be made gets the default of today.
        names.discard(DEFAULT_CLASS)
    return [StorageClass(metadata=ObjectMeta(name=name)) for name in sorted(names)]


def with_decided_default(rendering: Rendering, merged: Effective, existing_claims: Mapping[str, ExistingClaim]) -> Rendering:
    """Return the rendering with the meaning of `default`, when all disks that name it have their claims."""
    disks = [disk.name for disk in merged.disks if disk.storageClass == DEFAULT_CLASS]
    if not disks or any(name not in existing_claims for name in disks):
        return rendering
    return msgspec.structs.replace(rendering, default_storage_class=existing_claims[disks[0]].spec.storageClassName)


def without_image(machine: Machine) -> Machine:
    """The machine without the image of its root disk: the disk is there, and has what it has."""
    kept = {key: value for key, value in (machine.metadata.annotations or {}).items() if key != marks.ROOT_IMAGE}
    return msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, annotations=kept))
