"""Writes the status of machines: what a provider was asked for must not get lost because somebody else changed the object meanwhile."""

import msgspec

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import MachinePass, VirtrigaudParts
from paddock.dialects.virtrigaud.plan import status
from paddock.dialects.virtrigaud.plan.conditions import without
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.statuses import StatusWriter


class MachineStatusWriter:
    """Settles and writes the status of a pass."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.MACHINES, parts.caches.machines.expectations)

    async def write(self, machine_pass: MachinePass) -> bool:
        """Write what the pass reports so far; return whether there was anything to write.

        Only an id that another controller gave to the machine ends the pass with a conflict.
        """
        machine_pass.change(conditions=without(machine_pass.status.conditions, *machine_pass.dropped))
        machine_pass.status = status.settle(
            machine_pass.vm, machine_pass.status, machine_pass.values.values(), self._parts.timestamp(), failed=machine_pass.failed
        )
        machine_pass.values = {name: msgspec.structs.replace(each, anew=False) for name, each in machine_pass.values.items()}
        seen = machine_pass.seen
        written = await self._statuses.write_surely(seen, machine_pass.status, agrees=lambda fresh: _id(fresh) == _id(seen))
        if written is None:
            return False
        machine_pass.seen = written
        return True


def _id(seen: CachedObject) -> str | None:
    return status.of(seen.read(targets.MACHINES)).id
