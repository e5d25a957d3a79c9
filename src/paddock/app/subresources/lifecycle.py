"""start, stop, restart and migrate of a machine, as `kubevirt/plan/machine/runrequests.py` decides them."""

from collections.abc import Callable
from functools import partial

from paddock.app.subresources import queries
from paddock.app.subresources.stored import MIGRATIONS, PreconditionFailed, StoredObjects
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import runrequests
from paddock.kubevirt.plan.machine.runrequests import RunPatches
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import INSTANCES, MACHINES

# How often a decision is taken anew because somebody was faster.
_ATTEMPTS = 5
Decide = Callable[[VirtualMachine, VirtualMachineInstance | None], RunPatches]


class Lifecycle:
    """Requests to run, or not to."""

    def __init__(self, stored: StoredObjects) -> None:
        self._stored = stored

    async def start(self, call: RequestContext) -> HttpResponse:
        given = queries.options(call.request)
        return await self.carry_out(call, partial(runrequests.start, paused=given.get("paused") is True), queries.is_dry(given))

    async def stop(self, call: RequestContext) -> HttpResponse:
        """Do not run any more."""
        given = queries.options(call.request)
        grace = queries.seconds(given, "gracePeriod")
        return await self.carry_out(call, partial(runrequests.stop, grace_seconds=grace), queries.is_dry(given))

    async def restart(self, call: RequestContext) -> HttpResponse:
        given = queries.options(call.request)
        grace = queries.seconds(given, "gracePeriodSeconds")
        return await self.carry_out(call, partial(runrequests.restart, grace_seconds=grace), queries.is_dry(given))

    async def migrate(self, call: RequestContext) -> HttpResponse:
        """Move; on one host the object that is made says that it cannot."""
        given = queries.options(call.request)
        added = given.get("addedNodeSelector")
        machine = self._stored.machine(call.route.namespace, call.route.name)
        instance = self._stored.instance_if_any(call.route.namespace, call.route.name)
        wanted = runrequests.migrate(machine, instance, added if isinstance(added, dict) else None)
        await self._stored.create(MIGRATIONS, call.route.namespace, wanted, dry_run=queries.is_dry(given))
        return queries.accepted()

    async def carry_out(self, call: RequestContext, decide: Decide, dry_run: bool) -> HttpResponse:
        """Send what was decided about a machine and its instance; decide again when somebody was faster."""
        place = (call.route.namespace, call.route.name)
        machine = self._stored.machine(*place)
        for _ in range(_ATTEMPTS):
            change = decide(machine, self._stored.instance_if_any(*place))
            try:
                await self._perform(place, change, dry_run)
            except PreconditionFailed:
                machine = self._stored.machine(*place)
            else:
                return queries.accepted()
        raise runrequests.failed_test(machine)

    async def _perform(self, place: tuple[str, str], change: RunPatches, dry_run: bool) -> None:
        if change.instance:
            await self._stored.change(INSTANCES, place, change.instance, dry_run=dry_run)
        if change.machine:
            await self._stored.change(MACHINES, place, change.machine, dry_run=dry_run)
        if change.status:
            await self._stored.change(MACHINES, place, change.status, sub="status", dry_run=dry_run)
