"""The writes for a machine: its objects, its disks, the right to copy an image, and the deletion of all of them. Each may be repeated."""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.dialects.stakater.controllers import targets
from paddock.dialects.stakater.controllers.reader import IMAGES, MACHINE, MachineObserver, ReconcilePass, StakaterCaches, images
from paddock.dialects.stakater.controllers.settings import StakaterSettings
from paddock.dialects.stakater.plan import conditions, disks, objects
from paddock.dialects.stakater.plan.conditions import READY, SUCCESS, ApplyBlocker, creating, no
from paddock.dialects.stakater.plan.disks import Growth
from paddock.dialects.stakater.plan.objects import BoundMachine, ClearStep, RemainingKinds
from paddock.dialects.stakater.plan.status import PassOutcome
from paddock.dialects.stakater.translate import to_kubevirt
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import ApiError, NotFound
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.service import Service
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet, ForeignObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.reference import InvolvedObject, is_owned
from paddock.kubernetes.runtime.unreadfields import UnreadFieldEvents
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.plan.machine.printable import condition

_LOG = logging.getLogger(__name__)
MANAGER = "paddock-stakater"
WRITE = WriteOptions(manager=MANAGER)
_APPLY = WriteOptions(manager=MANAGER, force=True)
_TARGETS: dict[type[Resource], Target[Any]] = {
    Secret: targets.SECRETS,
    kubevirt.VirtualMachine: targets.MACHINE_DATA,
    Service: targets.SERVICE_DATA,
}


class StakaterActions:
    def __init__(self, client: Client, caches: StakaterCaches, observer: MachineObserver) -> None:
        self._client = client
        self._caches = caches
        self.observer = observer

    # --- disks ------------------------------------------------------------------------------------------------------------

    async def grow(self, namespace: str, growth: Growth) -> None:
        """Have a claim ask for more."""
        seen = self._caches.classes.cache.get(Key("", growth.storage_class))
        if seen is not None and not seen.read(targets.CLASSES).allowVolumeExpansion:
            raise Terminal(
                f"cannot grow the claim {namespace}/{growth.name} to {growth.size}",
                why=f"the StorageClass {growth.storage_class} does not allow it (allowVolumeExpansion)",
                fix="allow it there, or make the disk as large again as it was",
            )
        await self._client.patch(targets.CLAIM_DATA, Key(namespace, growth.name), merge_patch(growth.patch), WRITE)

    async def guard_root(self, reconcile_pass: ReconcilePass, machine_uid: str) -> bool:
        """See to it that a root disk that was there before its machine does not go unnoticed; whether something was written."""
        seen = self._caches.disks.cache.get(Key(reconcile_pass.key.namespace, reconcile_pass.root))
        if seen is None or seen.meta.deleting or not any(each.uid == machine_uid for each in seen.meta.ownerReferences or ()):
            return False
        if disks.is_copy(seen.read(targets.DISKS)):
            return False
        return await finalizers.put_on(self._client, targets.DISK_DATA, seen.meta, disks.ROOT_FINALIZER) is not None

    async def release_roots(self, key: Key, *, kept: str = "") -> None:
        """Let the deleted DataVolumes of a machine go, except for the one that is kept."""
        for seen, _ in self.observer.labelled(key):
            if seen.meta.deleting and seen.key.name != kept:
                await finalizers.take_off(self._client, targets.DISK_DATA, seen.meta, disks.ROOT_FINALIZER)

    async def leave_roots(self, key: Key) -> None:
        """Let go of every DataVolume of a machine, also of those that stay."""
        for seen, _ in self.observer.labelled(key):
            # One that CDI does not let us write to is released when it is deleted.
            with contextlib.suppress(ApiError):
                await finalizers.take_off(self._client, targets.DISK_DATA, seen.meta, disks.ROOT_FINALIZER)

    async def prune(self, reconcile_pass: ReconcilePass, disk_names: Iterable[str], machine_uid: str) -> list[str]:
        """Delete the disks that were taken out of the spec; returns their names."""
        found = self.observer.labelled(reconcile_pass.key)
        instance = self.observer.observe(reconcile_pass).instance
        names = disks.surplus((volume for _, volume in found), tuple(disk_names), machine_uid, instance)
        for seen, volume in found:
            if volume.metadata.name in names:
                await delete_seen(self._client, targets.DISK_DATA, seen)
        return names

    # --- the right to copy ------------------------------------------------------------------------------------------------

    async def grant(self, source: str, namespace: str, product: str) -> None:
        """Let the machines of a namespace copy images out of another."""
        role, binding = disks.clone_rights(source, namespace, product)
        await self._client.apply(targets.ROLES, role, _APPLY)
        await self._client.apply(targets.ROLE_BINDINGS, binding, _APPLY)

    async def revoke(self, source: str, namespace: str, *, last: bool) -> None:
        """Nobody in the namespace copies from there any more; with `last` nobody at all."""
        doomed = [(targets.ROLE_BINDINGS, disks.clone_binding_name(namespace))]
        if last:
            doomed.append((targets.ROLES, disks.CLONE_ROLE))
        for target, name in doomed:
            try:
                await self._client.delete(target, Key(source, name))
            except NotFound:
                continue


