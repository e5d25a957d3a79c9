"""The way out: VirtualMachine, claims, networks, finalizer, each when what is before it is gone."""

import logging
from collections.abc import Callable

from paddock.client.errors import NotFound
from paddock.client.options import DeletionOptions
from paddock.client.target import Data, Key, Target, plain
from paddock.controllers.vitistack import kinds
from paddock.controllers.vitistack.context import ControllerParts, MachineContext
from paddock.controllers.vitistack.networks import networks_of
from paddock.controllers.vitistack.storage import DiskStorage
from paddock.dialects.vitistack.marks import FINALIZER
from paddock.plan.vitistack.clearing import RemainingObjects
from paddock.runtime import finalizers
from paddock.runtime.deleting import delete_seen

_LOG = logging.getLogger(__name__)
_VM_DATA: Target[Data] = plain("kubevirt.io", "v1", kinds.VMS.plural, kinds.VMS.kind)


class MachineFinalizer:
    """Clears machines away. `ask_network` has the network's controller look at it."""

    def __init__(self, means: ControllerParts, storage: DiskStorage, ask_network: Callable[[Key], None]) -> None:
        self._client = means.client
        self._caches = means.caches
        self._storage = storage
        self._ask_network = ask_network

    async def step(self, look: MachineContext) -> RemainingObjects | None:
        """Do what comes next; what is still there, or None when the machine has been let go."""
        if FINALIZER not in (look.seen.meta.finalizers or ()):
            return None
        networks = networks_of(look.seen)
        remains = self._caches.remains(look.seen, (each.name for each in networks))
        if remains.step != "machine" and await self._is_behind(look):
            return remains
        _LOG.info("deleting machine", extra={"step": remains.step})
        if remains.step == "machine":
            await self._delete_vm(look)
        elif remains.step == "claims":
            await self._storage.clear(look.seen)
        elif remains.step == "networks":
            for each in networks:
                self._ask_network(each)
        else:
            await finalizers.take_off(self._client, kinds.MACHINES, look.seen.meta, FINALIZER)
            return None
        return remains

    async def _delete_vm(self, look: MachineContext) -> None:
        if look.vm_seen is not None:
            await delete_seen(self._client, _VM_DATA, look.vm_seen)

    async def _is_behind(self, look: MachineContext) -> bool:
        """Whether a VirtualMachine was made that the cache does not have yet; it is deleted then."""
        try:
            found = await self._client.get(_VM_DATA, look.key)
        except NotFound:
            return False
        meta = found["metadata"]
        if not any(each.get("uid") == look.seen.meta.uid for each in meta.get("ownerReferences") or ()):
            return False
        await self._client.delete(
            _VM_DATA, look.key, DeletionOptions(uid=meta["uid"], revision=meta["resourceVersion"], propagation="Background")
        )
        return True
