"""Making of a machine what it should be: holds, then Secrets, the generated machine and the Service, then its disks."""

import logging
from typing import Any

import msgspec

from paddock.client.client import Client
from paddock.client.target import Key, Target
from paddock.controllers.stakater import kinds
from paddock.controllers.stakater.actions import MANAGER, StakaterActions
from paddock.controllers.stakater.caches import IMAGES, StakaterCaches, images
from paddock.controllers.stakater.reader import MachineObserver, ReconcilePass
from paddock.controllers.stakater.settings import StakaterSettings
from paddock.dialects.core.secret import Secret
from paddock.dialects.core.service import Service
from paddock.dialects.kubevirt import virtualmachine as kubevirt
from paddock.meta.objects import Resource
from paddock.meta.rendering import Rendering
from paddock.meta.translated import Loss
from paddock.meta.world import ObjectSet
from paddock.plan.machine.printable import condition
from paddock.plan.stakater import bindings, disks, holds, objects
from paddock.plan.stakater.bindings import BoundMachine
from paddock.plan.stakater.conditions import READY, SUCCESS, ApplyBlocker, creating, no
from paddock.plan.stakater.status import PassOutcome
from paddock.runtime.controller import EventRecorder
from paddock.runtime.desired import DesiredObject, DesiredSet, ForeignObject
from paddock.runtime.reference import InvolvedObject
from paddock.runtime.unreadfields import UnreadFieldEvents
from paddock.translate.stakater import to_kubevirt

_LOG = logging.getLogger(__name__)
_TARGETS: dict[type[Resource], Target[Any]] = {
    Secret: kinds.SECRETS,
    kubevirt.VirtualMachine: kinds.MACHINE_DATA,
    Service: kinds.SERVICE_DATA,
}


