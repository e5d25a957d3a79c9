"""The next steps of a VMSet: machines to make, to delete, to change in place (docs/spec/virtrigaud.md 2.8).

    wanted ordinals   start ... start + replicas - 1
    surge ordinals    the ones after them, while a rolling update replaces machines
    condemned         every other machine of the set, and those of an old revision on a surge ordinal

OrderedReady makes machines in ascending order, each when the ones before it are available, and deletes them in descending order, each when
the one before it is gone. A rolling update begins with the highest ordinal. A machine that is not available costs nothing to update, so
a correction reaches machines that an earlier template broke. A machine of the present revision that failed pauses the update.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from paddock.dialects.virtrigaud.kinds.vmset import Ordinals, RollingUpdate, SetUpdateStrategy, VMSetSpec
from paddock.dialects.virtrigaud.plan.sets.templates import TemplateChange

ROLLING, ON_DELETE, RECREATE = "RollingUpdate", "OnDelete", "Recreate"
# So many machines are made or deleted in one pass; others have their turn before the next.
BURST = 100
_NEXT_PASS_SECONDS = 0.1


class SetMember(msgspec.Struct, frozen=True):
    """A machine of a set."""

    name: str
    ordinal: int
    revision: str = ""
    # what it takes to bring it to the present template
    change: TemplateChange = TemplateChange.NONE
    ready: bool = False
    # since when it is ready
    since: float = 0.0
    failed: bool = False
    deleting: bool = False


class SetRules(msgspec.Struct, frozen=True):
    """The rules of a set, resolved to numbers."""

    start: int
    replicas: int
    strategy: str
    parallel: bool
    partition: int
    unavailable: int
    surge: int
    min_ready: float

    @property
    def wanted(self) -> range:
        """The ordinals of the machines."""
        return range(self.start, self.start + self.replicas)

    def surplus(self, count: int) -> range:
        """The ordinals of so many further machines."""
        return range(self.start + self.replicas, self.start + self.replicas + count)

    def is_available(self, member: SetMember, now: float) -> bool:
        """Return whether a machine has been ready for long enough."""
        return member.ready and not member.deleting and now - member.since >= self.min_ready


class SetContext(msgspec.Struct, frozen=True):
    """The facts that the plan depends on besides the set and its machines."""

    # what comes before the ordinals in names
    prefix: str
    # the revision of the present template, and the one that machines below the partition have
    update: str
    current: str
    # names that machines of others have
    taken: Collection[str]
    now: float


class SetPlan(msgspec.Struct, frozen=True):
    """The steps, and the seconds until the next pass."""

    # revisions by ordinal
    make: Mapping[int, str] = {}
    delete: tuple[str, ...] = ()
    rewrite: tuple[str, ...] = ()
    wait: float | None = None
    # wanted names that others have
    collisions: tuple[str, ...] = ()
    # machines of the present revision that failed: they pause the update
    failed: tuple[str, ...] = ()


def rules(spec: VMSetSpec) -> SetRules:
    """Resolve the rules of a set. Where a rolling update might neither miss a machine nor have one too many, one may be missing."""
    strategy = spec.updateStrategy or SetUpdateStrategy()
    rolling = strategy.rollingUpdate or RollingUpdate()
    unavailable = _amount(rolling.maxUnavailable, spec.replicas, up=False)
    surge = _amount(rolling.maxSurge, spec.replicas, up=True)
    return SetRules(
        start=(spec.ordinals or Ordinals()).start,
        replicas=spec.replicas,
        strategy=strategy.type,
        parallel=rolling.podManagementPolicy == "Parallel",
        partition=rolling.partition or 0,
        unavailable=unavailable if unavailable or surge else 1,
        surge=surge,
        min_ready=float(spec.minReadySeconds or 0),
    )


def _amount(amount: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(amount, int):
        return amount
    share = replicas * int(amount.removesuffix("%")) / 100
    return math.ceil(share) if up else math.floor(share)


def plan(spec: VMSetSpec, members: Sequence[SetMember], context: SetContext) -> SetPlan:
    found = rules(spec)
    if found.strategy == RECREATE:
        old = [each for each in members if each.revision != context.update]
        if old:
            # Every machine goes before the first one comes.
            leaving = sorted((each for each in members if not each.deleting), key=lambda each: -each.ordinal)
            return SetPlan(delete=tuple(each.name for each in leaving if each in old or each.ordinal not in found.wanted))
    planner = _Planner(found, members, context)
    return planner.plan()


class _Planner:
    """One plan in the making."""

    def __init__(self, set_rules: SetRules, members: Sequence[SetMember], context: SetContext) -> None:
        self._rules = set_rules
        self._members = {each.ordinal: each for each in members}
        self._context = context
        self._available = {each.ordinal for each in members if set_rules.is_available(each, context.now)}
        self._failed = tuple(each.name for each in members if each.failed and each.revision == context.update and not each.deleting)
        self._surge = set_rules.surplus(self._surge_count())

    def plan(self) -> SetPlan:
        make, collisions = self._missing()
        delete = self._condemned()
        rewrite: list[str] = []
        if self._rules.strategy == ROLLING and not self._failed:
            replaced, rewrite = self._outdated()
            delete += replaced
        more = len(make) > BURST or len(delete) > BURST
        return SetPlan(
            make=dict(list(make.items())[:BURST]),
            delete=tuple(delete[:BURST]),
            rewrite=tuple(rewrite),
            wait=_NEXT_PASS_SECONDS if more else self._ripening(),
            collisions=tuple(collisions),
            failed=self._failed,
        )

    # --- surge ------------------------------------------------------------------------------------------------------------

    def _subject(self) -> list[SetMember | None]:
        """The wanted machines that an update concerns; None for one that is missing."""
        return [self._members.get(each) for each in self._rules.wanted if each >= self._rules.partition]

    def _surge_count(self) -> int:
        """The number of further machines that there are to be."""
        if self._rules.strategy != ROLLING:
            return 0
        existing = 0
        while (member := self._members.get(self._rules.start + self._rules.replicas + existing)) is not None:
            if member.revision != self._context.update:
                break
            existing += 1
        existing = min(self._rules.surge, existing)
        if self._failed:
            return existing
        subject = self._subject()
        unfinished = sum(each is None or each.revision != self._context.update or each.ordinal not in self._available for each in subject)
        if self._needs_surge(each for each in subject if each is not None and not each.deleting):
            return min(self._rules.surge, unfinished)
        return min(existing, unfinished)

    def _needs_surge(self, members: Iterable[SetMember]) -> bool:
        """Return whether machines are still to be replaced, or changed where none may be missing."""
        changes = {each.change for each in members}
        return TemplateChange.REPLACE in changes or (TemplateChange.IN_PLACE in changes and not self._rules.unavailable)

    # --- making and deleting ----------------------------------------------------------------------------------------------

    def _missing(self) -> tuple[dict[int, str], list[str]]:
        """The machines to make, with their revisions, and the wanted names that others have."""
        make: dict[int, str] = {}
        collisions: list[str] = []
        waits = False
        for ordinal in (*self._rules.wanted, *self._surge):
            name, member = self._name(ordinal), self._members.get(ordinal)
            if name in self._context.taken and member is None:
                collisions.append(name)
                waits = True
            elif member is None and (self._rules.parallel or not waits):
                make[ordinal] = self._revision(ordinal)
                waits = True
            elif ordinal not in self._available:
                waits = True
        return make, collisions

    def _name(self, ordinal: int) -> str:
        return f"{self._context.prefix}{ordinal}"

    def _revision(self, ordinal: int) -> str:
        below = self._rules.strategy == ROLLING and ordinal < self._rules.partition
        return self._context.current if below else self._context.update

    def _is_kept(self, member: SetMember) -> bool:
        return member.ordinal in self._rules.wanted or (member.ordinal in self._surge and member.revision == self._context.update)

    def _condemned(self) -> list[str]:
        """The machines to delete because the set is to have fewer, or others."""
        condemned = sorted((each for each in self._members.values() if not self._is_kept(each)), key=lambda each: -each.ordinal)
        alive = [each.name for each in condemned if not each.deleting]
        if self._rules.parallel:
            return alive
        return alive[:1] if len(alive) == len(condemned) else []

    # --- updating ---------------------------------------------------------------------------------------------------------

    def _outdated(self) -> tuple[list[str], list[str]]:
        """The machines to delete so that they are made anew, and those to change in place."""
        delete: list[str] = []
        rewrite: list[str] = []
        serving = sum(self._is_kept(each) and each.ordinal in self._available for each in self._members.values())
        budget = serving - (self._rules.replicas - self._rules.unavailable)
        subject = [each for each in self._subject() if each is not None and not each.deleting and each.revision != self._context.update]
        for each in sorted(subject, key=lambda each: -each.ordinal):
            cost = int(each.ordinal in self._available and each.change is not TemplateChange.METADATA)
            if cost and budget < cost:
                continue
            budget -= cost
            (delete if each.change is TemplateChange.REPLACE else rewrite).append(each.name)
        return delete, rewrite

    def _ripening(self) -> float | None:
        """Seconds until the next machine has been ready for long enough."""
        waits = [
            self._rules.min_ready - (self._context.now - each.since)
            for each in self._members.values()
            if each.ready and not each.deleting and each.ordinal not in self._available
        ]
        return max(0.1, min(waits)) if waits else None
