"""`virtualization.k8c.io/v1alpha1 Image`: an entry of the catalogue of images (docs/spec/kubermatic.md section 6).

A DataVolume may name one as its `sourceRef` where the installation allows it (`AdmissionSettings.image_source_ref`).
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import LocalReference, Resource
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Version, rule

SOURCES = ("http", "registry", "s3", "gcs", "pvc")
_ONE = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in SOURCES)


class ImageAddress(Object):
    """An image behind an address."""

    url: Annotated[str, Field("Address of the image.", required=True, min_length=1)] = ""


class SourceClaim(Object):
    """A claim to copy."""

    name: Annotated[str, Field("Name of the claim.", required=True, format="dns1123-subdomain", max_length=253)] = ""
    namespace: Annotated[str | None, Field("Namespace of the claim; default: the image's.", format="dns1123-label")] = None


class ImageSpec(Object):
    """The description and the source of an image; exactly one source."""

    type: Annotated[str, Field("Kind of the image.", required=True, min_length=1)] = ""
    readableName: Annotated[str, Field("Name for people.", required=True, min_length=1)] = ""
    readableDescription: Annotated[str | None, Field("Description for people.")] = None
    credentials: Annotated[LocalReference | None, Field("Secret with the credentials of the source.")] = None
    http: Annotated[ImageAddress | None, Field("An image behind a URL.")] = None
    registry: Annotated[ImageAddress | None, Field("An image in an OCI registry.")] = None
    s3: Annotated[ImageAddress | None, Field("An image in an S3 bucket.")] = None
    gcs: Annotated[ImageAddress | None, Field("An image in Google Cloud Storage.")] = None
    pvc: Annotated[SourceClaim | None, Field("A claim to copy.")] = None


class ImageStatus(Object):
    """The observed state of an image."""

    conditions: Annotated[list[Condition] | None, Field("Conditions of the image.", keys=("type",))] = None


class CatalogImage(Resource):
    """An entry of the catalogue of images."""

    spec: Annotated[ImageSpec, Field("What the image is, and where it comes from.", required=True)] = ImageSpec()
    status: Annotated[ImageStatus | None, Field("What was observed.")] = None


@rule("kubermatic/image-source", Cel("spec", f"{_ONE} == 1", "exactly one source must be set"))
def one_source_is_set(image: CatalogImage, settings: AdmissionSettings) -> Iterator[Finding]:
    """Exactly one source is set."""
    given = [name for name in SOURCES if getattr(image.spec, name) is not None]
    if len(given) != 1:
        names = f": {', '.join(given)}" if given else ""
        yield Finding(path=("spec",), message=f"Invalid value: exactly one source must be set{names}", rule="kubermatic/image-source")


KINDS = (
    Kind(
        group="virtualization.k8c.io",
        kind="Image",
        plural="images",
        singular="image",
        cls=CatalogImage,
        dialect="kubermatic",
        versions=(Version("v1alpha1"),),
        columns=(Column("Name", ".spec.readableName"), Column("Type", ".spec.type"), AGE),
        rules=(one_source_is_set,),
    ),
)
