"""start, stop, restart and migrate of a machine. What each becomes is decided in `plan/runrequests.py`; here it is carried out."""

from collections.abc import Callable
from functools import partial

from paddock.apiserver.edge.http import HttpResponse
from paddock.apiserver.parts import RequestContext
from paddock.app.subresources import asking
from paddock.app.subresources.stored import INSTANCES, MACHINES, MIGRATIONS, PreconditionFailed, StoredObjects
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.virtualmachine import VirtualMachine
from paddock.plan import runrequests
from paddock.plan.runrequests import RunPatches

# How often a decision is taken anew because somebody was faster.
_ATTEMPTS = 5
Decide = Callable[[VirtualMachine, VirtualMachineInstance | None], RunPatches]


class Lifecycle:
    """Requests to run, or not to."""

    def __init__(self, stored: StoredObjects) -> None:
        self._stored = stored

    async def start(self, call: RequestContext) -> HttpResponse:
        """Run."""
        given = asking.options(call.request)
        return await self._carry_out(call, partial(runrequests.start, paused=given.get("paused") is True), asking.is_dry(given))

    async def stop(self, call: RequestContext) -> HttpResponse:
        """Do not run any more."""
        given = asking.options(call.request)
        grace = asking.seconds(given, "gracePeriod")
        return await self._carry_out(call, partial(runrequests.stop, grace_seconds=grace), asking.is_dry(given))

    async def restart(self, call: RequestContext) -> HttpResponse:
        """Stop and run again."""
        given = asking.options(call.request)
        grace = asking.seconds(given, "gracePeriodSeconds")
        return await self._carry_out(call, partial(runrequests.restart, grace_seconds=grace), asking.is_dry(given))

    async def migrate(self, call: RequestContext) -> HttpResponse:
        """Move; on one host the object that is made says that it cannot."""
        given = asking.options(call.request)
        added = given.get("addedNodeSelector")
        machine = self._stored.machine(call.route.namespace, call.route.name)
        instance = self._stored.instance_if_any(call.route.namespace, call.route.name)
        wanted = runrequests.migrate(machine, instance, added if isinstance(added, dict) else None)
        await self._stored.create(MIGRATIONS, call.route.namespace, wanted, dry_run=asking.is_dry(given))
        return asking.accepted()

    async def _carry_out(self, call: RequestContext, decide: Decide, dry_run: bool) -> HttpResponse:
        place = (call.route.namespace, call.route.name)
        machine = self._stored.machine(*place)
        for _ in range(_ATTEMPTS):
            change = decide(machine, self._stored.instance_if_any(*place))
            try:
                await self._perform(place, change, dry_run)
            except PreconditionFailed:
                machine = self._stored.machine(*place)
            else:
                return asking.accepted()
        raise runrequests.failed_test(machine)

    async def _perform(self, place: tuple[str, str], change: RunPatches, dry_run: bool) -> None:
        if change.instance:
            await self._stored.change(INSTANCES, place, change.instance, dry_run=dry_run)
        if change.machine:
            await self._stored.change(MACHINES, place, change.machine, dry_run=dry_run)
        if change.status:
            await self._stored.change(MACHINES, place, change.status, sub="status", dry_run=dry_run)
