"""`cdi.kubevirt.io/v1beta1 DataSource`: a name for where disks come from (docs/spec/kubevirt.md 5.5, docs/spec/kubermatic.md 1.3).

CDI itself knows claims, snapshots and other DataSources only. Here a DataSource may also be an image behind an address, because
Kubermatic's manifests say so: it is resolved into each DataVolume that refers to it.
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.datavolume import (
    GcsSource,
    HttpSource,
    ImageioSource,
    NamespacedReference,
    RegistrySource,
    S3Source,
    VddkSource,
)
from paddock.kubevirt.kinds.datavolume_kind import DataCondition
from paddock.kubevirt.rules.datavolume import source_rules


class DataSourceSource(Object):
    """The source of disks; one member, or none yet."""

    STRANGERS = {
        "blank": "a DataSource names content; a DataVolume of its own can be blank",
        "upload": "a DataSource names content; upload to a DataVolume and name its claim here",
    }

    http: Annotated[HttpSource | None, Field("An image behind a URL.")] = None
    registry: Annotated[RegistrySource | None, Field("An image in an OCI registry.")] = None
    s3: Annotated[S3Source | None, Field("An image in an S3 bucket.")] = None
    gcs: Annotated[GcsSource | None, Field("An image in Google Cloud Storage.")] = None
    imageio: Annotated[ImageioSource | None, Field("A disk of oVirt.")] = None
    vddk: Annotated[VddkSource | None, Field("A disk of VMware.")] = None
    pvc: Annotated[NamespacedReference | None, Field("A claim to copy.")] = None
    snapshot: Annotated[NamespacedReference | None, Field("A snapshot to copy.")] = None
    dataSource: Annotated[NamespacedReference | None, Field("Another DataSource, which is followed once.")] = None


SOURCES = DataSourceSource.__struct_fields__
# What CDI itself can hold; the others are resolved before anything reaches CDI.
CDI_SOURCES = ("pvc", "snapshot", "dataSource")
_COUNT = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in SOURCES)


class DataSourceSpec(Object):
    """The source of disks."""

    source: Annotated[DataSourceSource, Field("Where disks come from.", required=True)] = DataSourceSource()


class DataSourceStatus(Object):
    """The observed state of a DataSource."""

    source: Annotated[DataSourceSource | None, Field("The source in force.")] = None
    sourceType: Annotated[str | None, Field("Which kind of source it is, such as http or pvc.")] = None
    conditions: Annotated[list[DataCondition] | None, Field("Ready, Running.", keys=("type",))] = None


class DataSource(Resource):
    """A name for where disks come from: an image behind a URL, a claim, a snapshot."""

    spec: Annotated[DataSourceSpec, Field("Where disks come from.", required=True)] = DataSourceSpec()
    status: Annotated[DataSourceStatus | None, Field("What was observed.")] = None


def source_type(source: DataSourceSource) -> str:
    """The first member that is set; the empty text when none is."""
    return next((name for name in SOURCES if getattr(source, name) is not None), "")


@rule("kubevirt/data-source", Cel("spec.source", f"{_COUNT} <= 1", "no more than one source may be set"))
def one_source_is_set(source: DataSource, settings: AdmissionSettings) -> Iterator[Finding]:
    """No more than one source is set. A DataSource without a source is not ready; catalogues fill it in later."""
    given = [name for name in SOURCES if getattr(source.spec.source, name) is not None]
    if len(given) > 1:
        message = f"Invalid value: no more than one source may be set: {', '.join(given)}"
        yield Finding(path=("spec", "source"), message=message, rule="kubevirt/data-source")


def _source(source: DataSource) -> Iterator[tuple[Path, DataSourceSource]]:
    yield ("spec", "source"), source.spec.source


KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="DataSource",
        plural="datasources",
        singular="datasource",
        short_names=("das",),
        categories=("all",),
        cls=DataSource,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(
            AGE,
            Column("Type", ".status.sourceType"),
            Column("URL", ".spec.source.http.url"),
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        ),
        status=False,
        rules=(one_source_is_set, *source_rules(_source)),
    ),
)
