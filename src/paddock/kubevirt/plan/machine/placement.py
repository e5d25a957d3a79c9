"""The placement of a machine, in a scheduler's words (docs/spec/kubevirt.md 3.2 and 3.6). Pure.

A node fulfils what is required or it does not, and preferences choose among those that do. Machines stand for their launcher pods: a term
of affinity selects them by the labels that such a pod would have.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.pods import (
    Affinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec

UNSCHEDULABLE, FAILED_CREATE = "Unschedulable", "FailedCreate"
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"


class NodeTaint(msgspec.Struct, frozen=True):
    """A taint that keeps machines away from the node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class PlacementNode(msgspec.Struct, frozen=True):
    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False


class Neighbour(msgspec.Struct, frozen=True):
    """A machine: one that asks, or one that is on a node already (its instance is Scheduled or Running)."""

    namespace: str
    labels: Mapping[str, str] = {}
    affinity: Affinity | None = None
    # labels of its node; None: it is on the node that is judged
    place: Mapping[str, str] | None = None


class PlacementRefusal(msgspec.Struct, frozen=True):
    """The reason why a machine is refused: `reason` is the condition's (PodScheduled for Unschedulable, Synchronized for FailedCreate)."""

    reason: str
    message: str


class PlacementEnvironment(msgspec.Struct, frozen=True):
    """The surroundings of the machine."""

    host: PlacementNode
    neighbours: Sequence[Neighbour] = ()
    # names of the PriorityClasses that exist; the system's own always do
    priorities: frozenset[str] = frozenset()
    # labels of the namespaces, for terms that select namespaces
    namespaces: Mapping[str, Mapping[str, str]] = {}
    # labels of all nodes; empty: the host is the only one
    places: Sequence[Mapping[str, str]] = ()


class PriorityLevel(msgspec.Struct, frozen=True):
    """A PriorityClass, as far as starts concern it."""

    value: int = 0
    is_default: bool = False


_SYSTEM_PRIORITIES = frozenset(("system-cluster-critical", "system-node-critical"))


def fitting(
    spec: VirtualMachineInstanceSpec, who: Neighbour, nodes: Sequence[PlacementEnvironment]
) -> tuple[tuple[str, ...], PlacementRefusal | None]:
    """Return the names of the nodes that a machine may run on, or the reason why it may run on none of them.

    `who` has the namespace and the labels of the machine.
    """
    named = spec.priorityClassName
    if named and any(named not in around.priorities | _SYSTEM_PRIORITIES for around in nodes):
        what = f"no PriorityClass with name {named} was found: create it, or change priorityClassName"
        return (), PlacementRefusal(FAILED_CREATE, what)
    refusals = {around.host.name: next(_refusals(spec, who, around), None) for around in nodes}
    found = tuple(name for name, why in refusals.items() if why is None)
    if found:
        return found, None
    counted = ", ".join(f"{count} node(s) {why}" for why, count in sorted(Counter(refusals.values()).items(), key=str))
    return (), PlacementRefusal(UNSCHEDULABLE, f"0/{len(nodes)} nodes are available: {counted}.")


def preferred(spec: VirtualMachineInstanceSpec, who: Neighbour, nodes: Sequence[PlacementEnvironment]) -> tuple[str, ...]:
    """Return the names of the nodes that fulfil the weightiest preferences of a machine, taken together."""
    weights = {around.host.name: _weight(spec.affinity, who, around) for around in nodes}
    return tuple(name for name, weight in weights.items() if weight == max(weights.values()))


def _weight(affinity: Affinity | None, who: Neighbour, around: PlacementEnvironment) -> int:
    if affinity is None:
        return 0
    own = affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution if affinity.nodeAffinity is not None else None
    return (
        sum(each.weight for each in own or () if _termholds(each.preference, around.host))
        + _weight_of_neighbours(affinity.podAffinity, who, around)
        - _weight_of_neighbours(affinity.podAntiAffinity, who, around)
    )


