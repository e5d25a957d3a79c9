"""The controller: it brings a VirtualMachineInstance and its machine together, one reconcile at a time.

    instance        machine           action
    new             none              prepare (or report what is missing), define, start
    receives        none or defined   prepare and define; its guest comes from another server
    wanted          live              carry out what changed in the spec; watch the guest
    to be suspended running           write its memory to disk
    wanted          suspended         resume it
    deleted         live              stop it, with the grace that the instance gives it
    any             ended             report its end; then release what it held; then the object

The id of the machine is the UID of the instance. What outlives a run (addresses, firmware variables, TPM) belongs to the UID of its owner.
The sweeper ends machines without an instance.
"""

import contextlib
from collections.abc import Callable, Mapping

import msgspec

from paddock.base.clock import Clock
from paddock.engine.consolelogs import ConsoleLogs
from paddock.engine.engine import Engine
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.unmanaged import UnmanagedMachine
from paddock.engine.networks.nics import HostBridge
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, ControllerSettings, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.statusdelays import StatusDelays
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.virtualmachineinstance.continuing import GuestContinuations
from paddock.kubevirt.controllers.virtualmachineinstance.disks import ClaimUsers, DiskLayers, ImagePulls
from paddock.kubevirt.controllers.virtualmachineinstance.guest import GuestMonitors
from paddock.kubevirt.controllers.virtualmachineinstance.hostdirectories import HostDirectories
from paddock.kubevirt.controllers.virtualmachineinstance.livechanges import GuestMemoryDumps, LiveChangeParts, LiveChanges
from paddock.kubevirt.controllers.virtualmachineinstance.nics import InstanceNics, Resolve
from paddock.kubevirt.controllers.virtualmachineinstance.preparer import Preparer
from paddock.kubevirt.controllers.virtualmachineinstance.quotas import NamespaceBounds, PlaceRequest
from paddock.kubevirt.controllers.virtualmachineinstance.reader import CredentialReader, InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.receiving import GuestReceivers
from paddock.kubevirt.controllers.virtualmachineinstance.scheduler import Scheduler
from paddock.kubevirt.controllers.virtualmachineinstance.seeder import Seeder
from paddock.kubevirt.controllers.virtualmachineinstance.status import InstanceObserver, InstancePlacing, ObservedChanges, label_changes
from paddock.kubevirt.controllers.virtualmachineinstance.suspending import GuestSuspensions
from paddock.kubevirt.controllers.virtualmachineinstance.sweeper import Sweeper, UpgradeWatch
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES, MACHINES, reference_to
from paddock.kubevirt.controllers.virtualmachineinstance.volumemoves import VolumeMoves
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance import identity
from paddock.kubevirt.plan.instance.events import STOPPING, UNHEALTHY, InstanceEvent, events_between
from paddock.kubevirt.plan.instance.grace import grace_of
from paddock.kubevirt.plan.instance.phases import COMING, FINAL, PASSING_SECONDS, RUNNING, SUCCEEDED, is_passing, seen_seconds
from paddock.kubevirt.plan.instance.prerequisites import MissingPrerequisite, StartBlocker
from paddock.kubevirt.plan.instance.report import status_of
from paddock.kubevirt.plan.instance.suspension import is_wished

INSTANCE_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
MACHINE_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
# Reconciles wait for disks, the packet filter and commits more than they compute. Those that wait together share both, and with enough
# workers a stop never queues behind what machines that ended still release.
_WORKERS = 128
# Nobody tells when the file of an unmanaged machine is put back, or its QEMU ends.
_UNMANAGED_SECONDS = 5.0
# The counter of reconciles: its name, its help and its labels.
RECONCILES = ("kubevirt_vmi_sync_total", "How often a running machine was reconciled.", ("namespace", "name"))


class NodeIdentity(msgspec.Struct, frozen=True):
    """The node that machines run on, as the API knows it."""

    node: str
    # names inside end with it
    domain: str
    # the certificate of the server's authority
    authority: bytes
    # all nodes, where there are several; its guests are simulated then
    nodes: tuple[str, ...] = ()
    simulated: bool = False


class ReconcilerParts(msgspec.Struct, frozen=True):
    """The parts that act on machines and report."""

    preparer: Preparer
    monitors: GuestMonitors
    changes: LiveChanges
    observer: InstanceObserver
    recorder: EventRecorder
    consoles: ConsoleLogs
    suspensions: GuestSuspensions
    continuations: GuestContinuations
    receivers: GuestReceivers
    bounds: NamespaceBounds


