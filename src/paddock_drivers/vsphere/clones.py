"""Cloning machines. For threads.

A clone has an instance UUID that follows from whom it is for, so a call that is repeated finds it, also when its source is gone. What is
different about it is part of its first specification (see `identities` for endpoints that leave it out); addresses for cards that have no
MAC address yet come when it is complete.
"""

import json
from typing import Any

from pyVmomi import vim

from paddock.base import names
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock.contract.payloads import ClassPayload, ImagePayload, PlacementPayload
from paddock_drivers.kit import customization, refusals
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.vsphere import failures, guestinfo, identifiers, identities, marks, networks, reconfiguration, snapshots
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.identities import CloneIdentities
from paddock_drivers.vsphere.placement import VSpherePlace, VSpherePlacement
from paddock_drivers.vsphere.reconfiguration import VSphereReconfiguration
from paddock_drivers.vsphere.snapshots import VSphereSnapshots
from paddock_drivers.vsphere.target import WHOLE, SeenMachine, VSphereTarget, reference

_LONGEST_NAME = 63
_CLONE = "clone"
# What a source has of its own and a clone must not have.
_NOT_COPIED = (marks.OWNER_UID, marks.OWNER, marks.REQUEST, marks.PENDING, marks.TAGS, marks.CHECKSUM)
# Copies, and deltas of a snapshot.
_FULL, _LINKED = "moveAllDiskBackingsAndDisallowSharing", "createNewChildDiskBacking"
_ADDRESSES = "addresses"


