"""The writes for a machine: its network definitions, claims, Secret and VirtualMachine, and the deletion of all of them."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.controllers.context import ControllerParts, MachineContext
from paddock.dialects.vitistack.controllers.networks import NetworkDefinitions, networks_of
from paddock.dialects.vitistack.controllers.reader import VitistackCaches
from paddock.dialects.vitistack.controllers.targets import VM_DATA
from paddock.dialects.vitistack.controllers.translation import Translation, WantedObjects
from paddock.dialects.vitistack.kinds.marks import FINALIZER
from paddock.dialects.vitistack.plan import claims, objects, phases, problems, report
from paddock.dialects.vitistack.plan.claims import ClaimAction, ExistingClaim
from paddock.dialects.vitistack.plan.objects import RemainingObjects
from paddock.dialects.vitistack.plan.observed import Aspect, MachineProblem, ObservedClaim
from paddock.dialects.vitistack.translate.devices import iso_name
from paddock.dialects.vitistack.translate.errors import (
    ConfigMapNotFound,
    MachineClassNotFound,
    NetworkConfigurationNotFound,
    SecretNotFound,
    StorageClassNotFound,
    TemplateNotFound,
    UntranslatableMachine,
)
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import BadRequest, Conflict, Forbidden, Invalid, MissingRight, NotFound
from paddock.kubernetes.client.options import DeletionOptions, WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.adoption import Adopter, adopt
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.comparing import applied_fields, changed_labels
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet, ForeignObject
from paddock.kubernetes.runtime.reference import InvolvedObject, is_owned
from paddock.kubernetes.runtime.unreadfields import UnreadFieldEvents

_LOG = logging.getLogger(__name__)
_Step = Callable[[MachineContext, WantedObjects], Awaitable[None]]
_INSTALLED: dict[Aspect, str] = {"network": "install Multus", "storage": "install CDI", "machine": "install KubeVirt"}
_TARGETS: Mapping[str, Target[Data]] = {"PersistentVolumeClaim": targets.CLAIM_DATA, "DataVolume": targets.VOLUMES}


class DiskStorage:
    """Makes and grows what the disks of machines lie on."""

    def __init__(self, client: Client, caches: VitistackCaches) -> None:
        self._client = client
        self._caches = caches
        # Claims stay until their machine goes, whatever becomes of their disks.
        self._set = DesiredSet(client, (), manager=targets.MANAGER, keeps=(caches.claims, caches.volumes))

    async def reach(
        self, owner: InvolvedObject, disks: tuple[Data, ...], existing_claims: Mapping[str, ExistingClaim], known: frozenset[str], vm: str
    ) -> list[ObservedClaim]:
        """Bring each disk to its desired state and return the claims. `known` claims were used by the machine and are not made anew.

        `vm` is the UID of its VirtualMachine; "" means none.
        """
        actions = [self._act(owner.namespace, each, existing_claims, known) for each in disks]
        ours = await self._take_back(owner, [act.name for act in actions], vm)
        applied = [act for act in actions if act.verb == "apply"]
        await self._set.reach(owner, [DesiredObject(_TARGETS[act.data["kind"]], act.data, adopt=act.name in ours) for act in applied])
        for act in actions:
            if act.verb == "grow":
                patch = merge_patch({"spec": {"resources": {"requests": {"storage": act.size}}}})
                await self._client.patch(targets.CLAIM_DATA, Key(owner.namespace, act.name), patch, WriteOptions(manager=targets.MANAGER))
        for disk in disks:
            await self._label(owner, disk)
        return [await self._claim(owner.namespace, act, existing_claims.get(act.name)) for act in actions]

    async def _label(self, owner: InvolvedObject, disk: Data) -> None:
        """Keep the labels of a DataVolume that is there. Nothing else of one can change."""
        key = Key(owner.namespace, disk["metadata"]["name"])
        seen = self._caches.volumes.cache.get(key) if disk["kind"] == "DataVolume" else None
        if seen is None or seen.meta.deleting or not is_owned(seen.meta, owner.uid):
            return
        if changed := changed_labels(disk, orjson.loads(seen.raw), targets.MANAGER):
            patch = merge_patch({"metadata": {"labels": changed}})
            await self._client.patch(targets.VOLUMES, key, patch, WriteOptions(manager=targets.MANAGER))

    async def _take_back(self, owner: InvolvedObject, names: Iterable[str], vm: str) -> set[str]:
        """Own the claims of the VirtualMachine, too: a restore in place makes them anew for it, and they would go with it."""
        machine = Adopter(targets.MACHINES, Key(owner.namespace, owner.name), owner.uid, shares=True)
        cached = (self._caches.claims.cache.get(Key(owner.namespace, name)) for name in names)
        restored = [seen for seen in cached if seen is not None and is_owned(seen.meta, vm)]
        return {seen.meta.name for seen in restored if await adopt(self._client, machine, targets.CLAIM_DATA, seen)}

    def forget(self, owner: InvolvedObject) -> None:
        self._set.forget(owner)

    def _act(self, namespace: str, wanted: Data, existing_claims: Mapping[str, ExistingClaim], known: frozenset[str]) -> ClaimAction:
        name = wanted["metadata"]["name"]
        filled = self._caches.volumes.cache.get(Key(namespace, name)) is not None
        return claims.settle(wanted, existing_claims.get(name), filled=filled, known=name in known)

    async def _claim(self, namespace: str, act: ClaimAction, existing_claim: ExistingClaim | None) -> ObservedClaim:
        if act.verb == "miss":
            return ObservedClaim(act.name, "Pending", lost=await self._is_lost(Key(namespace, act.name)))
        return ObservedClaim(act.name, existing_claim.status.phase if existing_claim is not None else "Pending")

    async def _is_lost(self, key: Key) -> bool:
        """The cache may be behind: only a loss that the server confirms is reported."""
        return await self._client.find(targets.CLAIM_DATA, key) is None

    async def drop_image(self, owner: CachedObject, name: str) -> None:
        """The installation image is not wanted any more: its DataVolume goes, and its claim with it."""
        seen = self._caches.volumes.cache.get(Key(owner.key.namespace, name))
        if seen is not None and not seen.meta.deleting and seen in self._caches.own_volumes(owner):
            await delete_seen(self._client, targets.VOLUMES, seen)

    async def clear(self, owner: CachedObject) -> None:
        """Delete every claim of a machine; those of DataVolumes go with them."""
        for seen in self._caches.own_volumes(owner):
            await delete_seen(self._client, targets.VOLUMES, seen)
        for seen in self._caches.own_claims(owner):
            await delete_seen(self._client, targets.CLAIM_DATA, seen)


class MachineMaker:
    """Makes what machines become, and keeps it so."""

    def __init__(self, parts: ControllerParts, attachments: NetworkDefinitions, storage: DiskStorage) -> None:
        settings = parts.settings
        self._caches = parts.caches
        self._attachments = attachments
        self._storage = storage
        self._translation = Translation(parts.caches, Rendering(mac_set=settings.mac_set, power_field=settings.power_field))
        self._unread = UnreadFieldEvents(parts.recorder)
        self._set = DesiredSet(parts.client, [parts.caches.secrets, parts.caches.vms], manager=targets.MANAGER)

    async def bring_about(self, machine_context: MachineContext) -> None:
        """Do what can be done. What keeps the machine from being complete is noted in the look; conflicts are raised."""
        try:
            wanted = self._translation.of(machine_context.seen, machine_context.machine, machine_context.found)
        except UntranslatableMachine as error:
            machine_context.problem = problem_of_unmet(error)
            reported = machine_context.machine.status is not None and report.reason_of(machine_context.machine.status) == error.error_type
            machine_context.behind = not reported and await self._is_behind(machine_context, error)
            return
        self._unread.tell(machine_context.owner, wanted.losses)
        steps: tuple[tuple[Aspect, _Step], ...] = (("network", self._networks), ("storage", self._disks), ("machine", self._machine))
        for aspect, step in steps:
            if machine_context.problem is None:
                await self._try(machine_context, aspect, step(machine_context, wanted))

    async def _is_behind(self, machine_context: MachineContext, error: UntranslatableMachine) -> bool:
        """Return whether the server has what a machine lacks. A problem that the server does not confirm is no problem."""
        key = Key(machine_context.key.namespace, error.name)
        match error:
            case StorageClassNotFound():
                return await self._caches.classes.is_behind()
            case TemplateNotFound():
                return await self._caches.templates.is_behind(key)
            case NetworkConfigurationNotFound():
                return await self._caches.networks.is_behind(key)
            case SecretNotFound():
                return await self._caches.secrets.is_behind(key)
            case ConfigMapNotFound():
                return await self._caches.config_maps.is_behind(key)
            case MachineClassNotFound():
                return await self._caches.machine_classes.is_behind(Key("", error.name))
        return False

    @staticmethod
    async def _try(machine_context: MachineContext, aspect: Aspect, work: Awaitable[None]) -> None:
        try:
            await work
        except Conflict:
            raise
        except PaddockError as error:
            machine_context.problem, machine_context.error = problem_of_backend(error, aspect), error

    def forget(self, owner: InvolvedObject) -> None:
        self._set.forget(owner)
        self._unread.forget(owner.uid)
        self._storage.forget(owner)

    async def _networks(self, machine_context: MachineContext, wanted_objects: WantedObjects) -> None:
        for each in wanted_objects.attachments:
            await self._attachments.ensure(each)
            machine_context.attached.add(each.metadata.name)

    async def _disks(self, machine_context: MachineContext, wanted_objects: WantedObjects) -> None:
        known = machine_context.vm.claims if machine_context.vm is not None else frozenset()
        before = machine_context.machine.status
        if machine_context.vm is None and before is not None and (before.vmName or before.phase in (phases.RUNNING, phases.STOPPED)):
            # It had a VirtualMachine: the disks of that were there, and are not made anew because it is gone.
            known = frozenset(before.claims or (each["metadata"]["name"] for each in wanted_objects.disks))
        vm = machine_context.vm_seen.meta.uid if machine_context.vm_seen is not None else ""
        machine_context.claims = await self._storage.reach(machine_context.owner, wanted_objects.disks, machine_context.found, known, vm)

    async def _machine(self, machine_context: MachineContext, wanted_objects: WantedObjects) -> None:
        if machine_context.vm_seen is not None and machine_context.vm_seen.meta.deleting:
            # It is made again when it is gone.
            return
        secrets = [DesiredObject(targets.SECRETS, each) for each in wanted_objects.secrets]
        reached = await self._set.reach(machine_context.owner, [*secrets, self._with_power(machine_context, wanted_objects.vm)])
        machine_context.made = True
        machine_context.wrote = machine_context.wrote or bool(reached.applied or reached.deleted)
        if not wanted_objects.vm["spec"].get("dataVolumeTemplates"):
            await self._storage.drop_image(machine_context.seen, iso_name(machine_context.key.name))

    @staticmethod
    def _with_power(machine_context: MachineContext, vm: Data) -> DesiredObject:
        """The VirtualMachine with what it says of power; where that only repeats what is there, it must still be there."""
        if machine_context.vm_seen is None:
            return DesiredObject(VM_DATA, vm)
        there: Data = orjson.loads(machine_context.vm_seen.raw)
        ours = {name.removeprefix("f:") for name in (applied_fields(there, targets.MANAGER) or {}).get("f:spec", {})}
        on = objects.declared_power(machine_context.machine)
        spec = objects.with_power(vm["spec"], there.get("spec") or {}, ours, on)
        repeats = on is None and spec.keys() & {objects.RUNNING, objects.STRATEGY}
        return DesiredObject(VM_DATA, {**vm, "spec": spec}, at=machine_context.vm_seen.meta.resourceVersion if repeats else "")


# --- the way out: VirtualMachine, claims, networks, finalizer, each when the one before is gone -----------------------------


class MachineFinalizer:
    """Clears machines away. `ask_network` has the network's controller look at it."""

    def __init__(self, parts: ControllerParts, storage: DiskStorage, ask_network: Callable[[Key], None]) -> None:
        self._client = parts.client
        self._caches = parts.caches
        self._storage = storage
        self._ask_network = ask_network

    async def step(self, machine_context: MachineContext, said: str) -> RemainingObjects | None:
        """Do what comes next; what is still there, or None when the machine has been let go. The log has the step `said`."""
        if FINALIZER not in (machine_context.seen.meta.finalizers or ()):
            return None
        if finalizers.leaves_dependents(machine_context.seen.meta):
            _LOG.info("releasing machine without its dependents")
            await finalizers.take_off(self._client, targets.MACHINES, machine_context.seen.meta, FINALIZER)
            return None
        networks = networks_of(machine_context.seen)
        remains = self._caches.remains(machine_context.seen, (each.name for each in networks))
        if remains.step != "machine" and await self._is_behind(machine_context):
            return remains
        if remains.step != said:
            _LOG.info("deleting machine", extra={"step": remains.step})
        if remains.step == "machine":
            await self._delete_vm(machine_context)
        elif remains.step == "claims":
            await self._storage.clear(machine_context.seen)
        elif remains.step == "networks":
            for each in networks:
                self._ask_network(each)
        else:
            await finalizers.take_off(self._client, targets.MACHINES, machine_context.seen.meta, FINALIZER)
            return None
        return remains

    async def _delete_vm(self, machine_context: MachineContext) -> None:
        if machine_context.vm_seen is not None:
            await delete_seen(self._client, VM_DATA, machine_context.vm_seen)

    async def _is_behind(self, machine_context: MachineContext) -> bool:
        """Delete a VirtualMachine that the cache does not have yet; return whether there was one."""
        found = await self._client.find(VM_DATA, machine_context.key)
        if found is None:
            return False
        meta = found["metadata"]
        if not any(each.get("uid") == machine_context.seen.meta.uid for each in meta.get("ownerReferences") or ()):
            return False
        await self._client.delete(
            VM_DATA,
            machine_context.key,
            DeletionOptions(uid=meta["uid"], revision=meta["resourceVersion"], propagation="Background"),
        )
        return True


