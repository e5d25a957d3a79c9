"""`cdi.kubevirt.io/v1beta1 DataImportCron`: an image that is fetched again and again (docs/spec/kubevirt.md 5.5)."""

import re
from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Freeform, Object, Time
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec, NamespacedReference
from paddock.kubevirt.kinds.datavolume_kind import DataCondition
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable
from paddock.kubevirt.rules.datavolume import data_volume_rules

_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
# Five fields, optionally a year; each a list of values, ranges and steps, with names of months and days.
_CRON_FIELD = re.compile(r"(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?(,(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?)*\Z", re.ASCII)
_RULE = "kubevirt/import-cron"


class CronTemplate(Object):
    """The DataVolumes that are made."""

    apiVersion: Annotated[str | None, Field("Has no meaning here.")] = None
    kind: Annotated[str | None, Field("Has no meaning here.")] = None
    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations of the DataVolumes.", nullable=True)] = None
    spec: Annotated[DataVolumeSpec, Field("The claim and its source.", required=True)] = DataVolumeSpec()
    status: Annotated[Freeform | None, Field("Has no meaning here.", nullable=True)] = None


class DataImportCronSpec(Object):
    """The images to import, and the schedule."""

    template: Annotated[CronTemplate, Field("The DataVolumes that are made; their source is a registry or a claim.", required=True)] = (
        CronTemplate()
    )
    schedule: Annotated[str, Field("When to look, as cron writes it; empty: never.", required=True, max_length=256)] = ""
    managedDataSource: Annotated[
        str, Field("The DataSource that always names the newest import.", required=True, format="dns1123-subdomain", max_length=253)
    ] = ""
    garbageCollect: Annotated[str | None, Field("Whether older imports are deleted; default: Outdated.", enum=("Outdated", "Never"))] = None
    importsToKeep: Annotated[int | None, Field("How many imports are kept; default: 3.", ge=0, bits=32)] = None
    retentionPolicy: Annotated[str | None, Field("What stays when this object is deleted; default: All.", enum=("None", "All"))] = None
    serviceAccountName: Annotated[str | None, Field("Service account that looks.", not_honoured="Paddock itself looks")] = None


class ImportStatus(Object):
    """An import in progress."""

    DataVolumeName: Annotated[str, Field("The DataVolume.", required=True)] = ""
    Digest: Annotated[str, Field("Digest of the image.", required=True)] = ""


class DataImportCronStatus(Object):
    """The progress of the recurring import."""

    currentImports: Annotated[list[ImportStatus] | None, Field("Imports in progress.")] = None
    lastImportedPVC: Annotated[NamespacedReference | None, Field("The newest import.")] = None
    lastExecutionTimestamp: Annotated[Time | None, Field("When it was last looked.", nullable=True)] = None
    lastImportTimestamp: Annotated[Time | None, Field("When it was last imported.", nullable=True)] = None
    sourceFormat: Annotated[str | None, Field("pvc or snapshot.")] = None
    conditions: Annotated[list[DataCondition] | None, Field("Progressing, UpToDate.", keys=("type",))] = None


class DataImportCron(Resource):
    """An image that is looked for on a schedule, and a DataSource that always names the newest one."""

    spec: Annotated[DataImportCronSpec, Field("What is fetched, and when.", required=True)] = DataImportCronSpec()
    status: Annotated[DataImportCronStatus | None, Field("What was fetched.")] = None


def is_schedule(text: str) -> bool:
    """Return whether a text is a cron expression: five fields, or six with a year, or a word such as @daily."""
    if text.startswith("@"):
        return text in _MACROS
    fields = text.split()
    return len(fields) in (5, 6) and all(_CRON_FIELD.match(field) for field in fields)


@rule(_RULE, Cel("", "self.metadata.name.size() <= 63", "must be no more than 63 characters", ".metadata.name"))
def template_can_be_fetched(cron: DataImportCron, settings: AdmissionSettings) -> Iterator[Finding]:
    """The template has a registry or a claim as its source, the schedule is cron's, and the name has at most 63 characters."""
    spec = cron.spec
    path = ("spec", "template", "spec")
    source = spec.template.spec.source
    if source is not None and source.registry is None and source.pvc is None:
        yield finding.invalid((*path, "source"), None, "only a registry or a pvc can be looked for again", _RULE)
    elif source is None and spec.template.spec.sourceRef is not None:
        yield finding.forbidden((*path, "sourceRef"), "the source of an import is a registry or a pvc", _RULE)
    if source is not None and source.registry is not None and "@" in (source.registry.url or ""):
        why = "an image with a digest never changes; name a tag"
        yield finding.invalid((*path, "source", "registry", "url"), source.registry.url, why, _RULE)
    if spec.schedule and not is_schedule(spec.schedule):
        yield finding.invalid(("spec", "schedule"), spec.schedule, "must be a cron expression such as 30 1 * * *", _RULE)
    if len(cron.metadata.name) > 63:
        yield finding.invalid(("metadata", "name"), cron.metadata.name, "must be no more than 63 characters", _RULE)


def _template(cron: DataImportCron) -> Iterator[tuple[Path, DataVolumeSpec]]:
    yield ("spec", "template", "spec"), cron.spec.template.spec


KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="DataImportCron",
        plural="dataimportcrons",
        singular="dataimportcron",
        short_names=("dic", "dics"),
        categories=("all",),
        cls=DataImportCron,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(Column("Format", ".status.sourceFormat", text="The form the imports are kept in."),),
        status=False,
        rules=(template_can_be_fetched, *data_volume_rules(_template)),
        transitions=(spec_is_immutable("kubevirt/import-cron-change", "Cannot update DataImportCron Spec"),),
    ),
)