class _Plan(msgspec.Struct):
    """What is wanted of one machine."""

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
        self, client: Client, caches: StakaterCaches, acts: StakaterActions, teller: EventRecorder, settings: StakaterSettings
    ) -> None:
        self._caches = caches
        self._acts = acts
        self._eyes: MachineObserver = acts.eyes
        self._teller = teller
        self._unread = UnreadFieldEvents(teller)
        self._settings = settings
        self._rendering = Rendering(product=settings.product, architecture=settings.architecture)
        self._desired = DesiredSet(client, (caches.secrets, caches.machines, caches.services), manager=MANAGER)
        # who was looked at, to be forgotten when it is gone
        self._known: dict[Key, InvolvedObject] = {}

    async def carry_out(self, look: ReconcilePass) -> bool:
        """Bring the machine to what it should be, and note what came of it; whether anything was written."""
        self._known[look.key] = look.about
        plan = self._plan(look)
        self._unread.tell(look.about, plan.losses)
        if plan.found is None or plan.found.metadata.deletionTimestamp is not None:
            # What belonged to the machine before goes with it.
            await self._acts.release_roots(look.key, going=True)
        elif await self._is_root_lost(look, plan):
            return True
        try:
            hold = self._hold(look, plan)
            if hold is None:
                return await self._apply(look, plan)
        except ForeignObject as error:
            # Somebody was faster with the name.
            hold = _taken(error)
        look.came = PassOutcome(synced=hold.synced, ready=hold.ready)
        return False

    def _plan(self, look: ReconcilePass) -> _Plan:
        registered = self._settings.bindings | self._caches.plugins()
        bound = bindings.bound(look.vm, registered, self._settings.binding_fallback)
        # Nothing of a Stakater machine depends on other objects; what it refers to is looked at by `holds`.
        translated = to_kubevirt(bound.vm, ObjectSet(complete=True), self._rendering)
        resources = translated.value
        machine, found = objects.noted(objects.machine_of(resources), bound), self._eyes.machine(look)
        if disks.has_given_up_root(found, look.root):
            machine = disks.without_root(machine, look.root)
        return _Plan(bound, machine, resources, found, translated.losses)

    def made_of(self, look: ReconcilePass) -> tuple[Resource, ...]:
        """Everything that the machine becomes."""
        return self._plan(look).resources

    # --- what holds it ----------------------------------------------------------------------------------------------------

    def _hold(self, look: ReconcilePass, plan: _Plan) -> ApplyBlocker | None:
        found = plan.found
        if found is not None and found.metadata.deletionTimestamp is not None:
            step = creating("waiting until the virtual machine before is gone")
            return ApplyBlocker(step, step)
        self._desired.check(look.about, plan.wanted())
        uid = found.metadata.uid if found is not None else None
        in_the_way = disks.in_the_way(self._eyes.disks(look.key.namespace, plan.machine), look.key.name, uid)
        return in_the_way or holds.hold(look.vm, plan.bound, found, self._eyes.sources(look))

    async def _is_root_lost(self, look: ReconcilePass, plan: _Plan) -> bool:
        """Whether the root disk is gone or going with its data; its template is taken out before it is let go."""
        root, given_up = self._eyes.disk(Key(look.key.namespace, look.root)), disks.has_given_up_root(plan.found, look.root)
        is_going = root.volume is not None and root.volume.metadata.deletionTimestamp is not None
        if not (is_going or given_up):
            return False
        is_lost = disks.is_lost(root)
        if is_lost and not given_up:
            plan.machine = disks.without_root(plan.machine, look.root)
            await self._desired.reach(look.about, plan.wanted())
        if is_going:
            await self._acts.release_roots(look.key, going=True)
        if is_lost:
            hold = disks.lost(look.root)
            look.came = PassOutcome(synced=hold.synced, ready=hold.ready)
        return is_lost

    # --- applying ---------------------------------------------------------------------------------------------------------

    async def _apply(self, look: ReconcilePass, plan: _Plan) -> bool:
        granted = await self._grant(look, plan)
        reached = await self._desired.reach(look.about, plan.wanted())
        done = [*(f"applied {each}" for each in reached.applied), *(f"deleted {each}" for each in reached.deleted)]
        done += await self._see_to_disks(look, plan)
        look.came = PassOutcome(synced=SUCCESS, applied=True)
        if done:
            _LOG.info("owned objects applied", extra={"step": "apply", "done": ", ".join(done)})
            self._teller.tell(look.about, "Normal", "Created" if plan.found is None else "Updated", "; ".join(done))
        self._tell_fallback(look, plan)
        return granted or bool(done)

    def _tell_fallback(self, look: ReconcilePass, plan: _Plan) -> None:
        notes = (plan.found.metadata.annotations or {}) if plan.found is not None else {}
        if plan.bound.instead and notes.get(bindings.FALLBACK) != plan.bound.note:
            note = f"the binding of these networks is not registered, and they have another instead: {plan.bound.note}"
            self._teller.tell(look.about, "Warning", "BindingFallback", note)

    async def _see_to_disks(self, look: ReconcilePass, plan: _Plan) -> list[str]:
        """Disks that are there already grow, and are deleted where that is asked for; the root disk is guarded."""
        uid, done = plan.found.metadata.uid if plan.found is not None else None, []
        if not uid:
            return []
        for growth in disks.growths(self._eyes.disks(look.key.namespace, plan.machine), self._caches.overhead()):
            await self._acts.grow(look.key.namespace, growth)
            done.append(f"grew {growth.name} to {growth.size}")
        if await self._acts.guard_root(look, uid):
            _LOG.debug("root disk protected from pruning", extra={"step": "disks"})
        if (look.vm.metadata.annotations or {}).get(disks.PRUNE) == "true":
            names = [name for name, _ in disks.wanted(plan.machine)]
            done += [f"deleted datavolumes.cdi.kubevirt.io {name}" for name in await self._acts.prune(look, [*names, look.root], uid)]
        return done

    # --- the right to copy ------------------------------------------------------------------------------------------------

    async def _grant(self, look: ReconcilePass, plan: _Plan) -> bool:
        """Let the machine's disks be copied out of the namespace of its image, where that is wanted."""
        was = condition((look.vm.status.conditions if look.vm.status is not None else None) or (), READY)
        is_denied = was is not None and was.reason == "CloneNotAuthorized"
        source = look.vm.spec.parameters.dataSource.namespace
        if not self._settings.manage_clone_rbac or source == look.key.namespace or not (plan.found is None or is_denied):
            return False
        await self._acts.grant(source, look.key.namespace, self._settings.product)
        return True

    async def revoke(self, look: ReconcilePass) -> None:
        """The machine goes: rights that were made for it and that no other needs go, too."""
        source = look.vm.spec.parameters.dataSource.namespace
        if not self._settings.manage_clone_rbac or source == look.key.namespace:
            return
        others = {value: len(self._caches.fronts.cache.by(IMAGES, value)) for value in images(look.vm)}
        if others[f"{source} {look.key.namespace}"] <= 1:
            await self._acts.revoke(source, look.key.namespace, last=others[source] <= 1)

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
