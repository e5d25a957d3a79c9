"""Bringing about what a machine should have: the definitions of its networks, its claims, its Secret, its VirtualMachine."""

from collections.abc import Awaitable, Callable

import orjson

from paddock.base.errors import PaddockError
from paddock.client.errors import Conflict
from paddock.client.target import Data, Key, Target, plain
from paddock.controllers.vitistack import kinds, problems
from paddock.controllers.vitistack.context import ControllerParts, MachineContext
from paddock.controllers.vitistack.networks import NetworkDefinitions
from paddock.controllers.vitistack.storage import DiskStorage
from paddock.controllers.vitistack.translation import Translation, WantedObjects
from paddock.meta.rendering import Rendering
from paddock.plan.vitistack import phases, power
from paddock.plan.vitistack.observed import Aspect
from paddock.runtime.comparing import applied_fields
from paddock.runtime.desired import DesiredObject as Applied
from paddock.runtime.desired import DesiredSet
from paddock.runtime.reference import InvolvedObject
from paddock.runtime.unreadfields import UnreadFieldEvents
from paddock.translate.vitistack.devices import iso_name
from paddock.translate.vitistack.errors import UntranslatableMachine

_Step = Callable[[MachineContext, WantedObjects], Awaitable[None]]
_VM_DATA: Target[Data] = plain("kubevirt.io", "v1", kinds.VMS.plural, kinds.VMS.kind)


class MachineMaker:
    """Makes what machines become, and keeps it so."""

    def __init__(self, means: ControllerParts, attachments: NetworkDefinitions, storage: DiskStorage) -> None:
        settings = means.settings
        self._attachments = attachments
        self._storage = storage
        self._translation = Translation(means.caches, Rendering(mac_set=settings.mac_set, power_field=settings.power_field))
        self._unread = UnreadFieldEvents(means.teller)
        self._set = DesiredSet(means.client, [means.caches.secrets, means.caches.vms], manager=kinds.MANAGER)

    async def bring_about(self, look: MachineContext) -> None:
        """Do what can be done. What keeps the machine from being complete is noted in the look; conflicts are raised."""
        try:
            wanted = self._translation.of(look.seen, look.machine, look.found)
        except UntranslatableMachine as error:
            look.problem = problems.of_unmet(error)
            return
        self._unread.tell(look.owner, wanted.losses)
        steps: tuple[tuple[Aspect, _Step], ...] = (("network", self._networks), ("storage", self._disks), ("machine", self._machine))
        for aspect, step in steps:
            if look.problem is None:
                await self._try(look, aspect, step(look, wanted))

    @staticmethod
    async def _try(look: MachineContext, aspect: Aspect, work: Awaitable[None]) -> None:
        try:
            await work
        except Conflict:
            raise
        except PaddockError as error:
            look.problem, look.error = problems.of_backend(error, aspect), error

    def forget(self, owner: InvolvedObject) -> None:
        """The machine is gone."""
        self._translation.forget(Key(owner.namespace, owner.name))
        self._set.forget(owner)
        self._unread.forget(owner.uid)
        self._storage.forget(owner)

    async def _networks(self, look: MachineContext, wanted: WantedObjects) -> None:
        for each in wanted.attachments:
            await self._attachments.ensure(each)
            look.attached.add(each.metadata.name)

    async def _disks(self, look: MachineContext, wanted: WantedObjects) -> None:
        known = look.vm.claims if look.vm is not None else frozenset()
        before = look.machine.status
        if look.vm is None and before is not None and (before.vmName or before.phase in (phases.RUNNING, phases.STOPPED)):
            # It had a VirtualMachine: the disks of that were there, and are not made anew because it is gone.
            known = frozenset(before.claims or (each["metadata"]["name"] for each in wanted.disks))
        look.claims = await self._storage.reach(look.owner, wanted.disks, look.found, known)

    async def _machine(self, look: MachineContext, wanted: WantedObjects) -> None:
        if look.vm_seen is not None and look.vm_seen.meta.going:
            # It is made again when it is gone.
            return
        secrets = [Applied(kinds.SECRETS, each) for each in wanted.secrets]
        reached = await self._set.reach(look.owner, [*secrets, self._with_power(look, wanted.vm)])
        look.made = True
        look.wrote = look.wrote or bool(reached.applied or reached.deleted)
        if not wanted.vm["spec"].get("dataVolumeTemplates"):
            await self._storage.drop_image(look.seen, iso_name(look.key.name))

    @staticmethod
    def _with_power(look: MachineContext, vm: Data) -> Applied:
        """The VirtualMachine with what it says of power; where that only repeats what is there, it must still be there."""
        if look.vm_seen is None:
            return Applied(_VM_DATA, vm)
        there: Data = orjson.loads(look.vm_seen.raw)
        ours = {name.removeprefix("f:") for name in (applied_fields(there, kinds.MANAGER) or {}).get("f:spec", {})}
        on = power.declared(look.machine)
        spec = power.powered(vm["spec"], there.get("spec") or {}, ours, on)
        repeats = on is None and spec.keys() & {power.RUNNING, power.STRATEGY}
        return Applied(_VM_DATA, {**vm, "spec": spec}, at=look.vm_seen.meta.resourceVersion if repeats else "")
