"""Rules of where a machine runs: V106 and V107. They are those of a Pod, since a launcher gets the same words.

KubeVirt leaves `affinity` out of the names of the fields and calls every cause FieldValueInvalid. Findings carry the place in the
document, too.
"""

from collections.abc import Iterator

from paddock.base import names
from paddock.kubernetes.meta.pods import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinity, PodAffinityTerm
from paddock.kubernetes.meta.selectors import LabelSelector, selector_findings
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_AFFINITY, _SPREAD = "kubevirt/V106", "kubevirt/V107"
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
# The one field of a node that may be selected by.
_FIELD = "metadata.name"


def _invalid(path: Path, message: str, rule: str) -> Finding:
    return Finding(path=path, message=message, rule=rule)


def _label_key(key: str, path: Path, rule: str) -> Iterator[Finding]:
    if not key:
        yield _invalid(path, "Required value: must be the key of a label, such as kubernetes.io/hostname", rule)
    elif not names.is_qualified(key):
        yield finding.invalid(path, key, "must be the key of a label, such as kubernetes.io/hostname", rule)


def _selector(selector: LabelSelector | None, path: Path, rule: str) -> Iterator[Finding]:
    """Yield what is wrong with the conditions of a selector; keys and values of labels are part of the declaration."""
    for found in selector_findings(selector, path, rule):
        yield _invalid(found.path, found.message, rule)


def _condition(condition: NodeSelectorRequirement, path: Path) -> Iterator[Finding]:
    values, at = condition.values or [], (*path, "values")
    if condition.operator in ("In", "NotIn") and not values:
        yield _invalid(at, f'Required value: must be specified when operator is "{condition.operator}"', _AFFINITY)
    elif condition.operator in ("Exists", "DoesNotExist") and values:
        yield _invalid(at, f'Forbidden: may not be specified when operator is "{condition.operator}"', _AFFINITY)
    elif condition.operator in ("Gt", "Lt") and len(values) != 1:
        yield _invalid(at, f'Required value: must be a single value when operator is "{condition.operator}"', _AFFINITY)
    yield from _label_key(condition.key, (*path, "key"), _AFFINITY)


def _field(condition: NodeSelectorRequirement, path: Path) -> Iterator[Finding]:
    values = condition.values or []
    if condition.operator not in ("In", "NotIn"):
        yield finding.invalid((*path, "operator"), condition.operator, "must be In or NotIn for a field of the node", _AFFINITY)
    elif len(values) != 1:
        yield _invalid((*path, "values"), "Required value: must be a single value for a field of the node", _AFFINITY)
    if condition.key != _FIELD:
        yield finding.invalid((*path, "key"), condition.key, f"must be {_FIELD}", _AFFINITY)
        return
    for index, value in enumerate(values):
        if not names.is_subdomain(value):
            yield finding.invalid((*path, "values", index), value, "must be the name of a node", _AFFINITY)


def _term(term: NodeSelectorTerm, path: Path) -> Iterator[Finding]:
    for index, condition in enumerate(term.matchExpressions or ()):
        yield from _condition(condition, (*path, "matchExpressions", index))
    for index, condition in enumerate(term.matchFields or ()):
        yield from _field(condition, (*path, "matchFields", index))


def _nodes(affinity: NodeAffinity, path: Path) -> Iterator[Finding]:
    required = affinity.requiredDuringSchedulingIgnoredDuringExecution
    if required is not None:
        at = (*path, _REQUIRED, "nodeSelectorTerms")
        if not required.nodeSelectorTerms:
            yield _invalid(at, "Required value: must have at least one term", _AFFINITY)
        for index, term in enumerate(required.nodeSelectorTerms):
            yield from _term(term, (*at, index))
    for index, wish in enumerate(affinity.preferredDuringSchedulingIgnoredDuringExecution or ()):
        yield from _term(wish.preference, (*path, _PREFERRED, index, "preference"))


def _neighbour(term: PodAffinityTerm, path: Path) -> Iterator[Finding]:
    yield from _selector(term.labelSelector, (*path, "labelSelector"), _AFFINITY)
    yield from _selector(term.namespaceSelector, (*path, "namespaceSelector"), _AFFINITY)
    for name in term.namespaces or ():
        if not names.is_label(name):
            yield finding.invalid((*path, "namespace"), name, "must be the name of a namespace", _AFFINITY)
    yield from _label_key(term.topologyKey, (*path, "topologyKey"), _AFFINITY)


def _neighbours(affinity: PodAffinity, path: Path) -> Iterator[Finding]:
    for index, term in enumerate(affinity.requiredDuringSchedulingIgnoredDuringExecution or ()):
        yield from _neighbour(term, (*path, _REQUIRED, index))
    for index, wish in enumerate(affinity.preferredDuringSchedulingIgnoredDuringExecution or ()):
        yield from _neighbour(wish.podAffinityTerm, (*path, _PREFERRED, index, "podAffinityTerm"))


@check("kubevirt/V106", given=("spec.affinity",))
def affinity_makes_sense(hardware: HardwareContext) -> Iterator[Finding]:
    """Affinity is that of a Pod: every condition has what its operator asks for, and every term a key of nodes' labels."""
    affinity = hardware.spec.affinity
    if affinity is None:
        return
    kinds = (("nodeAffinity", _nodes), ("podAffinity", _neighbours), ("podAntiAffinity", _neighbours))
    for name, findings in kinds:
        given = getattr(affinity, name)
        for found in findings(given, hardware.at(name)) if given is not None else ():
            yield standing(found, hardware.at("affinity", *found.path[len(hardware.path) :]))


@check("kubevirt/V107", given=("spec.topologySpreadConstraints",))
def spread_makes_sense(hardware: HardwareContext) -> Iterator[Finding]:
    """Constraints of the spread are those of a Pod: a skew above zero, a key of nodes' labels, a sound selector."""
    for index, constraint in enumerate(hardware.spec.topologySpreadConstraints or ()):
        path = hardware.at("topologySpreadConstraints", index)
        if constraint.maxSkew <= 0:
            yield finding.invalid((*path, "maxSkew"), constraint.maxSkew, "must be greater than zero", _SPREAD)
        yield from _label_key(constraint.topologyKey, (*path, "topologyKey"), _SPREAD)
        # KubeVirt leaves out which of the constraints it is.
        for found in _selector(constraint.labelSelector, (*path[:-1], "labelSelector"), _SPREAD):
            yield standing(found, (*path, *found.path[len(path) - 1 :]))


CHECKS = (affinity_makes_sense, spread_makes_sense)
