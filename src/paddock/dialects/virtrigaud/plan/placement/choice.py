"""The choice of a place: what must hold filters, what should hold scores, and every constraint that rejects is named.

Hosts and datastores are chosen apart, because every host of a Provider reaches every one of its datastores. A choice that was recorded
stands as long as it is allowed, so that a create that is tried again goes to the same place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from paddock.dialects.virtrigaud.kinds.machine import ProviderPlacement
from paddock.dialects.virtrigaud.kinds.provider import ProviderDefaults
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import PlacementConstraints, VMPlacementPolicy
from paddock.dialects.virtrigaud.plan.placement import checks
from paddock.dialects.virtrigaud.plan.placement.checks import PlacementAxis, PlacementCheck, PlacementSubject
from paddock.dialects.virtrigaud.plan.placement.decision import PlacementDecision
from paddock.dialects.virtrigaud.plan.placement.inventory import CandidateDatastore, CandidateHost, PlacementInventory
from paddock.dialects.virtrigaud.plan.placement.neighbors import NeighborRules

_GIB = 1 << 30
_MEMBERS = 10


class PlacementRequest(msgspec.Struct, frozen=True):
    """A machine to be placed, and what its spec, its Provider and its policy say of that."""

    machine: PlacementSubject
    own: ProviderPlacement = ProviderPlacement()
    defaults: ProviderDefaults = ProviderDefaults()
    policy: VMPlacementPolicy | None = None
    # names of the networks it is connected to: of the objects, and at the provider
    networks: tuple[tuple[str, ...], ...] = ()
    before: PlacementDecision = PlacementDecision()

    @property
    def pod(self) -> str:
        """The storage pod, where no datastore is named in the same place."""
        if self.own.datastore:
            return ""
        if self.own.storagePod:
            return self.own.storagePod
        return (self.defaults.storagePod or "") if not self.defaults.datastore else ""


class PlacementOutcome(msgspec.Struct, frozen=True):
    """The place, or the constraints that leave none."""

    decision: PlacementDecision | None = None
    violations: tuple[str, ...] = ()
    # what should hold and does not, and what nobody could tell
    unmet: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


class _Choice(msgspec.Struct, frozen=True):
    value: Any = None
    violations: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def is_needed(request: PlacementRequest) -> bool:
    """Return whether anything is to be chosen here and not by the provider."""
    return request.policy is not None or bool(request.pod)


def policy_checks(request: PlacementRequest, placement_inventory: PlacementInventory) -> tuple[PlacementCheck, ...]:
    """The checks of the machine's policy."""
    if request.policy is None:
        return ()
    found = checks.of_policy(request.policy, request.machine)
    return (*found, *NeighborRules(request.policy, request.machine, placement_inventory).checks())


def choose(request: PlacementRequest, placement_inventory: PlacementInventory) -> PlacementOutcome:
    given = policy_checks(request, placement_inventory)
    host = _host(request, placement_inventory, [each for each in given if each.axis is PlacementAxis.HOST])
    store = _datastore(request, placement_inventory, [each for each in given if each.axis is PlacementAxis.DATASTORE])
    folder, pool = (_listed_value(request, *each) for each in (("folders", "folder"), ("resourcePools", "resourcePool")))
    networks = _networks(request)
    parts = (host, store, folder, pool, networks)
    violations = tuple(text for each in parts for text in each.violations)
    if violations:
        return PlacementOutcome(violations=violations)
    return PlacementOutcome(
        decision=_decision(request, host.value, store.value, folder.value or "", pool.value or ""),
        unmet=tuple(text for each in parts for text in each.unmet),
        unchecked=tuple(text for each in parts for text in each.unchecked),
    )


def _decision(
    request: PlacementRequest, host: CandidateHost | None, store: CandidateDatastore | None, folder: str, pool: str
) -> PlacementDecision:
    metadata = request.policy.metadata if request.policy is not None else None
    found = host or CandidateHost()
    return PlacementDecision(
        host=found.id,
        cluster=found.cluster,
        zone=found.zone,
        datastore=store.name if store is not None else "",
        storage_pod=request.pod if store is not None and store.listed else "",
        folder=folder,
        resource_pool=pool,
        policy=metadata.name if metadata is not None else "",
        policy_uid=(metadata.uid or "") if metadata is not None else "",
    )


