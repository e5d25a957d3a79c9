"""addvolume and removevolume: a disk is plugged into a machine, and stays in its template, or into an instance alone.

What runs is changed by the controller of instances, which sees the volumes of the instance's spec change; here they are written.
"""

from collections.abc import Callable

from paddock.app.subresources import queries
from paddock.app.subresources.instances import NOT_RUNNING, SUSPENDED
from paddock.app.subresources.stored import StoredObjects, conflict
from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import failure
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.suspension import is_suspended, is_wished
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import INSTANCES, MACHINES

# What an instance in one of these phases has is given up with it.
_LIVE = ("Pending", "Scheduling", "Scheduled", "Running")
Edit = Callable[[Data], Data]


class VolumeRequests:
    def __init__(self, stored: StoredObjects) -> None:
        self._stored = stored

    async def add_to_machine(self, call: RequestContext) -> HttpResponse:
        """Plug into the machine, running or not, and keep it."""
        given, wanted = _wanted(call)
        return await self._change_machine(call, lambda spec: added(spec, wanted), _has(wanted["volume"]["name"]), queries.is_dry(given))

    async def remove_from_machine(self, call: RequestContext) -> HttpResponse:
        """Unplug from the machine, running or not, for good."""
        given, name = _named(call)
        there = _has(name)
        return await self._change_machine(call, lambda spec: removed(spec, name), lambda spec: not there(spec), queries.is_dry(given))

    async def add_to_instance(self, call: RequestContext) -> HttpResponse:
        """Plug into what runs, until it ends."""
        given, wanted = _wanted(call)
        return await self._change_instance(call, lambda spec: added(spec, wanted), queries.is_dry(given))

    async def remove_from_instance(self, call: RequestContext) -> HttpResponse:
        given, name = _named(call)
        return await self._change_instance(call, lambda spec: removed(spec, name), queries.is_dry(given))

    async def _change_machine(self, call: RequestContext, edit: Edit, is_done: Callable[[Data], bool], dry_run: bool) -> HttpResponse:
        place = (call.route.namespace, call.route.name)
        self._stored.machine_data(*place)

        def change(old: Data) -> Data:
            new: Data = copied(old)
            template = new["spec"].setdefault("template", {})
            template["spec"] = _refusing(MACHINES, place[1], lambda: edit(template.get("spec") or {}))
            return new

        instance = self._stored.instance_if_any(*place)
        if instance is not None:
            _demand_awake(instance)
        await self._stored.edit(MACHINES, place, change, dry_run=dry_run)
        instance = self._stored.instance_if_any(*place)
        if instance is not None and (instance.status.phase if instance.status else "") in _LIVE and not instance.metadata.deletionTimestamp:
            # Somebody may have brought the change there already, or it may have ended meanwhile.
            try:
                await self._stored.edit(INSTANCES, place, lambda old: old if is_done(old["spec"]) else _of_spec(old, edit), dry_run=dry_run)
            except failure.Failure as said:
                if said.code != 404:
                    raise
            except _Unfit as error:
                raise conflict(INSTANCES, place[1], str(error)) from None
        return queries.accepted()

    async def _change_instance(self, call: RequestContext, edit: Edit, dry_run: bool) -> HttpResponse:
        place = (call.route.namespace, call.route.name)
        instance = self._stored.instance(*place)
        if (instance.status.phase if instance.status else "") != "Running":
            raise conflict(INSTANCES, place[1], NOT_RUNNING)
        _demand_awake(instance)

        def change(old: Data) -> Data:
            return _refusing(INSTANCES, place[1], lambda: _of_spec(old, edit))

        await self._stored.edit(INSTANCES, place, change, dry_run=dry_run)
        return queries.accepted()


def _demand_awake(instance: VirtualMachineInstance) -> None:
    """Raise 409 if the guest is on disk: it has to find the disks that it had."""
    if is_suspended(instance) or is_wished(instance.metadata.annotations):
        raise conflict(INSTANCES, instance.metadata.name, f"{SUSPENDED}, and its disks stay until it is resumed or discarded")


