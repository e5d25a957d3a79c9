"""expand-spec and expand-vm-spec: a machine with everything that its instancetype and preference say, and without naming them."""

from paddock.app.subresources import queries
from paddock.app.subresources.installation import InstallationApi
from paddock.app.subresources.stored import StoredObjects
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.failure import StatusCause
from paddock.kubernetes.schema.finding import Severity
from paddock.kubevirt.admission.machines import looking
from paddock.kubevirt.plan.machine import instancetypes
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import MACHINES


class MachineExpansion:
    def __init__(self, stored: StoredObjects, installation: InstallationApi) -> None:
        self._stored = stored
        self._installation = installation

    async def stored(self, call: RequestContext) -> HttpResponse:
        """A machine that is stored."""
        machine = self._stored.machine_data(call.route.namespace, call.route.name)
        return queries.said(self._expanded(machine))

    async def given(self, call: RequestContext) -> HttpResponse:
        """A machine that is sent along, and is not stored."""
        if not call.request.body.strip():
            raise failure.bad_request("empty request body")
        machine = self._checked(queries.options(call.request))
        namespace = machine["metadata"].get("namespace") or ""
        if namespace not in ("", call.route.namespace):
            raise failure.bad_request(f"VM namespace must be empty or {call.route.namespace}")
        machine["metadata"]["namespace"] = call.route.namespace
        return queries.said(self._expanded(machine))

    def _checked(self, machine: Data) -> Data:
        """The machine as it would be stored; raises 400 with everything that is wrong with it."""
        resource = self._stored.resource(MACHINES)
        is_named = machine.get("kind") == resource.kind and str(machine.get("apiVersion") or "").startswith("kubevirt.io/")
        if not is_named or not isinstance(machine.get("metadata") or {}, dict):
            raise failure.bad_request("Object is not a valid VirtualMachine")
        decoded = resource.pipeline.decode({**machine, "apiVersion": resource.api_version, "metadata": machine.get("metadata") or {}})
        wrong = [each for each in (*decoded.unknown, *decoded.broken, *decoded.wrong) if each.severity is Severity.ERROR]
        if wrong:
            causes = [StatusCause(each.cause.value, each.message, each.field) for each in wrong]
            raise failure.Failure(400, "BadRequest", "Object is not a valid VirtualMachine", causes=causes)
        return decoded.data

    def _expanded(self, machine: Data) -> Data:
        spec, namespace = machine["spec"], machine["metadata"].get("namespace") or ""
        lookup = looking(self._stored.parts.view)
        try:
            found = [instancetypes.find(member, spec, namespace, lookup, machine.get("status")) for member in instancetypes.KINDS]
        except instancetypes.MissingInstancetype as missing:
            raise failure.internal(missing.why) from None
        return instancetypes.expanded_machine(machine, [each for each in found if each is not None], self._installation.default_binding)
