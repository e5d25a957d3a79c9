"""Writes the status of machines: what a provider was asked for must not get lost because somebody else changed the object meanwhile."""

from typing import Any

import msgspec

from paddock.client.client import Client
from paddock.client.errors import Conflict, NotFound, StatusDetails
from paddock.client.target import Target
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import MachinePass, VirtrigaudParts
from paddock.plan.virtrigaud import status
from paddock.plan.virtrigaud.conditions import without
from paddock.runtime.cache import CachedObject
from paddock.runtime.statuses import StatusWriter
from paddock.schema.field import Object

_ATTEMPTS = 10


async def write_surely(client: Client, target: Target[Any], statuses: StatusWriter, seen: CachedObject, wanted: Object) -> None:
    """Write a status that no other controller writes, also when the object has changed since it was seen."""
    for attempt in range(_ATTEMPTS):
        try:
            await statuses.write(seen, wanted)
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return
        try:
            fresh = CachedObject.of(await client.get_raw(target, seen.key))
        except NotFound:
            return
        if fresh.meta.uid != seen.meta.uid:
            return
        seen = fresh


class MachineStatusWriter:
    """Settles and writes the status of a pass."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.MACHINES, parts.caches.machines.expectations)

    async def write(self, look: MachinePass) -> bool:
        """Write what the pass reports so far; return whether there was anything to write.

        A conflict is tried again on the newest object: its status is this controller's. Only an id that another controller gave to the
        machine ends the pass.
        """
        look.change(conditions=without(look.status.conditions, *look.dropped))
        look.status = status.settle(look.vm, look.status, look.values.values(), self._parts.timestamp(), failed=look.failed)
        look.values = {name: msgspec.structs.replace(each, anew=False) for name, each in look.values.items()}
        for attempt in range(_ATTEMPTS):
            try:
                written = await self._statuses.write(look.seen, look.status)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
                await self._refresh(look)
                continue
            if written is None:
                return False
            look.seen = written
            return True
        return False

    async def _refresh(self, look: MachinePass) -> None:
        known = status.of(look.seen.read(targets.MACHINES)).id
        look.seen = CachedObject.of(await self._parts.client.get_raw(targets.MACHINES, look.key))
        fresh = look.seen.read(targets.MACHINES)
        if status.of(fresh).id != known or look.seen.meta.uid != look.vm.metadata.uid:
            raise Conflict(409, StatusDetails(message=f"{look.key} has another id by now", reason="Conflict", code=409))
