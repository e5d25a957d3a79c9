"""Makes VirtualMachines for machines that their providers have already, and gives them their ids: of clones, and of adopted machines."""

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import attempts, marks, status
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.statuses import StatusWriter

_ATTEMPTS = 10


class MachineBinding:
    """Makes the objects of machines that exist."""

    def __init__(self, client: Client, machines: Informer) -> None:
        self._client = client
        self._machines = machines
        self._statuses = StatusWriter(client, targets.MACHINES, machines.expectations)

    async def find(self, key: Key) -> VirtrigaudVirtualMachine | None:
        """The machine's object as the server has it: a cache may not have it yet."""
        try:
            return CachedObject.of(await self._client.get_raw(targets.MACHINES, key)).read(targets.MACHINES)
        except NotFound:
            return None

    async def make(self, vm: VirtrigaudVirtualMachine) -> VirtrigaudVirtualMachine | None:
        """Make the object; None if there is another one of its name. Raises `Invalid` for a spec that the server refuses.

        It has its finalizer from the beginning: deleted before its controller has seen it, it would leave its machine behind.
        """
        held = msgspec.structs.replace(vm, metadata=msgspec.structs.replace(vm.metadata, finalizers=[marks.MACHINE_FINALIZER]))
        try:
            made = await self._client.create(targets.MACHINES, held, vm.metadata.namespace or "")
        except AlreadyExists:
            return None
        self._machines.expectations.wrote(CachedObject.from_data(_data(made)))
        return made

    async def give_id(self, key: Key, uid: str, id: str, sizes: MachineSizes | None) -> bool:
        """Write the id of a machine, with the sizes that it has, unless it has an id; return whether something was written."""
        for attempt in range(_ATTEMPTS):
            try:
                seen = CachedObject.of(await self._client.get_raw(targets.MACHINES, key))
            except NotFound:
                return False
            before = status.of(seen.read(targets.MACHINES))
            if seen.meta.uid != uid or before.id:
                return False
            known = msgspec.structs.replace(before, id=id)
            try:
                written = await self._statuses.write(seen, known if sizes is None else attempts.confirmed(known, sizes))
            except Conflict:
                # Its own controller writes it in these moments, too.
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return written is not None
        return False

    async def remove(self, machine: VirtrigaudVirtualMachine) -> None:
        key = Key(machine.metadata.namespace or "", machine.metadata.name)
        try:
            await self._client.delete(targets.MACHINES, key, DeletionOptions(uid=machine.metadata.uid or ""))
        except NotFound:
            return


def _data(made: VirtrigaudVirtualMachine) -> Data:
    return dict(orjson.loads(msgspec.json.encode(made)))
