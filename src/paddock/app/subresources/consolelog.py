"""`virtualmachines/consolelog` and `virtualmachineinstances/consolelog`: the output of a guest on its serial console.

It is Paddock's own. KubeVirt has the same in the log of a container of the machine's pod. The answer is the text; the header
`x-paddock-console-log` says where it comes from (`running` or `ended`) and its whole size in bytes, from which `?offset=` goes on.
`?previous=true` asks for the run before the one that is on.
"""

from paddock.app.subresources import queries
from paddock.app.subresources.environment import ConsoleLogReader, MachinesApi
from paddock.app.subresources.stored import StoredObjects, about
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import GROUP, VirtualMachineInstance
from paddock.kubevirt.plan.instance import identity
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import INSTANCES, MACHINES

HEADER = "x-paddock-console-log"


class ConsoleOutput:
    """Answers with logs of serial consoles."""

    def __init__(self, stored: StoredObjects, machines: MachinesApi, kept: ConsoleLogReader) -> None:
        self._stored = stored
        self._machines = machines
        self._kept = kept

    async def of_machine(self, call: RequestContext) -> HttpResponse:
        """The log of a VirtualMachine, also of one that is stopped."""
        machine = self._stored.machine(call.route.namespace, call.route.name)
        return await self._answer(call, MACHINES, machine.metadata.uid or "", self._instance(call))

    async def of_instance(self, call: RequestContext) -> HttpResponse:
        """The log of a VirtualMachineInstance."""
        instance = self._stored.instance(call.route.namespace, call.route.name)
        return await self._answer(call, INSTANCES, identity.owner_of(instance), instance)

    def _instance(self, call: RequestContext) -> VirtualMachineInstance | None:
        found = self._stored.find(f"{INSTANCES}.{GROUP}", call.route.namespace, call.route.name)
        return None if found is None else from_data(found, VirtualMachineInstance)

    async def _answer(self, call: RequestContext, plural: str, owner: str, instance: VirtualMachineInstance | None) -> HttpResponse:
        name, previous = call.route.name, call.request.flag("previous")
        is_logged = instance is None or instance.spec.domain.devices.logSerialConsole is not False
        machine = self._machines.get(instance.metadata.uid or "") if instance is not None else None
        if not previous and machine is not None and is_logged:
            state, data = "running" if machine.observed.live else "ended", await machine.console_log()
        else:
            kept = self._kept.kept(owner)
            if kept is None:
                why = _why(name, previous=previous, is_logged=is_logged)
                raise failure.Failure(404, "NotFound", why, about=about(plural, name))
            state, data = "ended", kept
        offset = _offset(call)
        headers = (("content-type", "text/plain"), (HEADER, f"{state} {len(data)}"))
        return HttpResponse(queries.OK, data[offset:], headers)


def _why(name: str, *, previous: bool, is_logged: bool) -> str:
    if not is_logged:
        return f"no console log of {name} is kept: its logSerialConsole is false"
    return f"no {'previous ' if previous else ''}console log of {name} is kept: no run of it has ended with output on its serial console"


def _offset(call: RequestContext) -> int:
    text = call.request.parameter("offset", "0")
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise failure.bad_request(f"invalid offset {text[:20]!r}: must be a number of bytes")
    return int(text)