class InstanceReconciler(KindReconciler):
    def __init__(self, client: Client, informer: Informer, machines: Machines, clock: Clock, parts: ReconcilerParts) -> None:
        super().__init__(informer)
        self._client = client
        self._statuses = StatusWriter(client, INSTANCES, informer.expectations)
        self._resting = StatusDelays()
        self._machines = machines
        self._clock = clock
        self._preparer = parts.preparer
        self._monitors = parts.monitors
        self._changes = parts.changes
        self._observer = parts.observer
        self._recorder = parts.recorder
        self._consoles = parts.consoles
        self._suspensions = parts.suspensions
        self._continuations = parts.continuations
        self._receivers = parts.receivers
        self._bounds = parts.bounds

    async def forget(self, key: Key) -> None:
        """Drop what is kept for an instance that is gone."""
        self._preparer.forget(key)
        self._bounds.forget(key)
        self._resting.end(key)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Stop the guest, and report its end like each other state."""
        return await self.work(seen)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one instance and its machine together."""
        machine = self._machines.get(seen.meta.uid) or await self._machines.recover(seen.meta.uid)
        comes = machine is not None and machine.observed.phase in COMING and not seen.meta.deleting
        if comes and self._resting.rests(seen.key) and (left := self._resting.left(seen.key, PASSING_SECONDS)):
            # It needs nothing, and there is nothing to say yet.
            return again(left)
        instance = seen.read(INSTANCES)
        blocker, pause = None, None
        place = PlaceRequest(self._bounds, self._statuses, self._clock, seen)
        try:
            machine = await self._act(instance, machine, place)
        except MissingPrerequisite as missing:
            blocker, pause = missing.blocker, missing.again
        if place.seen is not seen:
            seen, instance = place.seen, place.seen.read(INSTANCES)
        try:
            left = await self._report(seen, instance, machine, blocker)
        except Forbidden as error:
            if machine is not None:
                raise
            # It waits for the host and would have its Pod meanwhile, which the quotas of its namespace do not admit.
            refused = self._bounds.refused(seen, error)
            pause = refused.again
            left = await self._report(seen, instance, machine, refused.blocker)
        waits = [left] if left else []
        if self._machines.unmanaged(seen.meta.uid) is not None:
            waits.append(_UNMANAGED_SECONDS)
        if (retry := self._changes.retry_seconds(seen.meta.uid)) is not None:
            waits.append(retry)
        if pause is not None:
            waits.append(max(pause, 0.05))
        return again(min(waits)) if waits else DONE

    # --- actions ----------------------------------------------------------------------------------------------------------

    async def _act(self, instance: VirtualMachineInstance, machine: QemuMachine | None, place_request: PlaceRequest) -> QemuMachine | None:
        """Do what the state asks for; return the machine that is there afterwards."""
        awaits = self._receivers.awaits(instance, machine)
        if _phase(instance) in FINAL or (machine is not None and machine.observed.phase == "ended" and not awaits):
            return machine
        left = self._machines.unmanaged(instance.metadata.uid or "")
        if left is not None and left.holds_disks:
            await self._leave(instance, left)
            return None
        if machine is not None and machine.observed.live:
            # After a start of Paddock the networks do not know the interfaces that are in use. One that shall end needs none.
            with contextlib.suppress(*[MissingPrerequisite] if instance.metadata.deletionTimestamp else []):
                await self._preparer.reconnect(instance)
        if instance.metadata.deletionTimestamp:
            await self._stop(instance, machine)
            return machine
        if awaits:
            return await self._receivers.expect(instance, machine, place_request)
        if machine is None or machine.observed.phase == "defined":
            # One that ran and is not known any more is lost, not new.
            return machine if machine is None and _phase(instance) == RUNNING else await self._start(instance, place_request)
        if machine.observed.phase == "suspended":
            await self._keep_suspended(instance, machine)
        elif machine.observed.phase == "running":
            await self._go_on(instance, machine)
        return machine

    async def _leave(self, instance: VirtualMachineInstance, left: UnmanagedMachine) -> None:
        """Leave a machine alone that cannot be managed. Its guest keeps its network; a saved one goes with its instance."""
        if left.lives:
            await self._preparer.reconnect(instance)
        elif instance.metadata.deletionTimestamp:
            self._machines.discard(left.directory.id)

    async def _keep_suspended(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Nobody asks a guest that is on disk anything, until it is wanted again."""
        await self._monitors.drop(machine.id)
        if not is_wished(instance.metadata.annotations):
            await self._suspensions.resume(instance, machine, self._machines)

    async def _start(self, instance: VirtualMachineInstance, place_request: PlaceRequest) -> QemuMachine:
        place_request.check()
        try:
            config = await self._preparer.prepare(instance, place_request.ask)
            machine = await self._machines.define(instance.metadata.uid or "", config)
            # From here on no merge takes what it is about to open.
            await self._preparer.check_disks(config)
            await self._continuations.begin(instance, machine)
            paused, priority = instance.spec.startStrategy == "Paused", self._preparer.priority(instance)
            await machine.start(paused=paused, priority=priority, grace=grace_of(instance))
            return machine
        finally:
            self._preparer.started(instance)

    async def _go_on(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        self._suspensions.runs(machine.id)
        if is_wished(instance.metadata.annotations):
            self._suspensions.begin(instance, machine)
        elif self._monitors.of(instance, machine).dead:
            self._record(instance, UNHEALTHY)
            await machine.stop(0)
        else:
            await self._changes.carry_out(instance, machine)

    async def _stop(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> None:
        """Have the guest of a deleted instance shut down, within the time it was given. A suspended one is discarded."""
        if machine is None or not machine.observed.holds_disks:
            return
        grace = grace_of(instance)
        if machine.observed.phase == "suspended":
            grace = 0
        elif machine.observed.handed == "offered":
            # Another server says whether it still has a guest.
            return
        elif machine.observed.phase != "stopping":
            self._record(instance, STOPPING)
        elif machine.observed.deadline <= self._clock.seconds() + grace:
            # It stops already, and in time.
            return
        await machine.stop(grace)

    # --- report -----------------------------------------------------------------------------------------------------------

    async def _report(
        self, seen: CachedObject, instance: VirtualMachineInstance, machine: QemuMachine | None, blocker: StartBlocker | None
    ) -> float:
        """Write the status if it changed; return the seconds that it still rests. After the run, release everything, the object last."""
        deleting = bool(instance.metadata.deletionTimestamp)
        before = instance.status or VirtualMachineInstanceStatus()
        observed = self._observer.observe(instance, machine, blocker, ages.timestamp(self._clock.seconds()))
        status = status_of(instance, observed)
        if deleting and status.phase not in FINAL and (observed.observed is None or observed.observed.phase == "defined"):
            # It never ran: there is no end to wait for.
            status = msgspec.structs.replace(status, phase=SUCCEEDED)
        changed, labels = status != before, label_changes(seen.meta.labels or {}, status)
        passing = changed and not deleting and is_passing(before.phase or "", status.phase or "")
        waits = passing and (blocker is None or blocker.kind == "volumes")
        if waits and (left := self._resting.left(seen.key, PASSING_SECONDS)):
            return left
        self._resting.end(seen.key)
        if (changed or labels) and (written := await self._statuses.write(seen, status, labels=labels)) is not None:
            seen = written
            for event in events_between(before, status, observed.observed):
                self._record(instance, event)
        if status.phase in FINAL:
            await self._release(instance, machine)
            if deleting:
                # What belongs to a machine shows its end in the status of that.
                asked = not seen.meta.ownerReferences and grace_of(instance) > 0
                if left := seen_seconds(status.phaseTransitionTimestamps, self._clock.seconds(), asked=asked):
                    return left
                await self._finalize(seen)
        return 0.0

    def _record(self, instance: VirtualMachineInstance, event: InstanceEvent) -> None:
        self._recorder.tell(reference_to(instance), event.kind, event.reason, event.note)

    async def _release(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> None:
        """Release what the machine held: its monitor, its directory, its taps, its scratch files."""
        await self._monitors.drop(instance.metadata.uid or "")
        if machine is not None:
            if machine.observed.live:
                return
            self._consoles.keep(identity.owner_of(instance), machine.directory)
            await machine.forget()
        elif (left := self._machines.unmanaged(instance.metadata.uid or "")) is not None:
            if left.lives:
                return
            self._consoles.keep(identity.owner_of(instance), left.directory)
            self._machines.discard(left.directory.id)
        self._changes.forget(instance.metadata.uid or "")
        self._suspensions.forget(instance.metadata.uid or "")
        self._receivers.forget(instance.metadata.uid or "")
        await self._preparer.release(instance)

    async def _finalize(self, seen: CachedObject) -> None:
        """Remove our finalizers from the object. One without a machine above it has the other controller's, too."""
        held = seen.meta.finalizers or ()
        if seen.meta.ownerReferences and MACHINE_FINALIZER in held:
            # Its owner takes note of the end first, which brings us here again. Two writers at once would only conflict.
            return
        kept = [each for each in held if each not in (INSTANCE_FINALIZER, MACHINE_FINALIZER)]
        if len(kept) == len(held):
            return
        metadata = {"finalizers": kept or None, "resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid}
        try:
            written = await self._client.patch_raw(INSTANCES, seen.key, merge_patch({"metadata": metadata}))
        except NotFound:
            return
        self._informer.expectations.wrote(CachedObject.of(written))


def _phase(instance: VirtualMachineInstance) -> str:
    return (instance.status.phase if instance.status is not None else None) or ""


# --- wiring ---------------------------------------------------------------------------------------------------------------


class InstanceController(msgspec.Struct, frozen=True):
    """The controller, and what runs beside it."""

    controller: Controller
    sweeper: Sweeper
    upgrades: UpgradeWatch
    monitors: GuestMonitors
    scheduler: Scheduler
    receivers: GuestReceivers


class ReconcileRequests:
    """Requests to reconcile an instance, from the engine and from tasks of this controller. Listeners put the keys into their queue.

    The parts that make requests come before the `Controller` that serves them, because its reconciler consists of them.
    """

    def __init__(self, instances: Informer, sweeper: Sweeper) -> None:
        self._instances = instances
        self._sweeper = sweeper
        self._listeners: list[Callable[[Key], None]] = []
        instances.cache.index("uid", lambda seen: (seen.meta.uid,))

    def listen(self, listener: Callable[[Key], None]) -> None:
        """Call this with the key of each instance that is requested."""
        self._listeners.append(listener)

    def instance(self, key: Key) -> None:
        for listener in self._listeners:
            listener(key)

    def machine(self, uid: str) -> None:
        """Request the instance of a machine; the sweeper ends a machine without one."""
        found = self._instances.cache.by("uid", uid)
        for seen in found:
            self.instance(seen.key)
        if not found:
            self._sweeper.request()


def no_definitions(instance: VirtualMachineInstance) -> Mapping[str, HostBridge | str]:
    """Resolve networks where no NetworkAttachmentDefinitions are served."""
    names = {each.name: each.multus.networkName for each in instance.spec.networks or () if each.multus is not None}
    return {name: f"the NetworkAttachmentDefinition {definition} does not exist" for name, definition in names.items()}


def wire(program: ControllerManager, engine: Engine, node_identity: NodeIdentity, resolve: Resolve = no_definitions) -> InstanceController:
    """Add the controller to a program. Each part is complete when it is made, from those above it."""
    informers, machinery, recorder = program.informers, program.machinery, program.recorder
    instances = informers.of(INSTANCES)
    sweeper = Sweeper(engine, instances, informers.of(MACHINES))
    requests = ReconcileRequests(instances, sweeper)
    objects = InstanceReferences(informers, requests.instance)
    credentials = CredentialReader(objects)
    monitors = GuestMonitors(engine.networks, credentials, requests.machine)
    nodes = node_identity.nodes or (node_identity.node,)
    scheduler = Scheduler(informers, engine, nodes)
    seeder = Seeder(program.client, objects, credentials, node_identity.authority)
    pulls = ImagePulls(machinery.chance, requests.machine)
    disks = DiskLayers(engine, objects, seeder, ClaimUsers(instances, engine), pulls)
    nics = InstanceNics(engine.networks, resolve, node_identity.domain)
    preparer = Preparer(engine, objects, scheduler, (disks, HostDirectories(engine.settings, objects)), nics, recorder)
    dumps = GuestMemoryDumps(engine.volumes, objects, machinery.clock, requests.machine)
    parts_of_changes = LiveChangeParts(dumps, VolumeMoves(engine.volumes, objects))
    changes = LiveChanges(engine.volumes, preparer, objects, nics, recorder, parts_of_changes)
    suspensions = GuestSuspensions(program.client, preparer, recorder, machinery.clock, requests.machine)
    placing = InstancePlacing(scheduler.node_of, len(nodes), node_identity.simulated)
    receivers = GuestReceivers(preparer, engine.machines)
    observer = InstanceObserver(placing, engine, objects, nics, monitors, ObservedChanges(changes, suspensions, receivers))
    bounds = NamespaceBounds(informers)
    continuations = GuestContinuations(engine)
    parts = ReconcilerParts(preparer, monitors, changes, observer, recorder, engine.consoles, suspensions, continuations, receivers, bounds)
    reconciler = InstanceReconciler(program.client, instances, engine.machines, machinery.clock, parts)
    reconciles = machinery.metrics.counter(*RECONCILES)

    async def counted(key: Key) -> Outcome:
        reconciles.inc(*key)
        return await reconciler.reconcile(key)

    settings = ControllerSettings(workers=_WORKERS)
    controller = Controller("virtualmachineinstances", instances, counted, machinery=machinery, recorder=recorder, settings=settings)
    for informer, keys in (*objects.watched, *scheduler.watched, *bounds.watched):
        controller.watch(informer, keys)
    requests.listen(controller.offer)
    engine.machines.listen(monitors.agent_changed)
    engine.machines.listen(requests.machine)
    program.add(controller)
    return InstanceController(controller, sweeper, UpgradeWatch(engine, requests.machine), monitors, scheduler, receivers)
