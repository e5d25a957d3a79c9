"""memorydump and removememorydump: which claim the guest's memory is to be written to, or not any more.

Both are wishes in the machine's status, which the controller of machines carries out. What could not succeed is refused here.
"""

from paddock.app.subresources import queries
from paddock.app.subresources.instances import NOT_RUNNING, phase_of
from paddock.app.subresources.stored import StoredObjects, conflict
from paddock.base import quantity
from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import failure
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import INSTANCES, MACHINES

_CLAIM = failure.FailureTarget(group="kubevirt.io", kind="persistentvolumeclaim")
ASSOCIATING, COMPLETED, FAILED, DISSOCIATING = "Associating", "Completed", "Failed", "Dissociating"
# What a dump has besides the guest's memory, and what the file system takes of a claim where CDI's configuration does not say it.
_BESIDES_BYTES = 100 * 1024 * 1024
_DEFAULT_OVERHEAD = 0.06


class MemoryDumps:
    def __init__(self, stored: StoredObjects) -> None:
        self._stored = stored

    async def request(self, call: RequestContext) -> HttpResponse:
        given = queries.needed(call.request)
        place = (call.route.namespace, call.route.name)
        before = _request_of(self._stored.machine_data(*place))
        claim = queries.text(given, "claimName")
        associated = str(before.get("claimName") or "")
        if not claim and not associated:
            raise failure.bad_request("Memory dump requires claim name to be set")
        if claim and associated and claim != associated:
            why = f"can't request memory dump for pvc [{claim}] while pvc [{associated}] is still associated as the memory dump pvc"
            raise conflict(MACHINES, place[1], why)
        claim = claim or associated
        instance = self._stored.instance(*place)
        if phase_of(instance) != "Running":
            raise conflict(INSTANCES, place[1], NOT_RUNNING)
        self._check_claim(instance, place[0], claim)

        def change(old: Data) -> Data:
            phase = _request_of(old).get("phase")
            if phase == DISSOCIATING:
                why = f"can't dump memory for pvc [{claim}] a remove memory dump request is in progress"
                raise conflict(MACHINES, place[1], why)
            if phase not in (None, COMPLETED, FAILED):
                raise conflict(MACHINES, place[1], f"memory dump request for pvc [{claim}] already in progress")
            return _with_request(old, {"claimName": claim, "phase": ASSOCIATING})

        await self._stored.edit(MACHINES, place, change, sub="status", dry_run=queries.is_dry(given))
        return queries.accepted()

    async def remove(self, call: RequestContext) -> HttpResponse:
        """Let the claim go; the dump on it stays."""
        place = (call.route.namespace, call.route.name)
        self._stored.machine_data(*place)

        def change(old: Data) -> Data:
            before = _request_of(old)
            if not before:
                why = f"can't remove memory dump association for vm {place[1]}, no association found"
                raise conflict(MACHINES, place[1], why)
            claim = str(before.get("claimName") or "")
            if before.get("remove"):
                raise conflict(MACHINES, place[1], f"memory dump remove request for pvc [{claim}] already exists")
            return _with_request(old, {"claimName": claim, "phase": DISSOCIATING, "remove": True})

        await self._stored.edit(MACHINES, place, change, sub="status")
        return queries.accepted()

    def _check_claim(self, instance: VirtualMachineInstance, namespace: str, name: str) -> None:
        found = self._stored.find("persistentvolumeclaims", namespace, name)
        about = failure.FailureTarget(name=name, group=_CLAIM.group, kind=_CLAIM.kind)
        if found is None:
            raise failure.not_found(about)
        spec = found.get("spec") or {}
        if spec.get("volumeMode") == "Block":
            raise failure.conflict(about, "pvc should be filesystem pvc")
        if spec.get("accessModes") == ["ReadOnlyMany"]:
            raise failure.conflict(about, "pvc access mode can't be read only")
        sizes = (found.get("status") or {}).get("capacity") or (spec.get("resources") or {}).get("requests") or {}
        has = quantity.whole(str(sizes.get("storage") or "0"))
        needs = int(dump_bytes(instance) * (1 + self._overhead(str(spec.get("storageClassName") or ""))))
        if has < needs:
            raise failure.conflict(about, f"pvc size [{has}] should be bigger then [{needs}]")

    def _overhead(self, storage_class: str) -> float:
        """The part of a claim that its file system takes."""
        config = self._stored.find("cdiconfigs.cdi.kubevirt.io", "", "config") or {}
        said = (config.get("status") or {}).get("filesystemOverhead") or {}
        value = (said.get("storageClass") or {}).get(storage_class) or said.get("global")
        try:
            return float(value) if value is not None else _DEFAULT_OVERHEAD
        except ValueError:
            return _DEFAULT_OVERHEAD


def dump_bytes(instance: VirtualMachineInstance) -> int:
    """The least that a claim for the dump of an instance asks for.

    virtctl makes its claims by this rule, which looks at the request for memory and not at the guest's; they have to be taken. Files on
    a claim are not held to its size on this host, so the dump is whole in any case.
    """
    resources = instance.spec.domain.resources
    asked = (resources.requests or {}).get("memory") if resources is not None else None
    return quantity.whole(str(asked or "0")) + _BESIDES_BYTES


def _request_of(machine: Data) -> Data:
    found: Data = (machine.get("status") or {}).get("memoryDumpRequest") or {}
    return found


def _with_request(machine: Data, request: Data) -> Data:
    new: Data = copied(machine)
    new.setdefault("status", {})["memoryDumpRequest"] = request
    return new
