"""Nodes: the host of this server, as clients look at it."""

from collections.abc import Iterator
from typing import Annotated

from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.meta.objects import Resource
from paddock.meta.storage import Quantities
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object, Time
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Kind

_RULE = "core/node"


class Taint(Object):
    """Who is kept away."""

    key: Annotated[str, Field("Key of the taint.", required=True, format="label-key")] = ""
    value: Annotated[str | None, Field("Its value.", format="label-value")] = None
    effect: Annotated[str, Field("What it does.", required=True, enum=("NoSchedule", "PreferNoSchedule", "NoExecute"))] = ""
    timeAdded: Annotated[Time | None, Field("When it was added.")] = None


class NodeSpec(Object):
    """Whether and for whom the node is open."""

    podCIDR: Annotated[str | None, Field("Network of the node.")] = None
    podCIDRs: Annotated[list[str] | None, Field("Networks of the node.")] = None
    providerID: Annotated[str | None, Field("What its provider calls it.")] = None
    unschedulable: Annotated[bool | None, Field("Whether no new machines are placed here.")] = None
    taints: Annotated[list[Taint] | None, Field("Who is kept away.")] = None
    configSource: Annotated[Freeform | None, Field("No longer used.")] = None
    externalID: Annotated[str | None, Field("No longer used.")] = None


class NodeCondition(Object):
    """One observed aspect of the node."""

    type: Annotated[str, Field("The aspect.", required=True)] = ""
    status: Annotated[str, Field("Whether it holds.", required=True)] = ""
    lastHeartbeatTime: Annotated[Time | None, Field("When it was last seen.", nullable=True)] = None
    lastTransitionTime: Annotated[Time | None, Field("When the status last changed.", nullable=True)] = None
    reason: Annotated[str | None, Field("One word for programs.")] = None
    message: Annotated[str | None, Field("A sentence for people.")] = None


class NodeAddress(Object):
    """Where the node is reached."""

    type: Annotated[str, Field("Type of the address.", required=True)] = ""
    address: Annotated[str, Field("The address.", required=True)] = ""


class NodeStatus(Object):
    """What was observed."""

    capacity: Annotated[Quantities | None, Field("What the node has.")] = None
    allocatable: Annotated[Quantities | None, Field("What machines may have of it.")] = None
    phase: Annotated[str | None, Field("No longer used.")] = None
    conditions: Annotated[list[NodeCondition] | None, Field("Conditions of the node.", keys=("type",))] = None
    # Two addresses of one type are allowed, so the type is no key to the check.
    addresses: Annotated[list[NodeAddress] | None, Field("Where it is reached.")] = None
    daemonEndpoints: Annotated[Freeform | None, Field("Ports of its services.")] = None
    nodeInfo: Annotated[Freeform | None, Field("Its system.")] = None
    images: Annotated[list[Freeform] | None, Field("Images that it has.")] = None
    volumesInUse: Annotated[list[str] | None, Field("Volumes that it uses.")] = None
    volumesAttached: Annotated[list[Freeform] | None, Field("Volumes that are attached.")] = None
    config: Annotated[Freeform | None, Field("No longer used.")] = None
    runtimeHandlers: Annotated[list[Freeform] | None, Field("How it runs things.")] = None
    features: Annotated[Freeform | None, Field("What it can do.")] = None


class Node(Resource):
    """A host that machines run on."""

    spec: Annotated[NodeSpec | None, Field("Whether and for whom it is open.")] = None
    status: Annotated[NodeStatus | None, Field("What was observed.")] = None


class NodeStrategy(Strategy):
    """A node may be closed and tainted by anybody who may write it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """There is always a spec."""
        new.setdefault("spec", {})
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Open is the same as not closed."""
        spec: Data = new.setdefault("spec", {})
        if not spec.get("unschedulable"):
            spec.pop("unschedulable", None)
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A taint stands once for each effect."""
        seen = set()
        for index, taint in enumerate((new.get("spec") or {}).get("taints") or ()):
            place = (taint.get("key"), taint.get("effect"))
            if place in seen:
                yield finding.duplicate(("spec", "taints", index), taint, _RULE)
            seen.add(place)


KINDS = (
    Kind(
        group="",
        kind="Node",
        plural="nodes",
        singular="node",
        short_names=("no",),
        namespaced=False,
        cls=Node,
        dialect="core",
        columns=(AGE,),
        builtin=True,
    ),
)
