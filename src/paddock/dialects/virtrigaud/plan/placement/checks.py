"""The constraints of a placement, each with a name, an axis, a weight and a verdict: True, False, or None when nobody can tell.

A constraint that only compares a name can be judged by the machine's own `placement` where the Provider lists nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from paddock.base import quantity
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import (
    PlacementConstraints,
    PolicyToleration,
    ResourceConstraints,
    SecurityConstraints,
    VMPlacementPolicy,
)
from paddock.dialects.virtrigaud.plan.placement import inventory
from paddock.dialects.virtrigaud.plan.placement.inventory import CandidateDatastore, CandidateHost, HostTaint

_MIB = 1 << 20
_ISOLATION = ("none", "basic", "strict", "maximum")
_TRUST = ("untrusted", "basic", "trusted", "highly-trusted")
DEFAULT_WEIGHT = 50
STRICT = "strict"
# Every policy has this check.
TAINTS = "hard.tolerations"
_REPELLING = ("NoSchedule", "NoExecute")


class PlacementAxis(StrEnum):
    """The subject of a constraint."""

    HOST = "host"
    DATASTORE = "datastore"


class PlacementCheck(msgspec.Struct, frozen=True):
    name: str
    axis: PlacementAxis
    verdict: Callable[[Any], bool | None]
    # it must hold; otherwise it adds its weight where it does
    hard: bool = True
    weight: int = 0


class PlacementSubject(msgspec.Struct, frozen=True):
    """The machine that is placed."""

    name: str
    namespace: str
    labels: Mapping[str, str] = {}
    cpu: int = 0
    memory_mib: int = 0
    # bytes of all disks
    disk: int = 0


class CheckStrength(msgspec.Struct, frozen=True):
    """The strength of a check: it must hold, or it has a weight."""

    hard: bool
    weight: int

    def host(self, name: str, verdict: Callable[[CandidateHost], bool | None]) -> PlacementCheck:
        return PlacementCheck(name, PlacementAxis.HOST, verdict, self.hard, self.weight)

    def datastore(self, name: str, verdict: Callable[[CandidateDatastore], bool | None]) -> PlacementCheck:
        return PlacementCheck(name, PlacementAxis.DATASTORE, verdict, self.hard, self.weight)


def strength(policy: VMPlacementPolicy, scope: str | None) -> CheckStrength:
    """The strength of a rule with a scope: strict must hold, anything else is preferred."""
    return CheckStrength(scope == STRICT, 0 if scope == STRICT else policy.spec.weight or DEFAULT_WEIGHT)


def of_policy(policy: VMPlacementPolicy, machine: PlacementSubject) -> Iterator[PlacementCheck]:
    """Yield the checks of a policy that concern places alone, without the rules between machines."""
    spec = policy.spec
    weight = spec.weight or DEFAULT_WEIGHT
    for group, given, hard in (("hard", spec.hard, True), ("soft", spec.soft, False)):
        if given is not None:
            yield from _constraints(group, given, CheckStrength(hard, 0 if hard else weight))
    yield from _taints([*_tolerations(spec.hard), *_tolerations(spec.soft)], weight)
    yield from _preferences(policy)
    if spec.resourceConstraints is not None:
        yield from _resources(spec.resourceConstraints, machine, weight)
    if spec.securityConstraints is not None:
        yield from _security(spec.securityConstraints)


# --- places ---------------------------------------------------------------------------------------------------------------


def _among(values: Sequence[str], *names: str, listed: bool) -> bool | None:
    given = [each for each in names if each]
    if not given and not listed:
        return None
    return any(each in values for each in given)


def among_hosts(values: Sequence[str]) -> Callable[[CandidateHost], bool | None]:
    """Hosts by id or address."""
    return lambda facts: _among(values, facts.id, facts.address, listed=facts.listed)


def among_clusters(values: Sequence[str]) -> Callable[[CandidateHost], bool | None]:
    return lambda facts: _among(values, facts.cluster, listed=facts.listed)


def among_zones(values: Sequence[str]) -> Callable[[CandidateHost], bool | None]:
    return lambda facts: _among(values, facts.zone, listed=facts.listed)


def among_datastores(values: Sequence[str]) -> Callable[[CandidateDatastore], bool | None]:
    """Datastores by name."""
    return lambda facts: _among(values, facts.name, listed=facts.listed)


def _not(verdict: Callable[[Any], bool | None]) -> Callable[[Any], bool | None]:
    def judge(facts: Any) -> bool | None:
        found = verdict(facts)
        return None if found is None else not found

    return judge


def _constraints(group: str, constraints: PlacementConstraints, rank: CheckStrength) -> Iterator[PlacementCheck]:
    def named(member: str) -> str:
        return f"{group}.{member} {text(getattr(constraints, member))}"

    if constraints.hosts:
        yield rank.host(named("hosts"), among_hosts(constraints.hosts))
    if constraints.clusters:
        yield rank.host(named("clusters"), among_clusters(constraints.clusters))
    if constraints.zones:
        yield rank.host(named("zones"), among_zones(constraints.zones))
    if constraints.regions:
        regions = constraints.regions
        yield rank.host(named("regions"), lambda facts: _among(regions, facts.region, listed=facts.listed))
    if constraints.nodeSelector:
        wanted = constraints.nodeSelector
        yield rank.host(
            f"{group}.nodeSelector {text([f'{key}={value}' for key, value in sorted(wanted.items())])}",
            lambda facts: all(facts.labels.get(key) == value for key, value in wanted.items()) if facts.listed else None,
        )
    if constraints.datastores:
        yield rank.datastore(named("datastores"), among_datastores(constraints.datastores))
    if constraints.excludedHosts:
        yield rank.host(named("excludedHosts"), _not(among_hosts(constraints.excludedHosts)))
    if constraints.excludedClusters:
        yield rank.host(named("excludedClusters"), _not(among_clusters(constraints.excludedClusters)))
    if constraints.excludedDatastores:
        yield rank.datastore(named("excludedDatastores"), _not(among_datastores(constraints.excludedDatastores)))


def _tolerations(constraints: PlacementConstraints | None) -> list[PolicyToleration]:
    return list(constraints.tolerations or ()) if constraints is not None else []


def _taints(tolerations: Sequence[PolicyToleration], weight: int) -> Iterator[PlacementCheck]:
    """Hosts repel machines of policies by their taints. Where no host is listed there is none to judge, and nobody named one."""

    def tolerated(facts: CandidateHost, effects: Sequence[str]) -> bool:
        return all(any(_tolerates(each, taint) for each in tolerations) for taint in facts.taints if taint.effect in effects)

    yield PlacementCheck(TAINTS, PlacementAxis.HOST, lambda facts: tolerated(facts, _REPELLING))
    if tolerations:
        yield PlacementCheck(
            "tolerations of PreferNoSchedule", PlacementAxis.HOST, lambda facts: tolerated(facts, ("PreferNoSchedule",)), False, weight
        )


def _tolerates(toleration: PolicyToleration, taint: HostTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.value or "") == taint.value


def _preferences(policy: VMPlacementPolicy) -> Iterator[PlacementCheck]:
    rules = policy.spec.affinity
    if rules is None:
        return
    hosts, clusters, stores, zones = rules.hostAffinity, rules.clusterAffinity, rules.datastoreAffinity, rules.zoneAffinity
    if hosts is not None and hosts.enabled and hosts.preferredHosts:
        rank = strength(policy, hosts.scope)
        yield rank.host(f"affinity.hostAffinity {text(hosts.preferredHosts)}", among_hosts(hosts.preferredHosts))
    if clusters is not None and clusters.enabled and clusters.preferredClusters:
        rank = strength(policy, clusters.scope)
        yield rank.host(f"affinity.clusterAffinity {text(clusters.preferredClusters)}", among_clusters(clusters.preferredClusters))
    if stores is not None and stores.enabled and stores.preferredDatastores:
        rank = strength(policy, stores.scope)
        yield rank.datastore(f"affinity.datastoreAffinity {text(stores.preferredDatastores)}", among_datastores(stores.preferredDatastores))
    if zones is not None and zones.enabled and zones.preferredZones:
        rank = strength(policy, zones.scope)
        yield rank.host(f"affinity.zoneAffinity {text(zones.preferredZones)}", among_zones(zones.preferredZones))


# --- resources and security -----------------------------------------------------------------------------------------------


def _resources(constraints: ResourceConstraints, machine: PlacementSubject, weight: int) -> Iterator[PlacementCheck]:
    rank = CheckStrength(hard=True, weight=0)

    def least(member: str, have: str, amount: int) -> PlacementCheck:
        name = f"resourceConstraints.{member} {getattr(constraints, member)}"
        return rank.host(name, lambda facts: getattr(facts, have) >= amount if facts.listed else None)

    def most(member: str, have: str, takes: int, percent: int) -> PlacementCheck:
        def verdict(facts: CandidateHost) -> bool | None:
            total = getattr(facts, f"{have}_total" if have != "memory_mib" else "memory_total")
            if not facts.listed or not total:
                return None
            return bool((total - getattr(facts, have) + takes) * 100 <= percent * total)

        return rank.host(f"resourceConstraints.{member} {percent} %", verdict)

    if constraints.minCPUPerHost is not None:
        yield least("minCPUPerHost", "cpu", constraints.minCPUPerHost)
    if constraints.minMemoryPerHost is not None:
        yield least("minMemoryPerHost", "memory_mib", -(-quantity.whole(constraints.minMemoryPerHost) // _MIB))
    if constraints.minDiskSpacePerHost is not None:
        yield least("minDiskSpacePerHost", "storage", quantity.whole(constraints.minDiskSpacePerHost))
    if constraints.maxCPUUtilization is not None:
        yield most("maxCPUUtilization", "cpu", machine.cpu, constraints.maxCPUUtilization)
    if constraints.maxMemoryUtilization is not None:
        yield most("maxMemoryUtilization", "memory_mib", machine.memory_mib, constraints.maxMemoryUtilization)
    if constraints.maxDiskUtilization is not None:
        yield most("maxDiskUtilization", "storage", machine.disk, constraints.maxDiskUtilization)
    yield from _features("resourceConstraints.requiredFeatures", constraints.requiredFeatures, rank)
    yield from _features("resourceConstraints.preferredFeatures", constraints.preferredFeatures, CheckStrength(False, weight))


def _features(name: str, features: Sequence[str] | None, rank: CheckStrength) -> Iterator[PlacementCheck]:
    for each in features or ():
        yield rank.host(f"{name} {each}", _has_feature(each))


def _has_feature(name: str) -> Callable[[CandidateHost], bool | None]:
    return lambda facts: name in facts.features if facts.listed else None


def _security(constraints: SecurityConstraints) -> Iterator[PlacementCheck]:
    rank = CheckStrength(hard=True, weight=0)
    for member, feature in (
        ("requireSecureBoot", "secure-boot"),
        ("requireTPM", "tpm"),
        ("requireEncryptedStorage", "encrypted-storage"),
        ("requireNUMATopology", "numa"),
    ):
        if getattr(constraints, member):
            yield rank.host(f"securityConstraints.{member}", _has_feature(feature))
    if constraints.allowedSecurityGroups:
        allowed = constraints.allowedSecurityGroups
        yield rank.host(f"securityConstraints.allowedSecurityGroups {text(allowed)}", _labelled(inventory.SECURITY_GROUP, allowed))
    if constraints.deniedSecurityGroups:
        denied = constraints.deniedSecurityGroups
        yield rank.host(f"securityConstraints.deniedSecurityGroups {text(denied)}", _not(_labelled(inventory.SECURITY_GROUP, denied)))
    if constraints.isolationLevel:
        at_least = _ISOLATION[_ISOLATION.index(constraints.isolationLevel) :]
        yield rank.host(
            f"securityConstraints.isolationLevel {constraints.isolationLevel}", _level(inventory.ISOLATION, at_least, _ISOLATION)
        )
    if constraints.trustLevel:
        at_least = _TRUST[_TRUST.index(constraints.trustLevel) :]
        yield rank.host(f"securityConstraints.trustLevel {constraints.trustLevel}", _level(inventory.TRUST, at_least, _TRUST))


def _labelled(label: str, values: Sequence[str]) -> Callable[[CandidateHost], bool | None]:
    return lambda facts: facts.labels.get(label, "") in values if facts.listed else None


def _level(label: str, at_least: Sequence[str], levels: Sequence[str]) -> Callable[[CandidateHost], bool | None]:
    """Hosts that offer a level or a higher one; one without the label offers the lowest."""
    return lambda facts: facts.labels.get(label, levels[0]) in at_least if facts.listed else None


def text(values: Sequence[str] | None) -> str:
    """Some names, in brackets."""
    given = list(values or ())
    more = f" and {len(given) - 5} more" if len(given) > 5 else ""
    return f"[{', '.join(given[:5])}{more}]"