def _weight_of_neighbours(rules: PodAffinity | None, who: Neighbour, around: PlacementEnvironment) -> int:
    """Each neighbour counts, as with kube-scheduler, and none where the label of the place is missing."""
    terms = rules.preferredDuringSchedulingIgnoredDuringExecution if rules is not None else None
    return sum(
        each.weight
        for each in terms or ()
        if each.podAffinityTerm.topologyKey in around.host.labels
        for other in around.neighbours
        if _is_beside(each.podAffinityTerm.topologyKey, other, around) and _selects(each.podAffinityTerm, who, other, around)
    )


def priority_of(named: str | None, levels: Mapping[str, PriorityLevel]) -> int:
    """Return the priority of a class; without a name that of the default class, of which the lowest counts, or 0."""
    if named:
        return levels.get(named, PriorityLevel()).value
    return min((level.value for level in levels.values() if level.is_default), default=0)


def pod_labels(name: str, labels: Mapping[str, str] | None, created_by: str = "") -> dict[str, str]:
    """The labels that the launcher pod of a machine would have."""
    own = {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": name}
    return {**(labels or {}), **own, **({"kubevirt.io/created-by": created_by} if created_by else {})}


def _refusals(spec: VirtualMachineInstanceSpec, who: Neighbour, around: PlacementEnvironment) -> Iterator[str]:
    """In the order in which a scheduler's filters run."""
    host, tolerations, affinity = around.host, spec.tolerations or (), spec.affinity or Affinity()
    if host.unschedulable and not _tolerated(NodeTaint(_UNSCHEDULABLE_TAINT), tolerations):
        yield "were unschedulable"
    for taint in host.taints:
        if taint.effect in _KEEPS_AWAY and not _tolerated(taint, tolerations):
            yield f"had untolerated taint {{{taint.key}: {taint.value}}}"
    if not _node_fits(spec, affinity, host):
        yield "didn't match Pod's node affinity/selector"
    for constraint in spec.topologySpreadConstraints or ():
        if constraint.whenUnsatisfiable == "DoNotSchedule":
            yield from _uneven(constraint, who, around)
    if not _wanted_neighbours(affinity, who, around):
        yield "didn't match pod affinity rules"
    if any(_selected(term, who, around) for term in _required(affinity.podAntiAffinity) if term.topologyKey in host.labels):
        yield "didn't match pod anti-affinity rules"
    if _unwanted_by_others(who, around):
        yield "didn't satisfy existing pods anti-affinity rules"


def _tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Toleration, taint: NodeTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("Lt", "Gt"):
        return bool(toleration.key) and _ordered(toleration.operator, taint.value, toleration.value or "")
    return bool(toleration.key) and (toleration.value or "") == taint.value


def _node_fits(spec: VirtualMachineInstanceSpec, affinity: Affinity, host: PlacementNode) -> bool:
    if any(host.labels.get(key) != value for key, value in (spec.nodeSelector or {}).items()):
        return False
    rules = affinity.nodeAffinity
    required = rules.requiredDuringSchedulingIgnoredDuringExecution if rules is not None else None
    return required is None or any(_termholds(term, host) for term in required.nodeSelectorTerms)


def _termholds(term: NodeSelectorTerm, host: PlacementNode) -> bool:
    # A term that says nothing selects no node.
    if not term.matchExpressions and not term.matchFields:
        return False
    fields = {"metadata.name": host.name}
    return all(holds(each, host.labels) for each in term.matchExpressions or ()) and all(
        holds(each, fields) for each in term.matchFields or ()
    )


def holds(condition: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """A condition of a node selector, which unlike one of a label selector compares numbers, too."""
    values, has = condition.values or [], labels.get(condition.key)
    match condition.operator:
        case "In":
            return has in values
        case "NotIn":
            return has not in values
        case "Exists":
            return has is not None
        case "DoesNotExist":
            return has is None
        case "Gt" | "Lt":
            return has is not None and len(values) == 1 and _ordered(condition.operator, has, values[0])
    return False


def _ordered(operator: str, has: str, bound: str) -> bool:
    try:
        left, right = int(has), int(bound)
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right


def _required(rules: object) -> Sequence[PodAffinityTerm]:
    return getattr(rules, "requiredDuringSchedulingIgnoredDuringExecution", None) or ()


def _wanted_neighbours(affinity: Affinity, who: Neighbour, around: PlacementEnvironment) -> bool:
    """Return whether all desired neighbours of a machine are here. The first of a group that wants its own kind may begin."""
    terms = _required(affinity.podAffinity)
    if any(term.topologyKey not in around.host.labels for term in terms):
        return False
    if all(_selected(term, who, around) for term in terms):
        return True
    nobody = not any(_selects(term, who, other, around) for term in terms for other in around.neighbours)
    return nobody and all(_selects(term, who, who, around) for term in terms)


def _unwanted_by_others(who: Neighbour, around: PlacementEnvironment) -> bool:
    """Return whether the anti-affinity of a present machine excludes the machine."""
    return any(
        term.topologyKey in around.host.labels and _is_beside(term.topologyKey, other, around) and _selects(term, other, who, around)
        for other in around.neighbours
        if other.affinity is not None
        for term in _required(other.affinity.podAntiAffinity)
    )


def _selected(term: PodAffinityTerm, of: Neighbour, around: PlacementEnvironment) -> bool:
    """Return whether a term selects a machine in the same place."""
    return any(_is_beside(term.topologyKey, other, around) and _selects(term, of, other, around) for other in around.neighbours)


def _is_beside(key: str, other: Neighbour, around: PlacementEnvironment) -> bool:
    """Return whether another machine is where the host is, as far as a label of nodes says."""
    return other.place is None or (key in other.place and other.place[key] == around.host.labels.get(key))


def _selects(term: PodAffinityTerm, of: Neighbour, other: Neighbour, around: PlacementEnvironment) -> bool:
    """Return whether a term of one machine selects another."""
    if term.labelSelector is None or not _in_reach(term, of, other, around):
        return False
    same = all(of.labels.get(key) == other.labels.get(key) for key in term.matchLabelKeys or () if key in of.labels)
    apart = all(of.labels.get(key) != other.labels.get(key) for key in term.mismatchLabelKeys or () if key in of.labels)
    return same and apart and selectors.matches(term.labelSelector, other.labels)


def _in_reach(term: PodAffinityTerm, of: Neighbour, other: Neighbour, around: PlacementEnvironment) -> bool:
    """Without names and without a selector a term means its own namespace."""
    if term.namespaceSelector is not None and selectors.matches(term.namespaceSelector, around.namespaces.get(other.namespace, {})):
        return True
    if term.namespaces:
        return other.namespace in term.namespaces
    return term.namespaceSelector is None and other.namespace == of.namespace


def _uneven(constraint: TopologySpreadConstraint, who: Neighbour, around: PlacementEnvironment) -> Iterator[str]:
    """No place may have more machines than the emptiest has, plus the skew. Where places are missing, the emptiest has none."""
    key, selector = constraint.topologyKey, constraint.labelSelector
    if key not in around.host.labels:
        yield "didn't match pod topology spread constraints (missing required label)"
        return
    here, counts = around.host.labels[key], Counter[str]()
    counts.update(dict.fromkeys((here, *(each[key] for each in around.places if key in each)), 0))
    for each in around.neighbours:
        if each.namespace == who.namespace and selector is not None and selectors.matches(selector, each.labels):
            place = here if each.place is None else each.place.get(key, "")
            if place in counts:
                counts[place] += 1
    emptiest = 0 if len(counts) < (constraint.minDomains or 1) else min(counts.values())
    own = selector is not None and selectors.matches(selector, who.labels)
    if counts[here] + own - emptiest > constraint.maxSkew:
        yield "didn't match pod topology spread constraints"
