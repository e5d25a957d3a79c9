"""Putting the controller of VirtualMachineInstances together."""

from collections.abc import Mapping
from dataclasses import dataclass

from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance.credentials import CredentialReader
from paddock.controllers.virtualmachineinstance.disks import DiskLayers, PendingPulls
from paddock.controllers.virtualmachineinstance.events import MachineEvents
from paddock.controllers.virtualmachineinstance.followers import Followers
from paddock.controllers.virtualmachineinstance.instances import InstanceReconciler, ReconcilerParts
from paddock.controllers.virtualmachineinstance.kinds import INSTANCES, MACHINES
from paddock.controllers.virtualmachineinstance.livechanges import LiveChanges
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.controllers.virtualmachineinstance.memorydumps import Dumps
from paddock.controllers.virtualmachineinstance.nics import Cards, Resolve
from paddock.controllers.virtualmachineinstance.observer import InstanceObserver
from paddock.controllers.virtualmachineinstance.preparer import Preparer
from paddock.controllers.virtualmachineinstance.pulls import Pulls
from paddock.controllers.virtualmachineinstance.scheduler import Scheduler
from paddock.controllers.virtualmachineinstance.seeder import Seeder
from paddock.controllers.virtualmachineinstance.sweeper import Sweeper
from paddock.controllers.virtualmachineinstance.upgrades import Upgrades
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.engine.engine import Engine
from paddock.engine.networks.nics import HostBridge
from paddock.plan.instance.brief import BY_CLAIM, claim_places
from paddock.plan.instance.volumes import claim_of
from paddock.runtime.controller import Controller, ControllerSettings, Outcome
from paddock.runtime.informer import Informer
from paddock.runtime.program import ControllerManager

# Reconciles wait for disks and for QEMU more than they compute.
_WORKERS = 8


@dataclass(frozen=True)
class NodeIdentity:
    """Where machines run, as the API knows it."""

    node: str
    # names inside end with it
    domain: str
    # the certificate of the server's authority
    authority: bytes


@dataclass(frozen=True)
class InstanceController:
    """The controller, and what runs beside it."""

    controller: Controller
    sweeper: Sweeper
    upgrades: Upgrades
    followers: Followers


def nothing_known(instance: VirtualMachineInstance) -> Mapping[str, HostBridge | str]:
    """No definitions of networks."""
    names = {each.name: each.multus.networkName for each in instance.spec.networks or () if each.multus is not None}
    return {name: f"the NetworkAttachmentDefinition {definition} does not exist" for name, definition in names.items()}


def assembled(program: ControllerManager, engine: Engine, place: NodeIdentity, resolve: Resolve = nothing_known) -> InstanceController:
    """The controller with everything it works with."""
    informers, machinery = program.informers, program.machinery
    instances = informers.of(INSTANCES)
    instances.cache.index("uid", lambda seen: (seen.meta.uid,))
    lookups, placing, telling = Lookups(informers), Scheduler(informers, place.node), MachineEvents(program.recorder)
    keyring = CredentialReader(lookups)
    wake = ReconcileTrigger(instances)
    cards = Cards(engine.networks, resolve, place.domain)
    seeder = Seeder(program.client, lookups, keyring, place.authority)
    disks = DiskLayers(
        engine.images, engine.volumes, lookups, seeder, PendingPulls(Pulls(machinery, wake.machine), Pulls(machinery, wake.machine))
    )
    disks.users = ClaimUsers(instances, engine).of
    disks.allowed_host_paths = engine.settings.host_paths
    preparer = Preparer(engine, lookups, placing, disks, cards, telling)
    followers = Followers(engine.networks, keyring, wake.machine)
    dumps = Dumps(engine.volumes, lookups, machinery.clock, wake.machine)
    changes = LiveChanges(engine, preparer, lookups, cards, telling, dumps)
    seeing = InstanceObserver(place.node, machinery.clock, lookups, cards, followers)
    seeing.plugging, seeing.dumps, seeing.overhead = changes.waiting, dumps.known, preparer.overhead
    seeing.refused = changes.refused
    seeing.why_emulated, seeing.machine_type = preparer.why_emulated, preparer.machine_type
    reconciler = InstanceReconciler(program.client, instances, engine, ReconcilerParts(preparer, followers, changes, seeing, telling))
    looks = machinery.metrics.counter("kubevirt_vmi_sync_total", "How often a running machine was looked at.", ("namespace", "name"))

    async def reconcile(key: Key) -> Outcome:
        looks.inc(*key)
        return await reconciler.reconcile(key)

    controller = Controller(
        "virtualmachineinstances",
        instances,
        reconcile,
        machinery=machinery,
        teller=program.recorder,
        settings=ControllerSettings(workers=_WORKERS),
    )
    lookups.wake(controller)
    placing.wake(controller)
    wake.controller = controller
    sweeper = Sweeper(engine, instances, informers.of(MACHINES))
    wake.sweeper = sweeper
    wake.followers = followers
    engine.machines.listen(wake.engine)
    program.add(controller)
    return InstanceController(controller, sweeper, Upgrades(engine, wake.machine), followers)


class ReconcileTrigger:
    """Has the controller look at a machine by its UID, whoever has news of it."""

    controller: Controller | None = None
    sweeper: Sweeper | None = None
    followers: Followers | None = None

    def __init__(self, instances: Informer) -> None:
        self._instances = instances

    def machine(self, uid: str) -> None:
        """There is something new about a machine."""
        if self.controller is None:
            return
        found = self._instances.cache.by("uid", uid)
        for seen in found:
            self.controller.offer(seen.key)
        if not found and self.sweeper is not None:
            self.sweeper.look()

    def engine(self, uid: str) -> None:
        """The engine has seen something."""
        if self.followers is not None:
            self.followers.agent_changed(uid)
        self.machine(uid)


class ClaimUsers:
    """Who uses a claim."""

    def __init__(self, instances: Informer, engine: Engine) -> None:
        self._instances = instances
        self._engine = engine
        instances.cache.index(BY_CLAIM, lambda seen: claim_places(seen.key.namespace, seen.raw))

    def of(self, claim: Key) -> str:
        """The name of a machine that lives and has a disk on the claim; empty when there is none."""
        for seen in self._instances.cache.by(BY_CLAIM, str(claim)):
            machine = self._engine.machines.get(seen.meta.uid)
            if machine is None or not machine.observed.live:
                continue
            instance = seen.read(INSTANCES)
            volumes = (each for each in instance.spec.volumes or () if each.ephemeral is None)
            if any(claim_of(each) == claim.name for each in volumes):
                return seen.key.name
        return ""
