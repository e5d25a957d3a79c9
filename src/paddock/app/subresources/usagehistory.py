"""`virtualmachines/usagehistory` and `virtualmachineinstances/usagehistory`: the use of a machine over time.

It is Paddock's own. `?range=` is `1h` (one value for 15 seconds), `24h` (4 minutes) or `7d` (30 minutes). The answer has the `times` of the
whole span, in seconds since 1970, and `series` with one value for each of them, or null: `cpu` in cores, `memory` and `guest` in bytes,
`read`, `write`, `received` and `sent` in bytes a second. A VirtualMachine keeps its history from one run to the next, and loses it when it
is deleted.
"""

import msgspec

from paddock.app.history.rings import BY_RANGE, RESOLUTIONS
from paddock.app.subresources import queries
from paddock.app.subresources.environment import UsageHistoryReader
from paddock.app.subresources.stored import StoredObjects
from paddock.kubernetes.meta import failure
from paddock.kubevirt.plan.instance import identity
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse


class UsageHistories:
    """Answers with series of use."""

    def __init__(self, stored: StoredObjects, history: UsageHistoryReader) -> None:
        self._stored = stored
        self._history = history

    async def of_machine(self, call: RequestContext) -> HttpResponse:
        """The history of a VirtualMachine, also of one that is stopped."""
        machine = self._stored.machine(call.route.namespace, call.route.name)
        return self._answer(call, machine.metadata.uid or "")

    async def of_instance(self, call: RequestContext) -> HttpResponse:
        """The history of the machine of a VirtualMachineInstance."""
        instance = self._stored.instance(call.route.namespace, call.route.name)
        return self._answer(call, identity.owner_of(instance))

    def _answer(self, call: RequestContext, owner: str) -> HttpResponse:
        name = call.request.parameter("range", RESOLUTIONS[0].range)
        resolution = BY_RANGE.get(name)
        if resolution is None:
            raise failure.bad_request(f"invalid range {name[:20]!r}: supported values: {', '.join(BY_RANGE)}")
        return queries.said(msgspec.to_builtins(self._history.series(owner, resolution)))
