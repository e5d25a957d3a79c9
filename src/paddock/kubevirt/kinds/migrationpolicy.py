"""`migrations.kubevirt.io/v1alpha1 MigrationPolicy`: on one host it bounds how fast volumes move to other claims."""

from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object, Quantity
from paddock.kubernetes.schema.kind import AGE, Kind, Version

_ONE_HOST = "there is one host, nothing migrates"


class Selectors(Object):
    """The instances that a policy is for."""

    namespaceSelector: Annotated[dict[str, str] | None, Field("Labels of namespaces.", key_format="label-key")] = None
    virtualMachineInstanceSelector: Annotated[dict[str, str] | None, Field("Labels of instances.", key_format="label-key")] = None


class MigrationPolicySpec(Object):
    """The instances of a policy, and the way they migrate."""

    selectors: Annotated[Selectors, Field("Whom it is for.", required=True)] = Selectors()
    allowAutoConverge: Annotated[bool | None, Field("Slow the guest down until it converges.", not_honoured=_ONE_HOST)] = None
    allowPostCopy: Annotated[bool | None, Field("Switch over before the memory is there.", not_honoured=_ONE_HOST)] = None
    allowWorkloadDisruption: Annotated[bool | None, Field("Pause the guest if it must be.", not_honoured=_ONE_HOST)] = None
    bandwidthPerMigration: Annotated[Quantity | None, Field("Bytes per second at most while volumes move; 0: no limit.")] = None
    completionTimeoutPerGiB: Annotated[int | None, Field("Seconds per GiB at most.", ge=0, not_honoured=_ONE_HOST)] = None
    progressTimeout: Annotated[int | None, Field("Seconds without progress at most.", ge=0, not_honoured=_ONE_HOST)] = None
    utilityVolumesTimeout: Annotated[int | None, Field("Seconds for utility volumes at most.", ge=0, not_honoured=_ONE_HOST)] = None
    maxDowntimeMs: Annotated[int | None, Field("Milliseconds of standstill at most.", ge=0, not_honoured=_ONE_HOST)] = None
    options: Annotated[Freeform | None, Field("More options.", not_honoured=_ONE_HOST)] = None
    experimental: Annotated[Freeform | None, Field("Options that KubeVirt tries out.", not_honoured=_ONE_HOST)] = None


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