class _Plan(msgspec.Struct):
    """The desired state of one machine."""

    bound: BoundMachine
    # as it should be
    machine: kubevirt.VirtualMachine
    resources: tuple[Resource, ...]
    # as it is; None: there is none that is ours
    found: kubevirt.VirtualMachine | None
    losses: tuple[Loss, ...]

    def wanted(self) -> list[DesiredObject]:
        """In the order in which it is applied."""
        made = (self.machine if isinstance(each, kubevirt.VirtualMachine) else each for each in self.resources)
        return [DesiredObject(_TARGETS[type(each)], objects.data_of(each)) for each in made]


class MachineApplier:
    """Applies what belongs to machines."""

    def __init__(
        self, client: Client, caches: StakaterCaches, actions: StakaterActions, recorder: EventRecorder, settings: StakaterSettings
    ) -> None:
        self._caches = caches
        self._actions = actions
        self._observer: MachineObserver = actions.observer
        self._recorder = recorder
        self._unread = UnreadFieldEvents(recorder)
        self._settings = settings
        self._rendering = Rendering(product=settings.product, architecture=settings.architecture)
        self._desired = DesiredSet(client, (caches.secrets, caches.machines, caches.services), manager=MANAGER)
        # the machines that it has carried out, each until it is gone
        self._known: dict[Key, InvolvedObject] = {}

    async def carry_out(self, reconcile_pass: ReconcilePass) -> bool:
        """Bring the machine to what it should be, and note what came of it; whether anything was written."""
        self._known[reconcile_pass.key] = reconcile_pass.about
        plan = self._plan(reconcile_pass)
        self._unread.tell(reconcile_pass.about, plan.losses)
        is_anew = plan.found is None or plan.found.metadata.deletionTimestamp is not None
        # What belonged to the machine before goes with it, and what was copied from it, with its labels, as it likes.
        await self._actions.release_roots(reconcile_pass.key, kept="" if is_anew else reconcile_pass.root)
        if not is_anew and await self._is_root_lost(reconcile_pass, plan):
            return True
        try:
            hold = self._hold(reconcile_pass, plan)
            if hold is None:
                return await self._apply(reconcile_pass, plan)
        except ForeignObject as error:
            # Somebody was faster with the name.
            hold = _taken(error)
        reconcile_pass.outcome = PassOutcome(synced=hold.synced, ready=hold.ready)
        return False

    def _plan(self, reconcile_pass: ReconcilePass) -> _Plan:
        registered = self._settings.bindings | self._caches.plugins()
        bound = objects.bound(reconcile_pass.vm, registered, self._settings.binding_fallback)
        # Nothing of a Stakater machine depends on other objects; what it refers to is checked by `conditions.blocker`.
        translated = to_kubevirt(bound.vm, ObjectSet(complete=True), self._rendering)
        resources = translated.value
        machine = disks.with_held_root(objects.noted(objects.machine_of(resources), bound), reconcile_pass.root)
        found = self._observer.machine(reconcile_pass)
        if disks.has_given_up_root(found, reconcile_pass.root):
            machine = disks.without_root(machine, reconcile_pass.root)
        return _Plan(bound, machine, resources, found, translated.losses)

    def made_of(self, reconcile_pass: ReconcilePass) -> tuple[Resource, ...]:
        """Everything that the machine becomes."""
        return self._plan(reconcile_pass).resources

    # --- what holds it ----------------------------------------------------------------------------------------------------

    def _hold(self, reconcile_pass: ReconcilePass, plan: _Plan) -> ApplyBlocker | None:
        found = plan.found
        if found is not None and found.metadata.deletionTimestamp is not None:
            step = creating("waiting until the virtual machine before is gone")
            return ApplyBlocker(step, step)
        self._desired.check(reconcile_pass.about, plan.wanted())
        uid = found.metadata.uid if found is not None else None
        in_the_way = disks.in_the_way(self._observer.disks(reconcile_pass.key.namespace, plan.machine), reconcile_pass.key.name, uid)
        return in_the_way or conditions.blocker(reconcile_pass.vm, plan.bound, found, self._observer.sources(reconcile_pass))

    async def _is_root_lost(self, reconcile_pass: ReconcilePass, plan: _Plan) -> bool:
        """Return whether the root disk is gone or going with its data; remove its template before the disk is released."""
        root, given_up = (
            self._observer.disk(Key(reconcile_pass.key.namespace, reconcile_pass.root)),
            disks.has_given_up_root(plan.found, reconcile_pass.root),
        )
        is_going = root.volume is not None and root.volume.metadata.deletionTimestamp is not None
        if not (is_going or given_up):
            return False
        is_lost = disks.is_lost(root)
        if is_lost and not given_up:
            plan.machine = disks.without_root(plan.machine, reconcile_pass.root)
            await self._desired.reach(reconcile_pass.about, plan.wanted())
        if is_going:
            await self._actions.release_roots(reconcile_pass.key)
        if is_lost:
            hold = disks.lost(reconcile_pass.root)
            reconcile_pass.outcome = PassOutcome(synced=hold.synced, ready=hold.ready)
        return is_lost

    # --- applying ---------------------------------------------------------------------------------------------------------

    async def _apply(self, reconcile_pass: ReconcilePass, plan: _Plan) -> bool:
        granted = await self._grant(reconcile_pass, plan)
        reached = await self._desired.reach(reconcile_pass.about, plan.wanted())
        done = [*(f"applied {each}" for each in reached.applied), *(f"deleted {each}" for each in reached.deleted)]
        done += await self._see_to_disks(reconcile_pass, plan)
        reconcile_pass.outcome = PassOutcome(synced=SUCCESS, applied=True)
        if done:
            _LOG.info("owned objects applied", extra={"step": "apply", "done": ", ".join(done)})
            self._recorder.tell(reconcile_pass.about, "Normal", "Created" if plan.found is None else "Updated", "; ".join(done))
        self._tell_fallback(reconcile_pass, plan)
        return granted or bool(done)

    def _tell_fallback(self, reconcile_pass: ReconcilePass, plan: _Plan) -> None:
        notes = (plan.found.metadata.annotations or {}) if plan.found is not None else {}
        if plan.bound.instead and notes.get(objects.FALLBACK) != plan.bound.note:
            why = "not registered, or its feature gate NetworkBindingPlugins is off (KubeVirt before 1.5)"
            note = f"the binding of these networks is {why}, and they have another instead: {plan.bound.note}"
            self._recorder.tell(reconcile_pass.about, "Warning", "BindingFallback", note)

    async def _see_to_disks(self, reconcile_pass: ReconcilePass, plan: _Plan) -> list[str]:
        """Disks that are there already grow, and are deleted where that is asked for; the root disk is guarded."""
        uid, done = plan.found.metadata.uid if plan.found is not None else None, []
        if not uid:
            return []
        for growth in disks.growths(self._observer.disks(reconcile_pass.key.namespace, plan.machine), self._caches.overhead()):
            await self._actions.grow(reconcile_pass.key.namespace, growth)
            done.append(f"grew {growth.name} to {growth.size}")
        if await self._actions.guard_root(reconcile_pass, uid):
            _LOG.debug("root disk protected from pruning", extra={"step": "disks"})
        if (reconcile_pass.vm.metadata.annotations or {}).get(disks.PRUNE) == "true":
            names = [name for name, _ in disks.wanted(plan.machine)]
            done += [
                f"deleted datavolumes.cdi.kubevirt.io {name}"
                for name in await self._actions.prune(reconcile_pass, [*names, reconcile_pass.root], uid)
            ]
        return done

    # --- the right to copy ------------------------------------------------------------------------------------------------

    async def _grant(self, reconcile_pass: ReconcilePass, plan: _Plan) -> bool:
        """Let the machine's disks be copied out of the namespace of its image, where that is wanted."""
        was = condition((reconcile_pass.vm.status.conditions if reconcile_pass.vm.status is not None else None) or (), READY)
        is_denied = was is not None and was.reason == "CloneNotAuthorized"
        source = reconcile_pass.vm.spec.parameters.dataSource.namespace
        if not self._settings.manage_clone_rbac or source == reconcile_pass.key.namespace or not (plan.found is None or is_denied):
            return False
        await self._actions.grant(source, reconcile_pass.key.namespace, self._settings.product)
        return True

    async def revoke(self, reconcile_pass: ReconcilePass) -> None:
        """The machine goes: rights that were made for it and that no other needs go, too."""
        source = reconcile_pass.vm.spec.parameters.dataSource.namespace
        if not self._settings.manage_clone_rbac or source == reconcile_pass.key.namespace:
            return
        others = {value: len(self._caches.fronts.cache.by(IMAGES, value)) for value in images(reconcile_pass.vm)}
        if others[f"{source} {reconcile_pass.key.namespace}"] <= 1:
            await self._actions.revoke(source, reconcile_pass.key.namespace, last=others[source] <= 1)

    def forget(self, key: Key) -> str:
        """The machine is gone; returns the UID it had, if it was ever looked at."""
        known = self._known.pop(key, None)
        if known is None:
            return ""
        self._desired.forget(known)
        self._unread.forget(known.uid)
        return known.uid