# --- what an error means for a machine (docs/spec/vitistack.md section 4.6) -------------------------------------------------


def problem_of_unmet(error: UntranslatableMachine) -> MachineProblem:
    """Return the problem that keeps a machine from being translated."""
    aspect: Aspect = "spec"
    if isinstance(error, NetworkConfigurationNotFound):
        aspect = "network"
    elif isinstance(error, StorageClassNotFound):
        aspect = "storage"
    network = error.name if aspect == "network" else ""
    return MachineProblem(error.error_type, str(error), aspect, fails=error.phase == "Failed", network=network)


def problem_of_backend(error: PaddockError, aspect: Aspect) -> MachineProblem:
    """Return the problem behind the backend's answer to a write of that aspect."""
    text = str(error)
    if isinstance(error, MissingRight):
        return MachineProblem(problems.BACKEND, text, aspect)
    if isinstance(error, Forbidden) and "exceeded quota" in text:
        return MachineProblem(problems.RESOURCES, f"{text}; raise the quota or make the machine smaller", aspect)
    if isinstance(error, Forbidden | Invalid | BadRequest):
        return MachineProblem(problems.BACKEND, f"{text}; correct the machine", aspect, fails=True)
    if isinstance(error, NotFound):
        return MachineProblem(problems.BACKEND, f"{text}; {_INSTALLED.get(aspect, 'check the installation')}", aspect)
    if isinstance(error, ForeignObject):
        return MachineProblem(problems.BACKEND, text, aspect)
    return MachineProblem(problems.BACKEND, f"{text}; check the installation and its permissions", aspect)
