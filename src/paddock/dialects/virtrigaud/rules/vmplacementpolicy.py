"""The rules of VirtRigaud's VMPlacementPolicy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.kubernetes.meta import selectors
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import AffinityTerm, PlacementConstraints, VMAffinity, VMPlacementPolicy

TERMS = "virtrigaud/affinity-term"
TOLERATIONS = "virtrigaud/toleration"
EXCLUDED = "virtrigaud/excluded"
_PAIRS = (("clusters", "excludedClusters"), ("hosts", "excludedHosts"), ("datastores", "excludedDatastores"))
_AFFINITIES = (("affinity", "vmAffinity"), ("antiAffinity", "vmAntiAffinity"))
_TOLERATION_CEL = ("self.operator != 'Exists' || !has(self.value)", "has no meaning with operator Exists", ".value", "FieldValueForbidden")


def _constraints(policy: "VMPlacementPolicy") -> "Iterator[tuple[str, PlacementConstraints]]":
    for name, given in (("hard", policy.spec.hard), ("soft", policy.spec.soft)):
        if given is not None:
            yield name, given


@rule(
    TOLERATIONS,
    Cel("spec.hard.tolerations[]", *_TOLERATION_CEL),
    Cel("spec.soft.tolerations[]", *_TOLERATION_CEL),
)
def tolerations_make_sense(policy: "VMPlacementPolicy", settings: AdmissionSettings) -> Iterator[Finding]:
    """A toleration that asks only whether a taint exists has no value; taints end no machine, so no time counts (a warning)."""
    for name, constraints in _constraints(policy):
        for index, toleration in enumerate(constraints.tolerations or ()):
            if toleration.operator == "Exists" and toleration.value is not None:
                path = ("spec", name, "tolerations", index, "value")
                yield finding.forbidden(path, "has no meaning with operator Exists", TOLERATIONS)
            if toleration.tolerationSeconds is not None:
                path = ("spec", name, "tolerations", index, "tolerationSeconds")
                yield finding.warning(path, "has no effect: a taint keeps machines away, and ends none", TOLERATIONS)


@rule(EXCLUDED)
def nothing_is_allowed_and_excluded(policy: "VMPlacementPolicy", settings: AdmissionSettings) -> Iterator[Finding]:
    """An excluded place is not also among the allowed ones (a warning: the exclusion counts)."""
    for name, constraints in _constraints(policy):
        for allowed, excluded in _PAIRS:
            for index, place in enumerate(getattr(constraints, excluded) or ()):
                if place in (getattr(constraints, allowed) or ()):
                    text = f"{place} is also among {allowed}; it is excluded"
                    yield finding.warning(("spec", name, excluded, index), text, EXCLUDED)


@rule(TERMS)
def terms_can_be_read(policy: "VMPlacementPolicy", settings: AdmissionSettings) -> Iterator[Finding]:
    """In and NotIn have values, Exists and DoesNotExist have none."""
    for group, member in _AFFINITIES:
        rules = getattr(policy.spec, group)
        affinity = getattr(rules, member) if rules is not None else None
        if affinity is not None:
            for path, term in _terms(affinity, ("spec", group, member)):
                yield from _term(term, path)


def _terms(affinity: "VMAffinity", path: Path) -> "Iterator[tuple[Path, AffinityTerm]]":
    for index, term in enumerate(affinity.requiredDuringScheduling or ()):
        yield (*path, "requiredDuringScheduling", index), term
    for index, weighted in enumerate(affinity.preferredDuringScheduling or ()):
        yield (*path, "preferredDuringScheduling", index, "vmAffinityTerm"), weighted.vmAffinityTerm


def _term(term: "AffinityTerm", path: Path) -> Iterator[Finding]:
    yield from selectors.selector_findings(term.labelSelector, (*path, "labelSelector"), TERMS)
    yield from selectors.selector_findings(term.namespaceSelector, (*path, "namespaceSelector"), TERMS)
    for index, condition in enumerate(term.matchExpressions or ()):
        place = (*path, "matchExpressions", index, "values")
        if condition.operator in ("In", "NotIn") and not condition.values:
            yield finding.required(place, TERMS, f'must be specified when operator is "{condition.operator}"')
        elif condition.operator in ("Exists", "DoesNotExist") and condition.values:
            yield finding.forbidden(place, f'may not be specified when operator is "{condition.operator}"', TERMS)


RULES = (tolerations_make_sense, nothing_is_allowed_and_excluded, terms_can_be_read)