class VSphereCloning:
    def __init__(
        self,
        target: VSphereTarget,
        snapshots: VSphereSnapshots,
        placement: VSpherePlacement,
        reconfiguration: VSphereReconfiguration,
        identities: CloneIdentities,
    ) -> None:
        self._target = target
        self._snapshots = snapshots
        self._placement = placement
        self._reconfiguration = reconfiguration
        self._identities = identities

    def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine, off. A call that is repeated answers with the clone that it began."""
        name = request.target_name
        if not names.is_subdomain(name) or len(name) > _LONGEST_NAME:
            raise refusals.invalid(f'a machine cannot be called "{name}"', fix="use lower-case letters, digits, '-' and '.'")
        chosen = identifiers.instance_uuid(_key(request))
        found = self._target.find(chosen, WHOLE)
        if found is not None:
            return self._completed(found, request)
        source = self._target.machine(request.source_vm_id)
        if source.get("config") is None:
            raise refusals.conflict(f"machine {source.name} cannot be cloned", why="its host is not connected")
        given = customization.read(request.class_json, request.customize_json)
        config = self._configuration(request, source, given, chosen)
        return self._made(request, source, config, self._snapshot(request, given.snapshot, chosen))

    def _made(self, request: m.CloneRequest, source: SeenMachine, config: Any, snapshot: Any) -> m.CloneResponse:
        """Make a clone, or answer for the machine that has its name."""
        what, task = f"machine {source.name} cannot be cloned", None
        try:
            with failures.mapped(what):
                task = self._started(request, source, config, snapshot)
            done = self._target.quick(task, what)
        except ProviderError as error:
            if identities.is_duplicate(error):
                return self._named(request, source, config, error.__cause__, task)
            raise
        if done is None:
            self._identities.begin(config)
            return _response(config.instanceUuid, reference(task))
        return self._identified(request, done.result, config)

    def _identified(self, request: m.CloneRequest, ref: Any, config: Any) -> m.CloneResponse:
        """Answer with a clone that was just made, or left by an earlier attempt, once it has its identity."""
        if not self._identities.give(ref, config):
            return _response(config.instanceUuid, "")
        return self._completed(self._target.machine(config.instanceUuid), request)

    def _completed(self, seen_machine: SeenMachine, request: m.CloneRequest) -> m.CloneResponse:
        """Answer with a clone, and go on with one that is not complete."""
        if seen_machine.get("config") is None:
            return _response(seen_machine.id, "")
        if seen_machine.marks.get(marks.SOURCE) != request.source_vm_id:
            what = f"machine {seen_machine.name} exists and is a clone of another machine"
            raise refusals.conflict(what, fix="choose another name, or delete that clone")
        return (
            m.CloneResponse(target_vm_id=seen_machine.id) if self._reconfiguration.finish(seen_machine) else _response(seen_machine.id, "")
        )

    def _named(self, request: m.CloneRequest, source: SeenMachine, config: Any, error: Any, task: Any) -> m.CloneResponse:
        """Answer for a name that is taken: by a clone of another call of this kind, or by somebody else's machine."""
        found = self._target.find(config.instanceUuid, WHOLE)
        if found is not None:
            return self._completed(found, request)
        row = self._target.inventory.find(error.object, ("config.instanceUuid",))
        if row is None or row.get("config.instanceUuid") is None:
            # It is being made, and nobody can say yet for whom.
            return _response(config.instanceUuid, "")
        if self._identities.is_left(row.ref, source.ref, task):
            return self._identified(request, row.ref, config)
        if (found := self._target.find(config.instanceUuid, WHOLE)) is not None:
            # Another call has just given it its identity.
            return self._completed(found, request)
        what = f"machine {request.target_name} exists and is no clone for this owner"
        raise refusals.conflict(what, fix="choose another name")

    # --- the clone ----------------------------------------------------------------------------------------------------------------

    def _snapshot(self, request: m.CloneRequest, wanted: str, chosen: str) -> Any:
        """The snapshot that a clone is made of; a linked clone of the machine as it is gets one of its own."""
        machine = self._snapshots.machine(request.source_vm_id)
        if wanted:
            return snapshots.named(machine, wanted).ref
        if not request.linked:
            return None
        order = m.SnapshotCreateRequest(
            vm_id=request.source_vm_id,
            name_hint=f"clone-{chosen}",
            description=f"The disks of the linked clone {request.target_name} are based on it.",
        )
        made = self._snapshots.create(order)
        task = VSphereTaskId.parse(made.task.id) if made.task is not None else None
        if task is not None and self._target.quick(self._target.task(task.task), "the machine cannot be cloned") is None:
            raise refusals.retry_later("the snapshot that the clone is based on is being taken")
        return snapshots.named(self._snapshots.machine(request.source_vm_id), made.snapshot_id).ref

    def _started(self, request: m.CloneRequest, source: SeenMachine, config: Any, snapshot: Any) -> Any:
        place = self._place(request, source)
        location = vim.vm.RelocateSpec(
            pool=place.pool, host=place.host, datastore=place.datastore, diskMoveType=_LINKED if request.linked else _FULL
        )
        spec = vim.vm.CloneSpec(location=location, powerOn=False, template=False, config=config, snapshot=snapshot)
        return source.ref.CloneVM_Task(place.folder, request.target_name, spec)

    def _place(self, request: m.CloneRequest, source: SeenMachine) -> VSpherePlace:
        """Beside the source, unless the request says another place."""
        wanted = payloads.decode(request.placement_json, PlacementPayload)
        if wanted != PlacementPayload():
            return self._placement.find(wanted)
        parent = source.get("parent")
        folder = parent if isinstance(parent, vim.Folder) else self._placement.folder(PlacementPayload())
        pool = source.get("resourcePool")
        return VSpherePlace(folder=folder, pool=pool) if pool is not None else self._placement.find(wanted)

    def _configuration(self, request: m.CloneRequest, source: SeenMachine, customization: CloneCustomization, chosen: str) -> Any:
        """The configuration of a clone from its first moment: identity, size, and the documents for its guest."""
        has = source.get("config")
        cards = networks.named(has.hardware.device, _keys(source))
        strange = next((each.name for each in customization.networks if each.name not in cards), None)
        if strange is not None:
            raise refusals.invalid(f'customization.networks: the machine has no network "{strange}"')
        hardware = customization.hardware or ClassPayload(cpu=has.hardware.numCPU, memory_mib=has.hardware.memoryMB)
        late = any(each.static_ip and not each.mac_address for each in customization.networks)
        wanted = MachineDescription(name=request.target_name, hardware=hardware, image=ImagePayload(), networks=customization.networks)
        texts = guestinfo.settings(
            chosen, customization.hostname or request.target_name, customization.user_data, b"", customization.networks
        )
        notes = {
            **dict.fromkeys(_NOT_COPIED, ""),
            # Settings of a source go to its clone, but not of every kind of endpoint.
            **{key: source.marks[key] for key in (marks.DISKS, marks.CARDS) if key in source.marks},
            marks.PURPOSE: _CLONE,
            marks.SOURCE: request.source_vm_id,
            marks.LIMITATIONS: json.dumps(list(customization.limitations)) if customization.limitations else "",
            **({marks.PENDING: reconfiguration.pending(wanted, step=_ADDRESSES)} if late else {}),
            **texts,
        }
        config = vim.vm.ConfigSpec(instanceUuid=chosen, extraConfig=marks.written(notes))
        if customization.hardware is not None:
            config.numCPUs, config.memoryMB = hardware.cpu, hardware.memory_mib
            if hardware.cpu % (has.hardware.numCoresPerSocket or 1):
                config.numCoresPerSocket = 1
        config.deviceChange = _addressed(customization, cards)
        return config


def _addressed(customization: CloneCustomization, cards: dict[str, Any]) -> list[Any]:
    """The changes of the cards whose MAC addresses are given."""
    made = []
    for each in customization.networks:
        if each.mac_address:
            nic = cards[each.name]
            nic.addressType, nic.macAddress = "manual", each.mac_address.lower().replace("-", ":")
            made.append(vim.vm.device.VirtualDeviceSpec(operation="edit", device=nic))
    return made


def _keys(source: SeenMachine) -> dict[str, int]:
    return {str(name): key for name, key in marks.loaded(source.marks, marks.CARDS, dict).items() if isinstance(key, int)}


def _key(request: m.CloneRequest) -> str:
    """Return the text that stays the same when a call is repeated: it names whom the clone is for."""
    whose = request.target_vm or m.ObjectIdentity()
    return json.dumps(["clone", whose.namespace, whose.name, request.target_name, "" if request.target_vm else request.source_vm_id])


def _response(chosen: str, task: str) -> m.CloneResponse:
    return m.CloneResponse(target_vm_id=chosen, task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.CLONED, chosen, task))))
