"""The lock that a snapshot or a restore has on its machine: a member of the machine's status that names it."""

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.statuses import StatusWriter, status_of
from paddock.kubevirt.controllers.snapshots.targets import MACHINES


class MachineLock:
    """Locks machines for one purpose, which `member` of their status stands for."""

    def __init__(self, client: Client, machines: Informer, member: str) -> None:
        self._client = client
        self._statuses = StatusWriter(client, MACHINES, machines.expectations)
        self._member = member

    def holder(self, machine: CachedObject) -> str:
        """The name of the object that has locked a machine; empty when none has."""
        return str(status_of(machine).get(self._member) or "")

    async def lock(self, machine: CachedObject, name: str) -> bool:
        """Lock a machine as it was seen; False when it is gone. Raises `Conflict` when it has moved: another may have been quicker."""
        return self.holder(machine) == name or await self._statuses.change(machine, {self._member: name}) is not None

    async def unlock(self, key: Key, name: str) -> None:
        """Take the lock off a machine, if it is that of this object."""
        try:
            # Not from the cache: the lock may be younger than what is in there.
            machine = CachedObject.of(await self._client.get_raw(MACHINES, key))
        except NotFound:
            return
        if self.holder(machine) == name:
            await self._statuses.change(machine, {self._member: None})
