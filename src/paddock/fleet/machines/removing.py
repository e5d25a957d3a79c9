"""Carries out the removal of a machine."""

from collections.abc import Callable
from typing import Any

from paddock.base.clock import Clock
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import entries, texts
from paddock.fleet.kinds import VM
from paddock.fleet.machines import removal, shares
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.removal import RemovalPlan
from paddock.fleet.machines.running import MachineRunner, RunOptions
from paddock.fleet.machines.waiting import MachineWaiter
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import DeletionOptions, Selection
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target

_CLAIMS = kind_target("", "PersistentVolumeClaim")
_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")
_REVISIONS = kind_target("apps", "ControllerRevision")
_PLAIN = {"secrets": kind_target("", "Secret"), "services": kind_target("", "Service")}
_LONG = 300.0


class MachineRemover:
    """Deletes machines as their plans say."""

    def __init__(self, client: Client, clock: Clock, options: RunOptions, tell: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._options = options
        self._tell = tell
        self._waiter = MachineWaiter(client, clock, tell)

    async def plan(self, machine: MachineView, *, purge: bool) -> RemovalPlan:
        claims, volumes = await self._list(_CLAIMS, machine.namespace), await self._list(_VOLUMES, machine.namespace)
        return removal.plan(machine, removal.owned_claims(machine, claims, volumes), await shares.of(self._client, machine), purge=purge)

    async def remove(self, planned: RemovalPlan) -> str:
        machine = planned.machine
        if self._options.dry_run:
            await self._delete(machine.kind.target, machine.key, machine.data, dry_run=True)
            return "deleted (dry run)"
        if not planned.keeps:
            await self._delete(machine.kind.target, machine.key, machine.data)
            if self._options.seconds:
                await self._waiter.until(machine, lambda now: now is None, self._options.seconds, "deleted")
            await shares.delete(self._client, machine.namespace, planned.shares)
            return "deleted"
        await self._keep_disks(machine)
        await shares.delete(self._client, machine.namespace, planned.shares)
        return "deleted; its disks stay"

    async def _keep_disks(self, machine: MachineView) -> None:
        """Stop the machine, then delete its objects without what depends on them."""
        stopping = RunOptions(force=self._options.force, seconds=self._options.seconds or _LONG)
        await MachineRunner(self._client, self._clock, stopping, self._tell).stop(machine)
        extra = await self._owned(removal.leftovers(machine), machine.data)
        revisions = [
            each for each in await self._list(_REVISIONS, machine.namespace) if machine.vm is not None and _is_owned(each, machine.vm)
        ]
        await self._delete(machine.kind.target, machine.key, machine.data, propagation="Orphan")
        if machine.kind is not VM:
            await self._waiter.until(machine, lambda now: now is None, _LONG, "deleted")
            if machine.vm is not None and machine.vm_key is not None:
                await self._delete(VM.target, machine.vm_key, machine.vm, propagation="Orphan")
        for target, data in (*extra, *((_REVISIONS, each) for each in revisions)):
            await self._delete(target, Key(machine.namespace, texts(data, "metadata", "name")), data)

    async def _owned(self, places: list[tuple[str, Key]], owner: Data) -> list[tuple[Target[Data], Data]]:
        """Return the metadata of those objects that the owner owns. Of Secrets, nothing else is asked for."""
        found = []
        for plural, key in places:
            try:
                data = await self._client.metadata(_PLAIN[plural], key)
            except (NotFound, Forbidden):
                continue
            if _is_owned(data, owner):
                found.append((_PLAIN[plural], data))
        return found

    async def _delete(self, target: Target[Data], key: Key, data: Data, *, propagation: str = "", dry_run: bool = False) -> None:
        grace = 0 if self._options.force and target is not _REVISIONS else None
        options = DeletionOptions(uid=texts(data, "metadata", "uid"), propagation=propagation, grace_seconds=grace, dry_run=dry_run)
        try:
            await self._client.delete(target, key, options)
        except NotFound:
            # It went by itself, which is what was wanted.
            return

    async def _list(self, target: Target[Data], namespace: str) -> list[Any]:
        try:
            return (await self._client.list(target, Selection(namespace=namespace))).items
        except NotFound:
            return []


def _is_owned(data: Data, owner: Data) -> bool:
    uid = texts(owner, "metadata", "uid")
    return any(texts(each, "uid") == uid for each in entries(data, "metadata", "ownerReferences"))
