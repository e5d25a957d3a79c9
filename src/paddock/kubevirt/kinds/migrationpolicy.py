"""`migrations.kubevirt.io/v1alpha1 MigrationPolicy`: it bounds how volumes move to other claims, and guests to other servers."""

from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object, Quantity
from paddock.kubernetes.schema.kind import AGE, Kind, Version

_UNKNOWN = "it does not change how guests and volumes move"
_NEVER_TWICE = "the memory of a guest is never on two servers at once: a guest is lost when one of them is"


class Selectors(Object):
    """The instances that a policy is for."""

    namespaceSelector: Annotated[dict[str, str] | None, Field("Labels of namespaces.", key_format="label-key")] = None
    virtualMachineInstanceSelector: Annotated[dict[str, str] | None, Field("Labels of instances.", key_format="label-key")] = None


class MigrationPolicySpec(Object):
    """The instances of a policy, and the way they migrate."""

    selectors: Annotated[Selectors, Field("Whom it is for.", required=True)] = Selectors()
    allowAutoConverge: Annotated[bool | None, Field("Slow the guest down until its memory is at the other server.")] = None
    allowPostCopy: Annotated[bool | None, Field("Switch over before the memory is there.", not_honoured=_NEVER_TWICE)] = None
    allowWorkloadDisruption: Annotated[bool | None, Field("Pause the guest if it must be.", not_honoured=_UNKNOWN)] = None
    bandwidthPerMigration: Annotated[
        Quantity | None,
        Field("Bytes per second at most, for all volumes that move, or for each disk and the memory of a guest; 0: no limit."),
    ] = None
    completionTimeoutPerGiB: Annotated[
        int | None, Field("Seconds per GiB of memory and disks at most on the way to another server; 0: no limit; default: 150.", ge=0)
    ] = None
    progressTimeout: Annotated[int | None, Field("Seconds without progress at most.", ge=0, not_honoured=_UNKNOWN)] = None
    utilityVolumesTimeout: Annotated[int | None, Field("Seconds for utility volumes at most.", ge=0, not_honoured=_UNKNOWN)] = None
    maxDowntimeMs: Annotated[int | None, Field("Milliseconds of standstill at most.", ge=0, not_honoured=_UNKNOWN)] = None
    options: Annotated[Freeform | None, Field("More options.", not_honoured=_UNKNOWN)] = None
    experimental: Annotated[Freeform | None, Field("Options that KubeVirt tries out.", not_honoured=_UNKNOWN)] = None


class MigrationPolicyStatus(Object):
    """The observed state: nothing so far."""

    conditions: Annotated[list[Condition] | None, Field("Conditions of the policy.", keys=("type",))] = None


class MigrationPolicy(Resource):
    """A policy for the migrations of instances in some namespaces or with some labels."""

    spec: Annotated[MigrationPolicySpec, Field("Whom it is for, and how they migrate.", required=True)] = MigrationPolicySpec()
    status: Annotated[MigrationPolicyStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group="migrations.kubevirt.io",
        kind="MigrationPolicy",
        plural="migrationpolicies",
        singular="migrationpolicy",
        categories=("all",),
        namespaced=False,
        cls=MigrationPolicy,
        dialect="kubevirt",
        versions=(Version("v1alpha1"),),
        columns=(AGE,),
    ),
)
