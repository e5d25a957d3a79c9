"""Creation and deletion of machines.

A machine of an owner has the owner's uid as instance UUID, so a create finds it in one query. vCenter keeps one machine of a name in a
folder: of two creates at once one makes the machine, and the other one finds it. A clone carries in its marks what it is to be, so whoever
looks after it next completes it (see `identities` for endpoints that leave the marks out).
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET
from pyVmomi import vim, vmodl

from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock.contract.payloads import ImagePayload, PlacementPayload
from paddock_drivers.kit import description, refusals
from paddock_drivers.vsphere import failures, guestinfo, hardware, identifiers, identities, marks, paths, reconfiguration
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.identities import CloneIdentities
from paddock_drivers.vsphere.inventory import InventoryRow
from paddock_drivers.vsphere.placement import VSpherePlace, VSpherePlacement
from paddock_drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock_drivers.vsphere.target import WHOLE, SeenMachine, VSphereTarget, mark_paths, reference

_GIB = 1 << 30
_GUEST = "otherLinux64Guest"
# Finds the template of an image, or the machine that is one.
Templates = Callable[[ImagePayload], InventoryRow]
_OWNED = mark_paths(marks.OWNER_UID, marks.OWNER, marks.REQUEST)


class VSphereRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A machine to make: its id, what it is to be, its marks, where, and what it is a clone of."""

    id: str
    wanted: MachineDescription
    marks: dict[str, str]
    place: VSpherePlace
    # None: it is made around imported disks
    source: InventoryRow | None


class VSphereCreation:
    def __init__(
        self,
        target: VSphereTarget,
        placement: VSpherePlacement,
        reconfiguration: VSphereReconfiguration,
        identities: CloneIdentities,
        templates: Templates,
    ) -> None:
        self._target = target
        self._placement = placement
        self._reconfiguration = reconfiguration
        self._identities = identities
        self._templates = templates

    def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, off, or answer with the one it has."""
        wanted = description.of_create(request)
        hardware.check(wanted.hardware)
        hardware.check_endpoint(wanted.hardware, self._target.connection.speaks)
        owner = request.owner.uid if request.owner is not None else ""
        # Without an owner, the same request is the same machine.
        key = owner or f"nobody/{wanted.name}/{description.digest(request)}"
        chosen = identifiers.instance_uuid(key)
        found = self._target.find(chosen, WHOLE)
        if found is not None:
            marks.check_owner(found.name, found.marks, request.owner)
            return self._completed(found)
        own = {**marks.of_owner(request.owner), **({} if owner else {marks.REQUEST: description.digest(request)})}
        size = sum(each.size_gib for each in wanted.disks) * _GIB
        place = self._placement.find(_place(wanted), size)
        source = self._templates(wanted.image) if wanted.image.template_name else None
        return self._made(VSphereRecipe(id=chosen, wanted=wanted, marks=own, place=place, source=source))

    def _made(self, recipe: VSphereRecipe) -> m.CreateResponse:
        """Make a machine, or answer for the one that has its name."""
        what, task = f"machine {recipe.wanted.name} cannot be created", None
        spec = _specification(recipe)
        try:
            with failures.mapped(what):
                task = clone(recipe, spec) if recipe.source is not None else self._around(recipe, spec)
            done = self._target.quick(task, what)
        except ProviderError as error:
            if identities.is_duplicate(error):
                return self._named(recipe, error.__cause__, task)
            raise
        if done is None:
            self._identities.begin(spec)
            return m.CreateResponse(id=recipe.id, task=_task(recipe.id, reference(task)))
        return self._identified(recipe, done.result, spec)

    def _identified(self, recipe: VSphereRecipe, ref: Any, spec: Any) -> m.CreateResponse:
        """Answer with a machine that was just made, or left by an earlier attempt, once it has its identity."""
        if recipe.source is not None and not self._identities.give(ref, spec):
            return m.CreateResponse(id=recipe.id, task=_task(recipe.id, ""))
        return self._completed(self._target.machine(recipe.id))

    def _completed(self, seen_machine: SeenMachine) -> m.CreateResponse:
        """Answer with a machine, and go on with one that is not complete."""
        if seen_machine.get("config") is None:
            raise refusals.retry_later(f"machine {seen_machine.name} is being created")
        if self._reconfiguration.finish(seen_machine):
            return m.CreateResponse(id=seen_machine.id)
        return m.CreateResponse(id=seen_machine.id, task=_task(seen_machine.id, ""))

    def _named(self, recipe: VSphereRecipe, error: Any, task: Any) -> m.CreateResponse:
        """Answer for a name that is taken: the owner's own machine, one that an earlier attempt has left, or somebody else's."""
        found = self._target.find(recipe.id, WHOLE)
        if found is not None:
            return self._completed(found)
        name = recipe.wanted.name
        row = self._target.inventory.find(error.object, self._target.readable(("config.instanceUuid", *_OWNED)))
        if row is None or row.get("config.instanceUuid") is None:
            # It is being cloned, and nobody can say yet for whom.
            return m.CreateResponse(id=recipe.id, task=_task(recipe.id, ""))
        if recipe.source is not None and self._identities.is_left(row.ref, recipe.source.ref, task):
            return self._identified(recipe, row.ref, _specification(recipe))
        if (found := self._target.find(recipe.id, WHOLE)) is not None:
            # Another call has just given it its identity.
            return self._completed(found)
        seen = SeenMachine(recipe.id, row.ref, row.properties)
        whose = f"belongs to {seen.marks[marks.OWNER]}" if marks.OWNER in seen.marks else "is not this owner's"
        fix = "rename the VirtualMachine, choose another folder, or adopt that machine"
        raise refusals.conflict(f"machine {name} cannot be created", why=f"one of this name exists in the folder and {whose}", fix=fix)

    def _around(self, recipe: VSphereRecipe, spec: Any) -> Any:
        """A machine that boots from an imported disk, with a controller for it; the other disks come when it is completed."""
        wanted, place = recipe.wanted, recipe.place
        imported = next((each.path for each in wanted.disks if each.path is not UNSET and each.path), "")
        if not wanted.image.path and not imported:
            if wanted.image.url:
                raise refusals.not_supported("a machine cannot be made from a URL", why="vSphere clones templates", fix="prepare the image")
            raise refusals.invalid(f"machine {wanted.name} has nothing to boot from", fix="give it an image or an imported disk")
        first = paths.parse(wanted.image.path) if wanted.image.path else None
        spec.name, spec.guestId = wanted.name, (wanted.hardware.extra_config or {}).get(hardware.GUEST_ID, _GUEST)
        firmware = wanted.hardware.firmware.lower()
        spec.firmware = "efi" if firmware in ("efi", "uefi") else "bios"
        home = first.datastore if first is not None else self._home(place)
        spec.files = vim.vm.FileInfo(vmPathName=f"[{home}]")
        controller = vim.vm.device.ParaVirtualSCSIController(key=-10, busNumber=0, sharedBus="noSharing")
        changes = [vim.vm.device.VirtualDeviceSpec(operation="add", device=controller)]
        if first is not None:
            backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(diskMode="persistent", fileName=str(first))
            disk = vim.vm.device.VirtualDisk(key=-11, controllerKey=-10, unitNumber=0, backing=backing)
            changes.append(vim.vm.device.VirtualDeviceSpec(operation="add", device=disk))
        spec.deviceChange = changes
        return place.folder.CreateVM_Task(spec, place.pool, place.host)

    def _home(self, vsphere_place: VSpherePlace) -> str:
        if vsphere_place.datastore is None:
            raise refusals.invalid("the datastore is not clear", fix="name one in placement.datastore, or in the defaults of the Provider")
        row = self._target.inventory.find(vsphere_place.datastore, ("name",))
        return row.name if row is not None else ""


def _place(description: MachineDescription) -> PlacementPayload:
    """The placement with the datastore that the class's storage class is."""
    if description.datastore == description.placement.datastore:
        return description.placement
    return msgspec.structs.replace(description.placement, datastore=description.datastore, storage_pod="")


