"""`kubevirt.io/v1 VirtualMachineInstanceMigration` (docs/spec/kubevirt.md 2.10)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object, Time
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Column, Kind, Version, transition
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable

_ONE_HOST = "there is one host; the migration fails and says so"
_SELECTOR = "kubevirt.io/vmi-name"
_FINAL = ("Succeeded", "Failed")


class MigrationSource(Object):
    """The sending side of a migration between clusters."""

    migrationID: Annotated[str, Field("Identity that both sides share, and that is used once.", required=True)] = ""
    connectURL: Annotated[
        str, Field("Address and port of the other side: one of its migration's synchronizationAddresses.", required=True)
    ] = ""


class MigrationReceiver(Object):
    """The receiving side of a migration between clusters."""

    migrationID: Annotated[str, Field("Identity that both sides share, and that is used once.", required=True)] = ""


class MigrationSpec(Object):
    """The instance to migrate."""

    vmiName: Annotated[str | None, Field("Name of the instance.", format="dns1123-subdomain", max_length=253)] = None
    addedNodeSelector: Annotated[dict[str, str] | None, Field("More labels the target node must have.", not_honoured=_ONE_HOST)] = None
    priority: Annotated[
        str | None,
        Field("Why it moves.", enum=("system-critical", "user-triggered", "system-maintenance"), not_honoured=_ONE_HOST),
    ] = None
    sendTo: Annotated[MigrationSource | None, Field("Another server to send to (`paddock up --migrations`).")] = None
    receive: Annotated[MigrationReceiver | None, Field("Another server to receive from (`paddock up --migrations`).")] = None


class MigrationPhaseTransition(Object):
    """The start of a phase."""

    phase: Annotated[str | None, Field("The phase.")] = None
    phaseTransitionTimestamp: Annotated[Time | None, Field("When it began.")] = None


class MigrationStatus(Object):
    """The progress of the migration."""

    phase: Annotated[str | None, Field("Pending, Scheduling, Running, Succeeded, Failed and the steps between.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the migration.", keys=("type",))] = None
    phaseTransitionTimestamps: Annotated[list[MigrationPhaseTransition] | None, Field("When each phase began.")] = None
    migrationState: Annotated[Freeform | None, Field("Details, such as failureReason.")] = None
    synchronizationAddresses: Annotated[list[str] | None, Field("Addresses of this side, for connectURL of the other.")] = None


class VirtualMachineInstanceMigration(Resource):
    """A request to move a running instance to another host."""

    spec: Annotated[MigrationSpec, Field("Which instance moves.", required=True)] = MigrationSpec()
    status: Annotated[MigrationStatus | None, Field("How far it has come.")] = None


@transition("kubevirt/migration-selector")
def the_selector_stays(
    old: VirtualMachineInstanceMigration, new: VirtualMachineInstanceMigration, settings: AdmissionSettings
) -> Iterator[Finding]:
    """While a migration is under way, the label that leads to it stays."""
    before, after = ((each.metadata.labels or {}).get(_SELECTOR) for each in (old, new))
    if before is not None and after != before and (new.status is None or new.status.phase not in _FINAL):
        verb = "removed from" if not new.metadata.labels else "modified on"
        message = f"selector label can't be {verb} an in-flight migration"
        yield Finding(path=(), message=message, rule="kubevirt/migration-selector", cause=CauseType.NOT_SUPPORTED)


KINDS = (
    Kind(
        group="kubevirt.io",
        kind="VirtualMachineInstanceMigration",
        plural="virtualmachineinstancemigrations",
        singular="virtualmachineinstancemigration",
        short_names=("vmim", "vmims"),
        categories=("all",),
        cls=VirtualMachineInstanceMigration,
        dialect="kubevirt",
        versions=(Version("v1"), Version("v1alpha3", storage=False, deprecated="kubevirt.io/v1alpha3 is deprecated; use kubevirt.io/v1")),
        columns=(Column("Phase", ".status.phase"), Column("VMI", ".spec.vmiName")),
        transitions=(spec_is_immutable("kubevirt/migration-change"), the_selector_stays),
    ),
)