class _Unfit(Exception):
    """The volumes are not such that it can be done."""


def _refusing(plural: str, name: str, work: Callable[[], Data]) -> Data:
    try:
        return work()
    except _Unfit as error:
        raise conflict(plural, name, str(error)) from None


def _of_spec(old: Data, edit: Edit) -> Data:
    return {**copied(old), "spec": edit(copied(old["spec"]))}


def _wanted(call: RequestContext) -> tuple[Data, Data]:
    """The options of a request to add, and the disk and volume they describe."""
    given = _body(call)
    name = queries.text(given, "name")
    if not name:
        raise failure.bad_request("AddVolumeOptions requires name to be set")
    disk, source = given.get("disk"), given.get("volumeSource")
    if not isinstance(disk, dict):
        raise failure.bad_request("AddVolumeOptions requires disk to not be nil")
    if not isinstance(source, dict):
        raise failure.bad_request("AddVolumeOptions requires VolumeSource to not be nil")
    kind = next((each for each in ("dataVolume", "persistentVolumeClaim") if isinstance(source.get(each), dict)), None)
    if kind is None:
        raise failure.bad_request("AddVolumeOptions requires VolumeSource to name a dataVolume or a persistentVolumeClaim")
    volume = {"name": name, kind: {**source[kind], "hotpluggable": True}}
    return given, {"disk": {**disk, "name": name}, "volume": volume}


def _named(call: RequestContext) -> tuple[Data, str]:
    given = _body(call)
    name = queries.text(given, "name")
    if not name:
        raise failure.bad_request("RemoveVolumeOptions requires name to be set")
    return given, name


def _body(call: RequestContext) -> Data:
    if not call.request.body.strip():
        raise failure.bad_request("Request with no body, a new name is expected as the request body")
    return queries.options(call.request)


def _has(name: str) -> Callable[[Data], bool]:
    return lambda spec: any(each.get("name") == name for each in spec.get("volumes") or ())


def added(spec: Data, wanted: Data) -> Data:
    """The spec of an instance or of a template with a disk and its volume more; changed in place."""
    volume = wanted["volume"]
    source = _source_of(volume)
    for each in spec.get("volumes") or ():
        if each.get("name") == volume["name"]:
            raise _Unfit(f"Unable to add volume [{volume['name']}] because volume with that name already exists")
        if source and _source_of(each) == source:
            raise _Unfit(f"Unable to add volume source [{source}] because it already exists")
    devices = spec.setdefault("domain", {}).setdefault("devices", {})
    disks = [each for each in devices.get("disks") or () if each.get("name") != volume["name"]]
    devices["disks"] = [*disks, wanted["disk"]]
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]
    return spec


def removed(spec: Data, name: str) -> Data:
    """The spec without a volume that was plugged, and without its disk; changed in place."""
    found = next((each for each in spec.get("volumes") or () if each.get("name") == name), None)
    if found is None:
        raise _Unfit(f"Unable to remove volume [{name}] because it does not exist")
    if not _is_hotpluggable(found):
        raise _Unfit(f"Unable to remove volume [{name}] because it is not hotpluggable")
    spec["volumes"] = [each for each in spec["volumes"] if each.get("name") != name]
    devices = (spec.get("domain") or {}).get("devices") or {}
    devices["disks"] = [each for each in devices.get("disks") or () if each.get("name") != name]
    return spec


def _source_of(volume: Data) -> str:
    """The claim that a volume is on: a DataVolume fills the claim of its own name."""
    data_volume, claim = volume.get("dataVolume"), volume.get("persistentVolumeClaim")
    return str((data_volume or {}).get("name") or (claim or {}).get("claimName") or "")


def _is_hotpluggable(volume: Data) -> bool:
    source = volume.get("dataVolume") or volume.get("persistentVolumeClaim") or volume.get("memoryDump") or {}
    return source.get("hotpluggable") is True
