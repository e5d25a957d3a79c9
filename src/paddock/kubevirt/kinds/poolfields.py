"""The fields of a pool of machines (docs/spec/kubevirt.md 1.4 and 6, docs/spec/kubermatic.md 1.4).

The machine of a pool is written in one of two forms: nested, with the hardware in `template.spec` as a VirtualMachine has it, or
flat, with the hardware beside `runStrategy`. Both are declared here; `poolform` turns one into the other.
"""

from typing import TYPE_CHECKING, Annotated, Any

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import TemplateMeta
from paddock.kubernetes.meta.pods import NodeSelectorRequirement
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema.field import Empty, Field, IntOrString, Object
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec, VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.virtualmachine import VirtualMachineSpec

# The members of the flat form: everything a running machine's spec has.
FLAT_KEYS = VirtualMachineInstanceSpec.__struct_fields__
SORT_POLICIES = ("AscendingOrder", "DescendingOrder", "Newest", "Oldest", "Random")
STATE_PRESERVATIONS = ("Disabled", "Offline", "Online")
_PRESERVATION = Field("What is kept of a machine that goes; default: Disabled.", enum=STATE_PRESERVATIONS)

if TYPE_CHECKING:

    class PoolMachineSpec(VirtualMachineSpec):
        """A machine in either form; a reader of the flat members asks for them by their name."""

        template: VirtualMachineInstanceTemplate | None = None  # type: ignore[assignment]
        domain: DomainSpec | None = None
else:
    # The flat members are those of VirtualMachineInstanceSpec. They are declared there and only there; a class cannot inherit
    # from both, so this one is put together from the two declarations, with nothing required.
    _MEMBERS: dict[str, Any] = {name: VirtualMachineInstanceSpec.__annotations__[name] for name in FLAT_KEYS}
    PoolMachineSpec = type(Object)(
        "PoolMachineSpec",
        (VirtualMachineSpec,),
        {
            "__module__": __name__,
            "__doc__": "What each machine is, and when it runs: nested, with `template`, or flat, with the hardware right here.",
            "__annotations__": {
                **_MEMBERS,
                "domain": Annotated[DomainSpec | None, Field("The virtual hardware; the flat form.")],
                "template": Annotated[
                    VirtualMachineInstanceTemplate | None, Field("What a running machine is made from; the nested form.")
                ],
            },
            **dict.fromkeys((*FLAT_KEYS, "template")),
        },
    )


class PoolTemplate(Object):
    """The machines of a pool."""

    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations of the machines.", nullable=True)] = None
    spec: Annotated[PoolMachineSpec, Field("What each machine is, and when it runs.", required=True)] = PoolMachineSpec()


class NameGeneration(Object):
    """The further names that get the number of the machine."""

    appendIndexToConfigMapRefs: Annotated[bool | None, Field("ConfigMaps that the machine refers to; default: false.")] = None
    appendIndexToSecretRefs: Annotated[bool | None, Field("Secrets that the machine refers to; default: false.")] = None


class ScaleInSelectors(Object):
    """The machines that come first; both must match."""

    labelSelector: Annotated[LabelSelector | None, Field("Labels of the machines.")] = None
    nodeSelectorRequirementMatcher: Annotated[list[NodeSelectorRequirement] | None, Field("Labels of the nodes they run on.")] = None


class SelectionPolicy(Object):
    """The machines that come first."""

    sortPolicy: Annotated[str | None, Field("By what they are sorted; default: Random.", enum=SORT_POLICIES)] = None
    selectors: Annotated[ScaleInSelectors | None, Field("Which machines come first.")] = None


class OpportunisticScaleIn(Object):
    """Machines go only when a client deletes them."""

    statePreservation: Annotated[str | None, _PRESERVATION] = None


class ProactiveScaleIn(Object):
    """Machines are deleted."""

    selectionPolicy: Annotated[SelectionPolicy | None, Field("Which machines go first.")] = None
    statePreservation: Annotated[str | None, _PRESERVATION] = None


class ScaleInStrategy(Object):
    """The way the pool gets smaller; at most one."""

    unmanaged: Annotated[Empty | None, Field("Machines are never touched.")] = None
    opportunistic: Annotated[OpportunisticScaleIn | None, Field("Machines go only when a client deletes them.")] = None
    proactive: Annotated[ProactiveScaleIn | None, Field("Machines are deleted (the default).")] = None


class ProactiveUpdate(Object):
    """Machines are changed and restarted."""

    selectionPolicy: Annotated[
        SelectionPolicy | None, Field("Which machines are restarted first; where it has selectors, they alone are changed.")
    ] = None


class UpdateStrategy(Object):
    """The way a change of the template reaches the machines; at most one."""

    unmanaged: Annotated[Empty | None, Field("Machines are never touched.")] = None
    opportunistic: Annotated[Empty | None, Field("Machines are changed; the change takes effect when they restart.")] = None
    proactive: Annotated[ProactiveUpdate | None, Field("Machines are changed and restarted (the default).")] = None


class Autohealing(Object):
    """The conditions under which a failing machine is replaced."""

    startUpFailureThreshold: Annotated[int | None, Field("After so many failed starts; default: 3.", ge=1, bits=32)] = None
    minFailingToStartDuration: Annotated[str | None, Field("Or after failing for so long; default: 5m.", format="duration")] = None


class PoolSpec(Object):
    """The number of machines, and their template."""

    replicas: Annotated[int, Field("How many machines there should be.", ge=0, bits=32)] = 1
    selector: Annotated[LabelSelector, Field("Labels of the machines.", required=True)] = LabelSelector()
    virtualMachineTemplate: Annotated[PoolTemplate, Field("The machines.", required=True)] = PoolTemplate()
    paused: Annotated[bool | None, Field("Whether nothing is created, changed and deleted for now; default: false.")] = None
    nameGeneration: Annotated[NameGeneration | None, Field("What else gets the number of the machine in its name.")] = None
    maxUnavailable: Annotated[
        IntOrString | None,
        Field(
            "How many machines may be unavailable during an update, as a number or a percentage; default: 100%.",
            ge=1,
            bits=32,
            pattern="^([1-9][0-9]?|100)%$",
            message="must be a percentage from 1% to 100%, or a number of at least 1 that is no text",
        ),
    ] = None
    scaleInStrategy: Annotated[ScaleInStrategy | None, Field("How the pool gets smaller.")] = None
    updateStrategy: Annotated[UpdateStrategy | None, Field("How a change reaches the machines.")] = None
    autohealing: Annotated[Autohealing | None, Field("When a machine that fails is replaced; default: never.")] = None


class PoolStatus(Object):
    """The number of machines."""

    replicas: Annotated[int | None, Field("How many machines there are, including those that go.", bits=32)] = None
    readyReplicas: Annotated[int | None, Field("How many of them are ready.", bits=32)] = None
    labelSelector: Annotated[str | None, Field("The selector as a text, for autoscalers.")] = None
    conditions: Annotated[list[Condition] | None, Field("ReplicaFailure, ReplicaPaused.", keys=("type",))] = None
