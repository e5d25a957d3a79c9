"""`v1 PersistentVolumeClaim`."""

from collections.abc import Iterator
from typing import Annotated

from paddock.base import ownnames, quantity
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.selectors import selector_findings
from paddock.kubernetes.meta.storage import AccessModes, PersistentVolumeClaimSpec, Quantities
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object, Quantity
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, rule, transition

# Paddock's note on a claim: what a guest should see, where the claim asks for more, and what the claim asked for then.
GUEST_SIZE = ownnames.GUEST_SIZE.name
REQUEST: Path = ("spec", "resources", "requests", "storage")


class PersistentVolumeClaimStatus(Object):
    """The observed state of a claim."""

    phase: Annotated[str | None, Field("Pending, Bound or Lost.", enum=("Pending", "Bound", "Lost"))] = None
    accessModes: AccessModes = None
    capacity: Annotated[Quantities | None, Field("Size of the bound volume, as storage.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the claim.", keys=("type",))] = None
    allocatedResources: Annotated[Quantities | None, Field("Size while the volume grows.")] = None
    allocatedResourceStatuses: Annotated[dict[str, str] | None, Field("How far growing has come.")] = None
    currentVolumeAttributesClassName: Annotated[str | None, Field("Class of attributes in force.")] = None


class PersistentVolumeClaim(Resource):
    """A claim on storage: a disk of a machine."""

    spec: Annotated[PersistentVolumeClaimSpec | None, Field("What is asked for.")] = None
    status: Annotated[PersistentVolumeClaimStatus | None, Field("What was observed.")] = None


def storage_request(spec: PersistentVolumeClaimSpec | None) -> Quantity | None:
    """The size that is asked for."""
    resources = spec.resources if spec else None
    return (resources.requests or {}).get("storage") if resources else None


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim has its volume."""
    return claim.status is not None and claim.status.phase == "Bound"


@rule("core/claim")
def claims_say_how_much(claim: PersistentVolumeClaim, settings: AdmissionSettings) -> Iterator[Finding]:
    """A claim names access modes and a size, and ReadWriteOncePod stands alone."""
    spec = claim.spec or PersistentVolumeClaimSpec()
    if not spec.accessModes:
        yield finding.required(("spec", "accessModes"), "core/claim", "at least 1 access mode is required")
    elif "ReadWriteOncePod" in spec.accessModes and len(spec.accessModes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        yield finding.forbidden(("spec", "accessModes"), why, "core/claim")
    size = storage_request(spec)
    if size is None:
        yield finding.required(REQUEST, "core/claim")
    elif quantity.parse(size) <= 0:
        yield finding.invalid(REQUEST, size, "must be greater than 0", "core/claim")
    yield from selector_findings(spec.selector, ("spec", "selector"), "core/claim")


@transition("core/claim-change")
def claims_only_grow(old: PersistentVolumeClaim, new: PersistentVolumeClaim, settings: AdmissionSettings) -> Iterator[Finding]:
    """Of a claim only the size changes, and only upwards; the volume and the class may be filled in once."""
    before, after = old.spec or PersistentVolumeClaimSpec(), new.spec or PersistentVolumeClaimSpec()
    for name in before.__struct_fields__:
        was, now = getattr(before, name), getattr(after, name)
        filled = name in ("volumeName", "storageClassName", "volumeMode") and was is None
        if name in ("resources", "volumeAttributesClassName") or filled or was == now:
            continue
        yield finding.forbidden(("spec", name), "spec is immutable after creation except resources.requests", "core/claim-change")
    size, wanted = storage_request(before), storage_request(after)
    if size is not None and wanted is not None and quantity.parse(wanted) < quantity.parse(size):
        yield finding.forbidden(REQUEST, "field can not be less than previous value", "core/claim-change")


KINDS = (
    Kind(
        group="",
        kind="PersistentVolumeClaim",
        plural="persistentvolumeclaims",
        singular="persistentvolumeclaim",
        short_names=("pvc",),
        cls=PersistentVolumeClaim,
        dialect="core",
        columns=(
            Column("Status", ".status.phase"),
            Column("Volume", ".spec.volumeName"),
            Column("Capacity", ".status.capacity.storage"),
            Column("Access Modes", ".status.accessModes"),
            Column("StorageClass", ".spec.storageClassName"),
            AGE,
            Column("VolumeMode", ".spec.volumeMode", wide=True),
        ),
        builtin=True,
        rules=(claims_say_how_much,),
        transitions=(claims_only_grow,),
    ),
)