# --- hosts ----------------------------------------------------------------------------------------------------------------


def _host(request: PlacementRequest, placement_inventory: PlacementInventory, placement_checks: Sequence[PlacementCheck]) -> _Choice:
    # Every policy has the check of taints; a host is chosen when anything else depends on it.
    if request.policy is None or len(placement_checks) <= 1:
        return _Choice()
    if placement_inventory.hosts is None:
        cluster = request.own.cluster or request.defaults.cluster or ""
        named = CandidateHost(id=request.own.host or "", cluster=cluster, listed=False)
        return _pick([named], placement_checks, "hosts", lambda facts: (), "")
    return _pick(
        placement_inventory.hosts,
        [*_of_hosts(request, placement_inventory.hosts), *placement_checks],
        "hosts",
        lambda facts: (-facts.memory_mib, facts.id),
        request.before.host,
    )


def _of_hosts(request: PlacementRequest, hosts: Sequence[CandidateHost]) -> Iterator[PlacementCheck]:
    """Yield what every host has to have, and what the machine's own placement says."""
    memory = request.machine.memory_mib
    yield PlacementCheck("readiness of hosts", PlacementAxis.HOST, lambda facts: facts.ready)
    yield PlacementCheck(
        f"{memory} MiB of free memory", PlacementAxis.HOST, lambda facts: facts.memory_mib >= memory if facts.memory_total else True
    )
    if request.own.host:
        yield PlacementCheck(f"placement.host {request.own.host}", PlacementAxis.HOST, checks.among_hosts([request.own.host]))
    if any(each.cluster for each in hosts):
        if request.own.cluster:
            yield PlacementCheck(
                f"placement.cluster {request.own.cluster}", PlacementAxis.HOST, checks.among_clusters([request.own.cluster])
            )
        elif request.defaults.cluster:
            name = f"the Provider's default cluster {request.defaults.cluster}"
            yield PlacementCheck(name, PlacementAxis.HOST, checks.among_clusters([request.defaults.cluster]), hard=False, weight=1)


# --- datastores -----------------------------------------------------------------------------------------------------------


def _datastore(request: PlacementRequest, placement_inventory: PlacementInventory, placement_checks: Sequence[PlacementCheck]) -> _Choice:
    if not placement_checks and not request.pod:
        return _Choice()
    if placement_inventory.datastores is None:
        named = CandidateDatastore(name=request.own.datastore or request.defaults.datastore or "", listed=False)
        return _pick([named], placement_checks, "datastores", lambda facts: (), "")
    if request.own.datastore:
        own = PlacementCheck(
            f"placement.datastore {request.own.datastore}", PlacementAxis.DATASTORE, checks.among_datastores([request.own.datastore])
        )
        return _pick(placement_inventory.datastores, [own, *placement_checks], "datastores", lambda facts: (facts.name,), "")
    members = [each for each in placement_inventory.datastores if request.pod in ("", each.pod)]
    usable = [each for each in members if not _unusable(each, request.machine.disk)]
    if not usable:
        return _Choice(violations=(_without_members(request, members),))
    default = request.defaults.datastore
    wanted = list(placement_checks)
    if default and not request.pod:
        name = f"the Provider's default datastore {default}"
        wanted.append(PlacementCheck(name, PlacementAxis.DATASTORE, checks.among_datastores([default]), hard=False, weight=1))
    before = request.before.datastore if request.before.storage_pod == request.pod else ""
    return _pick(usable, wanted, "datastores", lambda facts: (-facts.free, facts.name), before)


def _unusable(store: CandidateDatastore, need: int) -> str:
    """Return why a datastore cannot have a machine's disks."""
    if store.maintenance:
        return "is in maintenance"
    if not store.accessible:
        return "is not accessible"
    return f"has {max(0, store.free) // _GIB} GiB free, and the machine needs {-(-need // _GIB)} GiB" if store.free < need else ""


