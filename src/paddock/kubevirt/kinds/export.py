"""`export.kubevirt.io/v1 VirtualMachineExport` (docs/spec/kubevirt.md 7.4)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.schema.field import Field, Freeform, Object, Time
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.references import BACKUP, MACHINE, SNAPSHOT, GroupKind, reference_findings
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable

SOURCES: tuple[GroupKind, ...] = (
    ("", "PersistentVolumeClaim"),
    MACHINE,
    (SNAPSHOT, "VirtualMachineSnapshot"),
    (BACKUP, "VirtualMachineBackup"),
)


class ExportSpec(Object):
    """The source and the lifetime of an export."""

    source: Annotated[TypedLocalReference, Field("A claim, a machine or a snapshot of one.", required=True)] = TypedLocalReference()
    tokenSecretRef: Annotated[
        str | None,
        Field("Secret whose key `token` opens the download; default: one is made.", format="dns1123-subdomain", max_length=253),
    ] = None
    ttlDuration: Annotated[str | None, Field("When the export is deleted; default: 2h.", format="duration")] = None


class ExportFormat(Object):
    """One form of a volume and where it is fetched."""

    format: Annotated[str, Field("raw, gzip, dir or tar.gz.", required=True)] = ""
    url: Annotated[str, Field("Where.", required=True)] = ""


class ExportVolume(Object):
    """One volume and its forms."""

    name: Annotated[str, Field("The volume.", required=True)] = ""
    formats: Annotated[list[ExportFormat] | None, Field("Its forms.", keys=("format",))] = None


class ExportManifest(Object):
    """Manifests to make the machine elsewhere."""

    type: Annotated[str, Field("all or auth-header-secret.", required=True)] = ""
    url: Annotated[str, Field("Where.", required=True)] = ""


class ExportLink(Object):
    """The addresses of the volumes and manifests."""

    cert: Annotated[str, Field("Certificates to trust, PEM.", required=True)] = ""
    volumes: Annotated[list[ExportVolume] | None, Field("The volumes.", keys=("name",))] = None
    manifests: Annotated[list[ExportManifest] | None, Field("The manifests.", keys=("type",))] = None
    backups: Annotated[list[Freeform] | None, Field("The backups.")] = None


class ExportLinks(Object):
    """Addresses inside and outside."""

    internal: Annotated[ExportLink | None, Field("For clients inside.")] = None
    external: Annotated[ExportLink | None, Field("For clients outside.")] = None


class ExportStatus(Object):
    """The progress of an export."""

    phase: Annotated[str | None, Field("Pending, Ready, Terminated or Skipped.")] = None
    links: Annotated[ExportLinks | None, Field("Where things are fetched.")] = None
    tokenSecretRef: Annotated[str | None, Field("Secret whose key `token` opens the download.")] = None
    ttlExpirationTime: Annotated[Time | None, Field("When it is deleted.")] = None
    serviceName: Annotated[str | None, Field("The Service inside.")] = None
    virtualMachineName: Annotated[str | None, Field("The machine.")] = None
    conditions: Annotated[list[Condition] | None, Field("Ready, PVCReady, VolumesCreated.", keys=("type",))] = None


class VirtualMachineExport(Resource):
    """A request to fetch the disks of a machine, a snapshot or a claim."""

    spec: Annotated[ExportSpec, Field("What is exported, and for how long.", required=True)] = ExportSpec()
    status: Annotated[ExportStatus | None, Field("How far it has come.")] = None


@rule(
    "kubevirt/export-source",
    Cel(
        "spec.source",
        "self.kind in ['PersistentVolumeClaim', 'VirtualMachine', 'VirtualMachineSnapshot', 'VirtualMachineBackup']",
        "must be a PersistentVolumeClaim, a VirtualMachine, a VirtualMachineSnapshot or a VirtualMachineBackup",
        ".kind",
        "FieldValueNotSupported",
    ),
)
def source_can_be_exported(export: VirtualMachineExport, settings: AdmissionSettings) -> Iterator[Finding]:
    """A claim (group empty), a machine, a snapshot or a backup is exported."""
    yield from reference_findings(export.spec.source, ("spec", "source"), SOURCES, "kubevirt/export-source")


KINDS = (
    Kind(
        group="export.kubevirt.io",
        kind="VirtualMachineExport",
        plural="virtualmachineexports",
        singular="virtualmachineexport",
        short_names=("vmexport", "vmexports"),
        categories=("all",),
        cls=VirtualMachineExport,
        dialect="kubevirt",
        versions=(
            # What virtctl 1.0 asks for; the fields are the same. KubeVirt served it as late as 1.7.
            Version("v1alpha1", storage=False, deprecated="export.kubevirt.io/v1alpha1 is deprecated; use export.kubevirt.io/v1"),
            Version("v1beta1", storage=False, deprecated="export.kubevirt.io/v1beta1 is deprecated; use export.kubevirt.io/v1"),
            Version("v1"),
        ),
        columns=(
            Column("SourceKind", ".spec.source.kind"),
            Column("SourceName", ".spec.source.name"),
            Column("Phase", ".status.phase"),
        ),
        rules=(source_can_be_exported,),
        transitions=(spec_is_immutable("kubevirt/export-change"),),
    ),
)