def clone(recipe: VSphereRecipe, config: Any) -> Any:
    """Start the task that clones the source of a recipe, with a configuration."""
    place, source = recipe.place, recipe.source
    if source is None:
        raise TypeError("only a recipe with a source is cloned")
    move = "moveAllDiskBackingsAndDisallowSharing"
    location = vim.vm.RelocateSpec(pool=place.pool, host=place.host, datastore=place.datastore, diskMoveType=move)
    spec = vim.vm.CloneSpec(location=location, powerOn=False, template=False, config=config)
    return source.ref.CloneVM_Task(place.folder, recipe.wanted.name, spec)


def _specification(recipe: VSphereRecipe) -> Any:
    """The configuration of a machine from its first moment: identity, marks, size, and the documents for its guest."""
    wanted, source = recipe.wanted, recipe.source
    texts = guestinfo.settings(recipe.id, wanted.name, wanted.user_data, wanted.meta_data, wanted.networks)
    # A clone takes over the settings of its source. Those of a machine hold whose it is, and secrets of its guest.
    others = (*marks.ALL, *guestinfo.KEYS) if source is not None and not source.get("config.template") else ()
    notes = {**dict.fromkeys(others, ""), **recipe.marks, marks.PENDING: reconfiguration.pending(wanted), **texts}
    return vim.vm.ConfigSpec(
        instanceUuid=recipe.id, numCPUs=wanted.hardware.cpu, memoryMB=wanted.hardware.memory_mib, extraConfig=marks.written(notes)
    )


class VSphereDeletion:
    def __init__(self, target: VSphereTarget) -> None:
        self._target = target

    def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks. One that is gone is deleted."""
        found = self._target.find(request.id, WHOLE)
        if found is None:
            return m.TaskResponse()
        marks.check_owner(found.name, found.marks, request.owner)
        task = self.step(found)
        if task is None:
            return m.TaskResponse()
        return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.DELETED, found.id, task))))

    def step(self, seen_machine: SeenMachine) -> str | None:
        """Do what comes next: stop the machine, then destroy it. Returns None when it is gone, otherwise the task that works on it."""
        what = f"machine {seen_machine.name} cannot be deleted"
        runtime = seen_machine.get("runtime")
        if runtime is not None and str(runtime.powerState) != "poweredOff":
            # Somebody else may be faster.
            task = self._tried(seen_machine.ref.PowerOffVM_Task, what, vim.fault.InvalidPowerState)
            if task is not None:
                return task
        return self._tried(seen_machine.ref.Destroy_Task, what, vmodl.fault.ManagedObjectNotFound)

    def _tried(self, act: Callable[[], Any], what: str, harmless: type[Exception]) -> str | None:
        """Start a task and wait a moment. Returns its reference when it still works."""
        try:
            with failures.mapped(what):
                task = act()
            return reference(task) if self._target.quick(task, what) is None else None
        except ProviderError as error:
            if not isinstance(error.__cause__, harmless):
                raise
            return None


def _task(id: str, task: str) -> m.TaskRef:
    return m.TaskRef(id=str(VSphereTaskId(VSphereGoal.CREATED, id, task)))
