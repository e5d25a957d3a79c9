"""The state of a policy apart from its machines: contradictions in it and with others, and what a Provider cannot check."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import PlacementConstraints, PolicyConflict, PolicyValidation, VMPlacementPolicy
from paddock.dialects.virtrigaud.plan.conditions import READY, AspectValue, false, true
from paddock.dialects.virtrigaud.plan.placement import checks
from paddock.dialects.virtrigaud.plan.placement.checks import PlacementAxis, PlacementCheck, PlacementSubject
from paddock.dialects.virtrigaud.plan.placement.inventory import PlacementInventory
from paddock.dialects.virtrigaud.plan.placement.neighbors import NeighborRules

VALIDATED, CONFLICTS, SUPPORTED = "Validated", "Conflicts", "Supported"
VALID, INVALID, UNSUPPORTED, NO_CONFLICTS = "Valid", "Invalid", "Unsupported", "NoConflicts"
_PAIRS = (("hosts", "excludedHosts"), ("clusters", "excludedClusters"), ("datastores", "excludedDatastores"))
_LISTS = ("hosts", "clusters", "datastores", "zones", "regions", "folders", "resourcePools", "networks")
_MOST = 50


def errors(policy: VMPlacementPolicy) -> tuple[str, ...]:
    """The contradictions in a policy: no machine can be placed by it."""
    return tuple(_errors(policy))


def _errors(policy: VMPlacementPolicy) -> Iterator[str]:
    hard = policy.spec.hard or PlacementConstraints()
    for member, excluded in _PAIRS:
        allowed, out = getattr(hard, member) or [], getattr(hard, excluded) or []
        if allowed and set(allowed) <= set(out):
            yield f"hard.{excluded} excludes all of hard.{member} {checks.text(allowed)}"
    for member, name, strict in _strict_preferences(policy):
        allowed = getattr(hard, member) or []
        if allowed and not set(allowed) & set(strict):
            yield f"{name} {checks.text(strict)} has nothing of hard.{member} {checks.text(allowed)}"
    security = policy.spec.securityConstraints
    if security is not None and security.allowedSecurityGroups:
        allowed = security.allowedSecurityGroups
        if set(allowed) <= set(security.deniedSecurityGroups or ()):
            yield f"securityConstraints.deniedSecurityGroups denies all of allowedSecurityGroups {checks.text(allowed)}"


def _strict_preferences(policy: VMPlacementPolicy) -> Iterator[tuple[str, str, list[str]]]:
    rules = policy.spec.affinity
    if rules is None:
        return
    for member, rule, values in (
        ("hosts", "hostAffinity", "preferredHosts"),
        ("clusters", "clusterAffinity", "preferredClusters"),
        ("datastores", "datastoreAffinity", "preferredDatastores"),
        ("zones", "zoneAffinity", "preferredZones"),
    ):
        found = getattr(rules, rule)
        if found is not None and found.enabled and found.scope == checks.STRICT and getattr(found, values):
            yield member, f"affinity.{rule}", getattr(found, values)


# --- other policies -------------------------------------------------------------------------------------------------------


def conflicts(policy: VMPlacementPolicy, others: Sequence[VMPlacementPolicy]) -> list[PolicyConflict]:
    """The other policies of the namespace that contradict a policy. A machine names one policy, so nothing of it is overridden."""
    found = []
    for other in sorted(others, key=lambda each: each.metadata.name):
        for kind, text in _contradictions(policy, other):
            found.append(_conflict(policy, other, kind, text))
    return found[:_MOST]


def _conflict(policy: VMPlacementPolicy, other: VMPlacementPolicy, kind: str, text: str) -> PolicyConflict:
    mine, theirs = policy.spec.priority or 0, other.spec.priority or 0
    first = policy if mine > theirs else other
    order = f"VMPlacementPolicy {first.metadata.name} has the higher priority" if mine != theirs else "both have the same priority"
    return PolicyConflict(
        policyName=other.metadata.name,
        conflictType=kind,
        description=text,
        severity="high" if mine == theirs else "medium" if mine < theirs else "low",
        resolutionSuggestion=f"{order}; change one of them if machines of both have to be at the same place",
    )


def _contradictions(policy: VMPlacementPolicy, other: VMPlacementPolicy) -> Iterator[tuple[str, str]]:
    mine, theirs = policy.spec.hard or PlacementConstraints(), other.spec.hard or PlacementConstraints()
    for member in _LISTS:
        left, right = getattr(mine, member) or [], getattr(theirs, member) or []
        if left and right and not set(left) & set(right):
            yield "hard", f"hard.{member} {checks.text(left)} and {checks.text(right)} have nothing in common"
    for member, excluded in _PAIRS:
        for first, second, whose in ((mine, theirs, "the other one's"), (theirs, mine, "this policy's")):
            allowed, out = getattr(first, member) or [], getattr(second, excluded) or []
            if allowed and set(allowed) <= set(out):
                yield "hard", f"{whose} hard.{excluded} excludes all of hard.{member} {checks.text(allowed)}"
    labels, wanted = mine.nodeSelector or {}, theirs.nodeSelector or {}
    for key in sorted(labels.keys() & wanted.keys()):
        if labels[key] != wanted[key]:
            yield "hard", f"hard.nodeSelector wants {key}={labels[key]} and {key}={wanted[key]}"
    own, foreign = policy.spec.securityConstraints, other.spec.securityConstraints
    allowed = (own.allowedSecurityGroups if own is not None else None) or []
    denied = (foreign.deniedSecurityGroups if foreign is not None else None) or []
    if allowed and set(allowed) <= set(denied):
        yield "security", f"the other one denies all of securityConstraints.allowedSecurityGroups {checks.text(allowed)}"


# --- providers ------------------------------------------------------------------------------------------------------------


class ProviderLists(msgspec.Struct, frozen=True):
    """The lists of a Provider."""

    name: str
    hosts: bool
    datastores: bool
    # why nobody knows
    problem: str = ""


def all_checks(policy: VMPlacementPolicy) -> tuple[PlacementCheck, ...]:
    """Every check of a policy, for a machine that all its rules concern."""
    labels = {}
    for rules in (policy.spec.affinity, policy.spec.antiAffinity):
        for member in ("applicationAffinity", "applicationAntiAffinity"):
            rule = getattr(rules, member, None)
            if rule is not None:
                labels[rule.applicationLabel] = "any"
    machine = PlacementSubject("", policy.metadata.namespace or "", labels)
    found = (*checks.of_policy(policy, machine), *NeighborRules(policy, machine, PlacementInventory()).checks())
    return tuple(each for each in found if each.name != checks.TAINTS)


def validation(policy: VMPlacementPolicy, lists: ProviderLists) -> PolicyValidation:
    """The checks of a policy that a Provider can make. Another one holds machines if it must hold, and has no effect otherwise."""
    can: list[str] = []
    cannot: list[str] = []
    problems = [lists.problem] if lists.problem else []
    warnings: list[str] = []
    for each in all_checks(policy):
        kind = "hosts" if each.axis is PlacementAxis.HOST else "datastores"
        if lists.hosts if each.axis is PlacementAxis.HOST else lists.datastores:
            can.append(each.name)
            continue
        cannot.append(each.name)
        if not lists.problem:
            text = f"{each.name}: Provider {lists.name} lists no {kind}"
            (problems if each.hard else warnings).append(text)
    message = "the Provider can check every constraint"
    if problems:
        message = "the Provider cannot check what must hold: machines wait unless their own placement names a permitted place"
    elif warnings:
        message = "the Provider cannot check everything that should hold"
    return PolicyValidation(
        valid=not problems,
        message=message,
        errors=problems[:20] or None,
        warnings=warnings[:20] or None,
        supportedFeatures=can[:50] or None,
        unsupportedFeatures=cannot[:50] or None,
    )


def conditions(
    policy: VMPlacementPolicy, validations: Mapping[str, PolicyValidation], contradictions: Sequence[PolicyConflict]
) -> list[AspectValue]:
    """The conditions of a policy."""
    wrong = errors(policy)
    valid = false(VALIDATED, INVALID, "; ".join(wrong)) if wrong else true(VALIDATED, VALID, "the rules do not contradict each other")
    unable = [name for name, each in validations.items() if not each.valid]
    if unable:
        text = f"not every constraint can be checked at {', '.join(unable)}; validationResults has the details"
        supported = false(SUPPORTED, UNSUPPORTED, text)
    else:
        text = "every Provider of its machines can check what must hold" if validations else "no machine uses the policy"
        supported = true(SUPPORTED, VALID, text)
    names = list(dict.fromkeys(each.policyName for each in contradictions))
    if names:
        conflict = true(CONFLICTS, CONFLICTS, f"it contradicts {', '.join(names[:5])}; conflictingPolicies has the details")
    else:
        conflict = false(CONFLICTS, NO_CONFLICTS, "no policy of the namespace contradicts it")
    ready = next((each for each in (valid, supported) if each.status == "False"), None)
    text = ready.message if ready is not None else "machines can be placed by the policy"
    status = false(READY, ready.reason, text) if ready is not None else true(READY, VALID, text)
    return [status, valid, conflict, supported]
