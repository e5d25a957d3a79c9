"""suspend and resume of a machine. The controller of instances carries them out; what it would refuse is refused here before."""

from paddock.app.subresources import queries
from paddock.app.subresources.instances import InstanceFinder
from paddock.app.subresources.lifecycle import Lifecycle
from paddock.app.subresources.stored import conflict
from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.kubernetes.meta import failure
from paddock.kubevirt.plan.machine import runrequests
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import MACHINES


class MachineSuspension:
    """Requests to write the memory of a guest to disk, to let it go on, or to give it up."""

    def __init__(self, instances: InstanceFinder, lifecycle: Lifecycle) -> None:
        self._instances = instances
        self._lifecycle = lifecycle

    async def suspend(self, call: RequestContext) -> HttpResponse:
        """Write the memory of the guest to disk and end its process; with `discard` give up what was written."""
        given = queries.options(call.request)
        dry_run = queries.is_dry(given)
        if given.get("discard") is True:
            return await self._discard(call, dry_run)
        place = (call.route.namespace, call.route.name)
        machine, instance = self._instances.stored.machine(*place), self._instances.stored.instance_if_any(*place)
        runrequests.suspend(machine, instance)
        guest = self._instances.found(instance) if instance is not None else None
        if guest is not None:
            try:
                await guest.demand_suspendable()
            except RequestRefused as error:
                raise conflict(MACHINES, place[1], str(error)) from error
            except Unanswered as error:
                raise failure.unanswered(str(error)) from error
        return await self._lifecycle.carry_out(call, runrequests.suspend, dry_run)

    async def resume(self, call: RequestContext) -> HttpResponse:
        """Let the guest go on where it was."""
        dry_run = queries.is_dry(queries.options(call.request))
        return await self._lifecycle.carry_out(call, runrequests.resume, dry_run)

    async def _discard(self, call: RequestContext, dry_run: bool) -> HttpResponse:
        place = (call.route.namespace, call.route.name)
        self._instances.stored.machine(*place)
        instance = self._instances.stored.instance_if_any(*place)
        guest = self._instances.suspended(instance) if instance is not None else None
        if guest is None:
            raise conflict(MACHINES, place[1], "VM is not suspended")
        if not dry_run:
            try:
                await guest.stop(0)
            except PaddockError as error:
                raise failure.internal(str(error)) from error
        return queries.accepted()
