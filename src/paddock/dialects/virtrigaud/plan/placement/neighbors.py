"""The rules of a policy between machines: together with, apart from, and at most so many at one place."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import AffinityTerm, ApplicationRule, VMAffinity, VMPlacementPolicy
from paddock.dialects.virtrigaud.plan.placement import checks, inventory
from paddock.dialects.virtrigaud.plan.placement.checks import CheckStrength, PlacementAxis, PlacementCheck, PlacementSubject
from paddock.dialects.virtrigaud.plan.placement.inventory import CandidateDatastore, CandidateHost, PlacedMachine, PlacementInventory
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.selectors import LabelSelector, LabelSelectorRequirement

HOST_KEYS = ("host", "hostname", "kubernetes.io/hostname")
CLUSTER_KEYS = ("cluster", inventory.CLUSTER)
ZONE_KEYS, REGION_KEYS = ("zone", inventory.ZONE), ("region", inventory.REGION)
DATASTORE_KEYS = ("datastore",)


class NeighborRules:
    """Makes the checks of one machine's policy between it and the machines that are there."""

    def __init__(self, policy: VMPlacementPolicy, machine: PlacementSubject, placement_inventory: PlacementInventory) -> None:
        self._policy = policy
        self._machine = machine
        self._placement_inventory = placement_inventory
        self._hosts = {name: each for each in placement_inventory.hosts or () for name in (each.id, each.address) if name}

    def checks(self) -> Iterator[PlacementCheck]:
        spec = self._policy.spec
        if spec.affinity is not None:
            yield from self._terms("affinity.vmAffinity", spec.affinity.vmAffinity, together=True)
            yield from self._application("affinity.applicationAffinity", spec.affinity.applicationAffinity, together=True)
        rules = spec.antiAffinity
        if rules is not None:
            yield from self._terms("antiAffinity.vmAntiAffinity", rules.vmAntiAffinity, together=False)
            yield from self._application("antiAffinity.applicationAntiAffinity", rules.applicationAntiAffinity, together=False)
            for member, most, key in (
                ("hostAntiAffinity", "maxVMsPerHost", "host"),
                ("clusterAntiAffinity", "maxVMsPerCluster", "cluster"),
                ("datastoreAntiAffinity", "maxVMsPerDatastore", "datastore"),
                ("zoneAntiAffinity", "maxVMsPerZone", "zone"),
            ):
                rule = getattr(rules, member)
                if rule is not None and rule.enabled:
                    yield self._crowd(f"antiAffinity.{member}", most, getattr(rule, most), key, checks.strength(self._policy, rule.scope))

    # --- places of machines -----------------------------------------------------------------------------------------------

    def _domain(self, facts: Any, key: str) -> str:
        """The names that count as one place, of a host or a datastore."""
        if isinstance(facts, CandidateDatastore):
            return facts.name
        assert isinstance(facts, CandidateHost)
        if key in HOST_KEYS:
            return facts.id
        if key in CLUSTER_KEYS:
            return facts.cluster
        return facts.zone if key in ZONE_KEYS else facts.region if key in REGION_KEYS else facts.labels.get(key, "")

    def _domain_of(self, machine: PlacedMachine, key: str) -> str:
        if key in DATASTORE_KEYS:
            return machine.datastore
        host = self._hosts.get(machine.host)
        if host is None:
            return machine.host if key in HOST_KEYS else ""
        return self._domain(host, key)

    def _check(self, name: str, key: str, rank: CheckStrength, verdict: Callable[[Any], bool | None]) -> PlacementCheck:
        axis = PlacementAxis.DATASTORE if key in DATASTORE_KEYS else PlacementAxis.HOST
        return PlacementCheck(name, axis, verdict, rank.hard, rank.weight)

    # --- terms ------------------------------------------------------------------------------------------------------------

    def _terms(self, name: str, rules: VMAffinity | None, *, together: bool) -> Iterator[PlacementCheck]:
        if rules is None:
            return
        for number, term in enumerate(rules.requiredDuringScheduling or ()):
            place = f"{name}.requiredDuringScheduling[{number}] ({term.topologyKey})"
            yield self._term(place, term, CheckStrength(hard=True, weight=0), together=together)
        for number, weighted in enumerate(rules.preferredDuringScheduling or ()):
            term = weighted.vmAffinityTerm
            place = f"{name}.preferredDuringScheduling[{number}] ({term.topologyKey})"
            yield self._term(place, term, CheckStrength(hard=False, weight=weighted.weight), together=together)

    def _term(self, name: str, term: AffinityTerm, rank: CheckStrength, *, together: bool) -> PlacementCheck:
        meant = [each for each in self._placement_inventory.machines if each.namespace and self._matches(term, each.namespace, each.labels)]
        # The first of several machines that want to be together may go anywhere.
        alone = not meant and self._matches(term, self._machine.namespace, self._machine.labels)
        return self._check(name, term.topologyKey, rank, self._near(meant, term.topologyKey, together=together, alone=alone))

    def _near(self, meant: Sequence[PlacedMachine], key: str, *, together: bool, alone: bool) -> Callable[[Any], bool | None]:
        taken = {found for each in meant if (found := self._domain_of(each, key))}

        def verdict(facts: Any) -> bool | None:
            if not meant:
                return alone or not together
            domain = self._domain(facts, key)
            if not domain and not facts.listed:
                return None
            return (domain in taken) is together

        return verdict

    def _matches(self, term: AffinityTerm, namespace: str, labels: Any) -> bool:
        if not self._concerns(term, namespace):
            return False
        if term.labelSelector is None and not term.matchExpressions:
            return False
        given = [LabelSelectorRequirement(key=each.key, operator=each.operator, values=each.values) for each in term.matchExpressions or ()]
        own = term.labelSelector or LabelSelector()
        return selectors.matches(own, labels) and selectors.matches(LabelSelector(matchExpressions=given), labels)

    def _concerns(self, term: AffinityTerm, namespace: str) -> bool:
        if not term.namespaces and term.namespaceSelector is None:
            return namespace == self._machine.namespace
        selected = term.namespaceSelector is not None and selectors.matches(
            term.namespaceSelector, self._placement_inventory.namespaces.get(namespace, {})
        )
        return namespace in (term.namespaces or ()) or selected

    def _application(self, name: str, rule: ApplicationRule | None, *, together: bool) -> Iterator[PlacementCheck]:
        value = self._machine.labels.get(rule.applicationLabel) if rule is not None and rule.enabled else None
        if rule is None or value is None:
            return
        meant = [
            each
            for each in self._placement_inventory.machines
            if each.namespace == self._machine.namespace and each.labels.get(rule.applicationLabel) == value
        ]
        rank = checks.strength(self._policy, rule.scope)
        yield self._check(f"{name} {rule.applicationLabel}={value}", "host", rank, self._near(meant, "host", together=together, alone=True))

    # --- crowds -----------------------------------------------------------------------------------------------------------

    def _crowd(self, name: str, member: str, most: int | None, key: str, rank: CheckStrength) -> PlacementCheck:
        """At most so many machines of anybody at one place; without a number, one of this policy."""
        mine = self._policy.metadata.name
        meant = self._placement_inventory.machines
        if most is None:
            meant = tuple(each for each in meant if each.policy == mine and each.namespace == self._machine.namespace)
        counts: dict[str, int] = {}
        for each in meant:
            domain = self._domain_of(each, key)
            counts[domain] = counts.get(domain, 0) + 1
        limit = 1 if most is None else most

        def verdict(facts: Any) -> bool | None:
            domain = self._domain(facts, key)
            if not domain:
                return None if not facts.listed else True
            return counts.get(domain, 0) < limit

        return self._check(f"{name}.{member} {limit}" if most is not None else name, key, rank, verdict)