def _taken(error: ForeignObject) -> ApplyBlocker:
    return ApplyBlocker(no("NameConflict", str(error)), creating(f"the name {error.key.name} is taken"))


class MachineCleanup:
    """Clears away what a machine leaves."""

    def __init__(self, client: Client, caches: StakaterCaches, actions: StakaterActions, recorder: EventRecorder, clock: Clock) -> None:
        self._client = client
        self._caches = caches
        self._actions = actions
        self._recorder = recorder
        self._clock = clock
        # UIDs of machines whose deletion was called stalled
        self._reported: set[str] = set()

    async def step(self, reconcile_pass: ReconcilePass) -> bool:
        """Do what comes next; whether nothing is left."""
        if self._is_released(reconcile_pass):
            await self._actions.leave_roots(reconcile_pass.key)
            return True
        left = self._left(reconcile_pass)
        match objects.cleanup_step(left):
            case ClearStep.LET_GO:
                return True
            case ClearStep.DELETE_SERVICE:
                await self._delete(targets.SERVICE_DATA, self._owned(self._caches.services, reconcile_pass))
            case ClearStep.DELETE_MACHINE:
                await self._delete(targets.MACHINE_DATA, self._owned(self._caches.machines, reconcile_pass))
            case ClearStep.DELETE_DISKS:
                await self._delete(targets.DISK_DATA, self._disks(reconcile_pass))
            case ClearStep.DELETE_SECRETS:
                await self._delete(targets.SECRETS, self._owned(self._caches.secrets, reconcile_pass))
            case ClearStep.WAIT:
                # The disks follow their owner, and nothing is to hold them.
                await self._actions.release_roots(reconcile_pass.key)
        reconcile_pass.outcome = PassOutcome(
            ready=no("Deleting", f"waiting until {self._left(reconcile_pass).named() or left.named()} is gone")
        )
        return False

    def _is_released(self, reconcile_pass: ReconcilePass) -> bool:
        """Return whether everything is left where it is, because the deletion leaves the dependents.

        When the collector has finished with them, the generated machine is there and has no owner, and its disks are still its own.
        """
        found = self._caches.machines.cache.get(reconcile_pass.key)
        return finalizers.leaves_dependents(reconcile_pass.seen.meta) or (
            found is not None and not is_owned(found.meta, reconcile_pass.seen.meta.uid)
        )

    def stalled_in(self, reconcile_pass: ReconcilePass) -> float:
        """Return the seconds until the deletion has taken too long, and report it once when they are over."""
        deleted = ages.seconds_of(reconcile_pass.seen.meta.deletionTimestamp or "") or self._clock.seconds()
        due = objects.cleanup_stalls_at(deleted, reconcile_pass.vm.spec.parameters.terminationGracePeriodSeconds)
        rest = due - self._clock.seconds()
        if rest <= 0 and reconcile_pass.seen.meta.uid not in self._reported:
            self._reported.add(reconcile_pass.seen.meta.uid)
            left = self._left(reconcile_pass).named()
            note = f"the deletion takes longer than it should; there is still {left}. Nothing is removed by force"
            self._recorder.tell(reconcile_pass.about, "Warning", "DeletionStalled", note)
        return max(rest, 0.0)

    def forget(self, uid: str) -> None:
        self._reported.discard(uid)

    async def _delete(self, target: Target[Data], objects: Iterable[CachedObject]) -> None:
        for seen in objects:
            await delete_seen(self._client, target, seen)

    def _left(self, reconcile_pass: ReconcilePass) -> RemainingKinds:
        services, machines = self._owned(self._caches.services, reconcile_pass), self._owned(self._caches.machines, reconcile_pass)
        secrets, volumes = self._owned(self._caches.secrets, reconcile_pass), list(self._disks(reconcile_pass))
        instance = self._caches.instances.cache.get(reconcile_pass.key)
        # An instance that somebody else made is nothing that is waited for.
        instances = [instance] if instance is not None and _made_by_machine(instance) else []
        claims = [each for each in self._caches.claims.cache.by(MACHINE, str(reconcile_pass.key)) if _has_owner(each, "DataVolume")]
        kinds_of = {"services": services, "machines": machines, "volumes": volumes, "secrets": secrets}
        return RemainingKinds(
            services=_names(services),
            machines=_names(machines),
            instances=_names(instances),
            volumes=_names(volumes),
            claims=_names(claims),
            secrets=_names(secrets),
            standing=frozenset(kind for kind, found in kinds_of.items() if any(not each.meta.deleting for each in found)),
        )

    def _owned(self, informer: Informer, reconcile_pass: ReconcilePass) -> list[CachedObject]:
        """Return the objects that the machine controls."""
        found = informer.cache.by("owner", reconcile_pass.seen.meta.uid)
        return [each for each in found if each.meta.owner is not None and each.meta.owner.uid == reconcile_pass.seen.meta.uid]

    def _disks(self, reconcile_pass: ReconcilePass) -> Iterator[CachedObject]:
        """The DataVolumes of the generated machine, and those that lost their owner."""
        for seen in self._caches.disks.cache.by(MACHINE, str(reconcile_pass.key)):
            owner = seen.meta.owner
            if owner is None or (owner.kind, owner.name) == (targets.MACHINES.kind, reconcile_pass.key.name):
                yield seen


def _made_by_machine(seen: CachedObject) -> bool:
    return seen.meta.owner is not None and (seen.meta.owner.group, seen.meta.owner.kind) == (targets.MACHINES.group, targets.MACHINES.kind)


def _has_owner(seen: CachedObject, kind: str) -> bool:
    return seen.meta.owner is not None and seen.meta.owner.kind == kind


def _names(objects: Iterable[CachedObject]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.key.name for each in objects))
