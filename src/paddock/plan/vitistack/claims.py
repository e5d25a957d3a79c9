"""What to do for the claims of a machine's disks: made once, grown, never shrunk, never replaced by blank ones."""

from typing import Any, Literal

import msgspec

from paddock.base import quantity

Data = dict[str, Any]


class Requests(msgspec.Struct, frozen=True):
    """What a claim asks for."""

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
        """What it asks for."""
        return ((self.spec.resources.requests if self.spec.resources else None) or {}).get("storage")


class ClaimAction(msgspec.Struct, frozen=True):
    """`apply` the object, `grow` the claim that somebody else owns, leave it alone (`keep`), or `miss` it."""

    verb: Literal["apply", "grow", "keep", "miss"]
    name: str
    data: Data = {}
    size: int | str = ""


def settle(wanted: Data, found: ExistingClaim | None, *, filled: bool, known: bool) -> ClaimAction:
    """What to do for a disk. `filled`: a DataVolume owns its claim; `known`: the machine has used the claim already."""
    name = wanted["metadata"]["name"]
    if found is None:
        # A DataVolume makes its claim, which may be on its way.
        return ClaimAction("keep", name) if filled else ClaimAction("miss", name, wanted) if known else ClaimAction("apply", name, wanted)
    size = larger(request_of(wanted), found.size)
    if filled or wanted["kind"] == "DataVolume":
        return ClaimAction("grow", name, size=size) if found.size is not None and size != found.size else ClaimAction("keep", name)
    return ClaimAction("apply", name, _as_it_is(wanted, found, size))


def _as_it_is(wanted: Data, found: ExistingClaim, size: int | str) -> Data:
    """The claim as we want it, with what cannot change as it is: a class stays when another becomes the default."""
    spec = {**wanted["spec"], "resources": {"requests": {"storage": size}}}
    if found.spec.storageClassName is not None:
        spec["storageClassName"] = found.spec.storageClassName
    if found.spec.accessModes:
        spec["accessModes"] = list(found.spec.accessModes)
    if "volumeMode" in spec and found.spec.volumeMode is not None:
        spec["volumeMode"] = found.spec.volumeMode
    return {**wanted, "spec": spec}


def request_of(wanted: Data) -> int | str:
    """The size that a claim or a DataVolume asks for."""
    spec = wanted["spec"]
    size: int | str = (spec if wanted["kind"] != "DataVolume" else spec["pvc"])["resources"]["requests"]["storage"]
    return size


def larger(wanted: int | str, found: int | str | None) -> int | str:
    """The larger of two sizes, in its own words; the one that is there when they are the same."""
    if found is None or quantity.parse(wanted) > quantity.parse(found):
        return wanted
    return found
