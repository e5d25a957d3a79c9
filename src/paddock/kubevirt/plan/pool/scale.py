"""The next steps of a pool: machines to make, to delete, to change, to restart (docs/spec/kubevirt.md 6). Pure.

paused: nothing
too few:  the lowest free numbers        (at most BURST in a round; machines that go keep their number until they are gone)
too many: by the scale-in strategy       (unmanaged, opportunistic: wait for somebody else to delete)
another template: every spec is rewritten, then instances are restarted within maxUnavailable
one that does not start: deleted, and so made anew
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from paddock.base import duration
from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import ages, selectors
from paddock.kubernetes.meta.conditions import holds
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.poolfields import ScaleInSelectors, SelectionPolicy
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import placement
from paddock.kubevirt.plan.machine.runstrategy import RunStrategy, strategy_of
from paddock.kubevirt.plan.pool import machines, preservation

_FAILURES, _FAILING_SECONDS = 3, 300.0
# So many machines are made in one round, as upstream; others have their turn before the next.
BURST = 250
_NEXT_ROUND_SECONDS = 0.1
_RUNNING = (RunStrategy.ALWAYS, RunStrategy.RERUN, RunStrategy.ONCE)
_STUCK = ("CrashLoopBackOff", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError")


class PoolMember(msgspec.Struct, frozen=True):
    """A machine of the pool, and the revision its instance was made from (None: it has none)."""

    machine: VirtualMachine
    instance_revision: str | None = None
    # it goes, or it is known that somebody has asked for that
    deleting: bool = False
    # a restart was asked for and has not come about yet
    restarting: bool = False
    # labels of the node that it runs on
    node_labels: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        return self.machine.metadata.name

    @property
    def is_ready(self) -> bool:
        """True if it runs and is ready."""
        return self.machine.status is not None and bool(self.machine.status.ready)

    @property
    def is_marked(self) -> bool:
        """Return whether it was chosen to go before: its disks stay."""
        return preservation.is_marked(self.machine.metadata.annotations)

    @property
    def revision(self) -> str:
        """The revision its spec was made from."""
        return (self.machine.metadata.labels or {}).get(machines.REVISION_LABEL, "")


class ScalePlan(msgspec.Struct, frozen=True):
    """The steps, in this order, and the seconds until the next pass."""

    make: tuple[int, ...] = ()
    delete: tuple[str, ...] = ()
    rewrite: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    wait: float | None = None
    # those of `delete` whose disks are to be others: what is on the old ones is lost
    anew: tuple[str, ...] = ()


class ScaleContext(msgspec.Struct, frozen=True):
    """The facts that the plan depends on besides the pool and its machines."""

    # names of all machines of the namespace
    taken: Collection[str]
    revision: str
    # the revision whose DataVolumes are those of now, or the present one
    same_disks: Collection[str]
    # those whose instances have the labels and annotations of now
    same_labels: Collection[str]
    now: float
    # sorts without a preference
    chance: Callable[[], float]


def plan(pool: VirtualMachinePool, members: Sequence[PoolMember], around: ScaleContext) -> ScalePlan:
    if pool.spec.paused:
        return ScalePlan()
    alive = [each for each in members if not each.deleting]
    missing = pool.spec.replicas - len(members)
    if missing > 0:
        update = _update(pool, alive, around)
        made = machines.free_indices(pool, around.taken, min(missing, BURST))
        return msgspec.structs.replace(update, make=made, wait=_NEXT_ROUND_SECONDS if missing > BURST else update.wait)
    surplus = len(alive) - pool.spec.replicas
    if surplus > 0:
        leaving = _surplus(pool, alive, surplus, around)
        rest = [each for each in alive if each.name not in leaving]
        update = _update(pool, rest, around)
        return msgspec.structs.replace(update, delete=leaving, anew=(), wait=_NEXT_ROUND_SECONDS if surplus > BURST else update.wait)
    return _update(pool, alive, around)


def number_of(pool: VirtualMachinePool, name: str) -> int | None:
    """The number in the name of a machine."""
    text = name.removeprefix(f"{pool.metadata.name}-")
    return int(text) if text != name and text.isdecimal() else None


def _surplus(pool: VirtualMachinePool, alive: Sequence[PoolMember], count: int, around: ScaleContext) -> tuple[str, ...]:
    strategy = pool.spec.scaleInStrategy
    if strategy is not None and (strategy.unmanaged is not None or strategy.opportunistic is not None):
        return ()
    policy = strategy.proactive.selectionPolicy if strategy is not None and strategy.proactive is not None else None
    # A choice that was made, and interrupted, stands.
    order = sorted(chosen(pool, alive, policy, around.chance), key=lambda each: not each.is_marked)
    return tuple(each.name for each in order[: min(count, BURST)])


def chosen(
    pool: VirtualMachinePool, members: Iterable[PoolMember], policy: SelectionPolicy | None, chance: Callable[[], float]
) -> list[PoolMember]:
    """The machines in the order in which they are chosen: those that the selectors mean first."""
    order = (policy.sortPolicy if policy is not None else None) or "Random"
    keys: dict[str, Callable[[PoolMember], Any]] = {
        "AscendingOrder": lambda each: _number(pool, each),
        "DescendingOrder": lambda each: -_number(pool, each),
        "Oldest": lambda each: (_age(each), _number(pool, each)),
        "Newest": lambda each: (-_age(each), -_number(pool, each)),
    }
    found = sorted(members, key=keys.get(order, lambda each: chance()))
    meant = policy.selectors if policy is not None else None
    return found if meant is None else sorted(found, key=lambda each: not _is_meant(meant, each))


def _is_meant(meant: ScaleInSelectors, member: PoolMember) -> bool:
    """Return whether both selectors match: the labels of the machine and its instance, and those of its node."""
    labels, template = meant.labelSelector, member.machine.spec.template.metadata
    has = {**(member.machine.metadata.labels or {}), **((template.labels if template is not None else None) or {})}
    if labels is not None and not selectors.matches(labels, has):
        return False
    return all(placement.holds(each, member.node_labels) for each in meant.nodeSelectorRequirementMatcher or ())


def _number(pool: VirtualMachinePool, member: PoolMember) -> int:
    found = number_of(pool, member.name)
    return -1 if found is None else found


def _age(member: PoolMember) -> float:
    return ages.seconds_of(member.machine.metadata.creationTimestamp or "") or 0.0


# --- updates --------------------------------------------------------------------------------------------------------------


def _update(pool: VirtualMachinePool, alive: Sequence[PoolMember], around: ScaleContext) -> ScalePlan:
    failing, wait = _failing(pool, alive, around.now)
    if failing:
        return ScalePlan(delete=failing, wait=wait)
    strategy = pool.spec.updateStrategy
    if strategy is not None and strategy.unmanaged is not None:
        return ScalePlan(wait=wait)
    proactive = strategy is None or strategy.opportunistic is None
    policy = strategy.proactive.selectionPolicy if strategy is not None and strategy.proactive is not None else None
    meant = policy.selectors if policy is not None else None
    # Those that are not meant stay as they are.
    subject = [each for each in alive if meant is None or _is_meant(meant, each)]
    old = [each for each in subject if each.revision != around.revision]
    anew = [each for each in old if each.revision not in around.same_disks] if proactive else []
    other_disks = {each.name for each in anew}
    rewrite = tuple(each.name for each in old if each.name not in other_disks)
    if not proactive:
        return ScalePlan(rewrite=rewrite, wait=wait)
    outdated = [each for each in subject if each.name not in other_disks and _waits_for_restart(each, around)]
    room = machines.most_unavailable(pool) - sum(_is_unavailable(each) for each in alive)
    order = chosen(pool, [*anew, *outdated], policy, around.chance)
    # What does not run costs nobody anything.
    free = [each for each in order if _is_unavailable(each) or each.instance_revision is None]
    at_no_cost = {each.name for each in free}
    picked = [*free, *[each for each in order if each.name not in at_no_cost][: max(0, room)]]
    deleted = tuple(each.name for each in picked if each.name in other_disks)
    restarted = tuple(each.name for each in picked if each.name not in other_disks)
    return ScalePlan(delete=deleted, rewrite=rewrite, restart=restarted, wait=wait, anew=deleted)


def _waits_for_restart(member: PoolMember, around: ScaleContext) -> bool:
    """Return whether the instance is older than the spec, and the change cannot reach it while it runs."""
    status = member.machine.status
    if member.instance_revision in (None, around.revision) or member.restarting or status is None:
        return False
    return member.instance_revision not in around.same_labels or holds(status.conditions, "RestartRequired")


def _is_unavailable(member: PoolMember) -> bool:
    return (member.restarting or not member.is_ready) and strategy_of(member.machine.spec) in _RUNNING


def _failing(pool: VirtualMachinePool, alive: Sequence[PoolMember], now: float) -> tuple[tuple[str, ...], float | None]:
    """The machines that do not start, and when to look again for those that may become such."""
    healing = pool.spec.autohealing
    if healing is None:
        return (), None
    most = healing.startUpFailureThreshold or _FAILURES
    longest = duration.parse(healing.minFailingToStartDuration) / 1e9 if healing.minFailingToStartDuration else _FAILING_SECONDS
    found, wait = [], None
    for each in alive:
        status = each.machine.status
        if status is None or status.printableStatus not in (*_STUCK, "Starting"):
            continue
        failures = (status.startFailure.consecutiveFailCount if status.startFailure is not None else None) or 0
        since = next((ages.seconds_of(each.lastTransitionTime or "") for each in status.conditions or () if each.type == "Ready"), None)
        left = longest - (now - since) if since is not None and (failures or status.printableStatus in _STUCK) else None
        if failures >= most or (left is not None and left <= 0):
            found.append(each.name)
        elif left is not None:
            wait = left if wait is None else min(wait, left)
    return tuple(found), wait


def rewritten(machine: Data, wanted: Data) -> Data:
    """A machine with the spec and the labels of its pool's template, and the identity it has had."""
    made: Data = copied(machine)
    spec = made["spec"] = copied(wanted["spec"])
    has, hardware = machine["spec"]["template"].get("spec") or {}, spec["template"].setdefault("spec", {})
    domain, old = hardware.setdefault("domain", {}), has.get("domain") or {}
    domain["firmware"] = {
        **{key: value for key, value in (old.get("firmware") or {}).items() if key in ("uuid", "serial")},
        **(domain.get("firmware") or {}),
    }
    if "machine" not in domain and "machine" in old:
        domain["machine"] = copied(old["machine"])
    if "architecture" not in hardware and "architecture" in has:
        hardware["architecture"] = has["architecture"]
    around = spec["template"]["metadata"] = spec["template"].get("metadata") or {}
    kept = {
        key: value
        for key, value in ((machine["spec"]["template"].get("metadata") or {}).get("annotations") or {}).items()
        if key == "kubevirt.io/pci-topology-version"
    }
    around["annotations"] = {**kept, **(around.get("annotations") or {})}
    metadata = made["metadata"]
    for name in ("labels", "annotations"):
        metadata[name] = {**(metadata.get(name) or {}), **(wanted["metadata"].get(name) or {})}
    return made