def _without_members(request: PlacementRequest, members: Sequence[CandidateDatastore]) -> str:
    what = f"storagePod {request.pod}" if request.pod else "the Provider"
    if not members:
        return f"{what} has no datastores"
    why = [f"{each.name} {_unusable(each, request.machine.disk)}" for each in sorted(members, key=lambda each: each.name)]
    more = f" and {len(why) - _MEMBERS} more" if len(why) > _MEMBERS else ""
    return f"{what} has no datastore for the machine: {', '.join(why[:_MEMBERS])}{more}"


# --- one axis -------------------------------------------------------------------------------------------------------------


def _pick(
    candidates: Sequence[Any], placement_checks: Sequence[PlacementCheck], kind: str, order: Callable[[Any], Any], before: str
) -> _Choice:
    """The best of the candidates that everything hard allows."""
    hard, soft = [each for each in placement_checks if each.hard], [each for each in placement_checks if not each.hard]
    verdicts = [(candidate, [each.verdict(candidate) for each in hard]) for candidate in candidates]
    allowed = [candidate for candidate, found in verdicts if all(found)]
    if not allowed:
        return _Choice(violations=tuple(_violations(hard, verdicts, kind)) or (f"the Provider has no {kind}",))
    kept = next((each for each in allowed if before and _name(each) == before), None)
    best = kept or min(allowed, key=lambda each: (-_score(soft, each), order(each)))
    unmet = tuple(each.name for each in soft if each.verdict(best) is False)
    unchecked = tuple(each.name for each in soft if each.verdict(best) is None)
    return _Choice(best, unmet=unmet, unchecked=unchecked)


def _name(facts: CandidateHost | CandidateDatastore) -> str:
    return facts.id if isinstance(facts, CandidateHost) else facts.name


def _score(soft: Sequence[PlacementCheck], candidate: Any) -> int:
    return sum(each.weight for each in soft if each.verdict(candidate))


def _violations(hard: Sequence[PlacementCheck], verdicts: Sequence[tuple[Any, list[bool | None]]], kind: str) -> Iterator[str]:
    """Yield each constraint that rejects candidates."""
    listed = all(candidate.listed for candidate, _ in verdicts)
    for index, each in enumerate(hard):
        refused = sum(found[index] is False for _, found in verdicts)
        unknown = sum(found[index] is None for _, found in verdicts)
        if refused:
            yield f"{each.name} rejects {refused} of {len(verdicts)} {kind}" if listed else f"{each.name} rejects the machine's placement"
        elif unknown:
            why = "reports too little about them" if listed else f"lists no {kind}"
            yield f"{each.name} cannot be checked because the Provider {why}"


# --- folders, resource pools, networks --------------------------------------------------------------------------------------


def _listed_value(request: PlacementRequest, member: str, field: str) -> _Choice:
    """A name that the machine or the Provider gives, or the first one that the policy allows."""
    if request.policy is None:
        return _Choice()
    own, default = getattr(request.own, field) or "", getattr(request.defaults, field) or ""
    hard, soft = (_members(each, member) for each in (request.policy.spec.hard, request.policy.spec.soft))
    if own and hard and own not in hard:
        return _Choice(violations=(f"hard.{member} {checks.text(hard)} rejects placement.{field} {own}",))
    allowed = [each for each in soft if not hard or each in hard] or hard
    value = own or (default if default and (not allowed or default in allowed) else next(iter(allowed), default))
    unmet = (f"soft.{member} {checks.text(soft)}",) if soft and value not in soft else ()
    return _Choice(value if value != default else "", unmet=unmet)


def _members(constraints: PlacementConstraints | None, member: str) -> list[str]:
    return list(getattr(constraints, member) or ()) if constraints is not None else []


def _networks(request: PlacementRequest) -> _Choice:
    """The networks that a machine is connected to are its own choice: the policy allows them or not."""
    if request.policy is None:
        return _Choice()
    hard, soft = (_members(each, "networks") for each in (request.policy.spec.hard, request.policy.spec.soft))
    strange = [each[0] for each in request.networks if hard and not set(each) & set(hard)]
    if strange:
        return _Choice(violations=(f"hard.networks {checks.text(hard)} rejects {', '.join(strange)}",))
    others = [each[0] for each in request.networks if soft and not set(each) & set(soft)]
    return _Choice(unmet=(f"soft.networks {checks.text(soft)}",) if others else ())
