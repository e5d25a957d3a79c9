"""VirtRigaud's VMImage: what root disks are made from (docs/spec/virtrigaud.md section 1.3)."""

from typing import Annotated

from paddock.contract.specs import IMAGE_FORMATS, VMImageSpec
from paddock.dialects.virtrigaud.kinds.shared import GROUP, VERSIONS, Conditions, ObservedGeneration, ProviderPart
from paddock.dialects.virtrigaud.rules import vmimage as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind


class ImportProgress(Object):
    """The progress of an import."""

    totalBytes: Annotated[int | None, Field("Bytes in all.")] = None
    transferredBytes: Annotated[int | None, Field("Bytes so far.")] = None
    percentage: Annotated[int | None, Field("Part that is done.", ge=0, le=100)] = None
    transferRate: Annotated[int | None, Field("Bytes in a second.")] = None
    eta: Annotated[str | None, Field("Time still needed.", format="duration")] = None
    startTime: Annotated[Time | None, Field("When it began.")] = None


class ProviderImage(ProviderPart):
    """The state of the image at one provider."""

    path: Annotated[str | None, Field("Where it lies there.")] = None
    size: Annotated[Quantity | None, Field("Its size there.")] = None
    reason: Annotated[str | None, Field("One word for programs: why the last attempt to prepare it failed.")] = None


class VMImageStatus(Object):
    """The observed state of an image."""

    ready: Annotated[bool | None, Field("Whether the image can be used.")] = None
    phase: Annotated[
        str | None,
        Field(
            "Where the preparation is.",
            enum=("Pending", "Downloading", "Importing", "Converting", "Optimizing", "Ready", "Failed"),
        ),
    ] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    availableOn: Annotated[list[str] | None, Field("Providers that have the image.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    lastPrepareTime: Annotated[Time | None, Field("When it was last prepared.")] = None
    prepareTaskRef: Annotated[str | None, Field("The provider's task that is under way.")] = None
    importProgress: Annotated[ImportProgress | None, Field("How far the import is.")] = None
    size: Annotated[Quantity | None, Field("Size of the image.")] = None
    checksum: Annotated[str | None, Field("Checksum of the image.")] = None
    format: Annotated[str | None, Field("Format of the image.", enum=IMAGE_FORMATS)] = None
    providerStatus: Annotated[dict[str, ProviderImage] | None, Field("How it stands at each provider.")] = None


class VMImage(Resource):
    """An image or a template that root disks are made from."""

    spec: Annotated[VMImageSpec, Field("Where it comes from.", required=True)] = VMImageSpec()
    status: Annotated[VMImageStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMImage",
        plural="vmimages",
        singular="vmimage",
        short_names=("vmimg",),
        cls=VMImage,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Ready", ".status.ready", "boolean"),
            Column("Phase", ".status.phase"),
            Column("Size", ".status.size"),
            Column("Providers", ".status.availableOn[*]"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
