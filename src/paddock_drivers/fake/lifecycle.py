"""Machines from their creation to their end: create, delete, power, describe, list."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake import specs
from paddock_drivers.fake.inventory import IMAGE_BYTES, FakeInventory, is_other, named, shown
from paddock_drivers.fake.machines import GIB, OFF, ON, SUSPENDED, FakeDisk, FakeMachine

_GRACE = 60


class FakeLifecycle:
    """The calls about whole machines."""

    def __init__(self, inventory: FakeInventory) -> None:
        self._inventory = inventory

    def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has and the task that still works on it."""
        specs.check_name("name", request.name)
        specs.check_bytes("user_data", request.user_data)
        specs.check_bytes("meta_data", request.meta_data)
        spec = specs.of_create(request.class_json, request.image_json, request.networks_json, request.disks_json, request.placement_json)
        existing = self._existing(request)
        if existing is not None:
            if self._running(existing.delete_task):
                raise ProviderError(ErrorKind.UNAVAILABLE, f"machine {existing.id} is being deleted")
            return m.CreateResponse(id=existing.id, task=self._running(existing.create_task))
        host = self._host(request.target_host_id)
        self._inventory.check_quota(spec.hardware)
        image = self._image(spec)
        for each in spec.disks:
            if each.path and each.path not in self._inventory.disks:
                raise specs.invalid("disks_json", f"there is no imported disk {shown(each.path)}")
        machine = self._inventory.make(request.name, spec.hardware)
        machine.owner, machine.tags, machine.host = request.owner, request.tags, host
        machine.nics = specs.interfaces(spec.nics, machine.number)
        machine.resource_pool, machine.datastore = spec.resource_pool, spec.datastore
        machine.disks = [self._root(machine, spec, image), *self._extra(machine, spec)]
        self._inventory.machines[machine.id] = machine
        task = self._inventory.work(machine, lambda: None, lambda: self._drop(machine))
        machine.create_task = task.id
        return m.CreateResponse(id=machine.id, task=task)

    def _existing(self, request: m.CreateRequest) -> FakeMachine | None:
        found = self._inventory.of_owner(request.owner)
        if found is not None:
            return found
        found = self._inventory.named(request.name)
        owned = request.owner is not None and bool(request.owner.uid)
        if found is None or (not owned and found.owner is None):
            return found
        raise ProviderError(ErrorKind.CONFLICT, f"a machine named {found.name} exists", why=named(found.owner), fix="choose another name")

    def _running(self, task: str) -> m.TaskRef | None:
        """The task, unless it has ended."""
        return m.TaskRef(id=task) if task and not self._inventory.tasks.status(task).done else None

    def _host(self, wanted: str) -> str:
        hosts = self._inventory.settings.hosts
        if not wanted:
            return hosts[0].id if hosts else ""
        if wanted not in {each.id for each in hosts}:
            raise specs.invalid("target_host_id", f"there is no host {shown(wanted)}")
        return wanted

    def _image(self, spec: specs.FakeSpec) -> FakeDisk | None:
        """The disk of a prepared image or an imported one; None for an image that only has a name."""
        image, settings = spec.image, self._inventory.settings
        if image.path and image.path in self._inventory.disks:
            return self._inventory.disks[image.path]
        for name, prepared in self._inventory.images.items():
            if image.template_name == name or (image.path and image.path == prepared.disk.path):
                return prepared.disk
        if image.template_name and _matches_any(image.template_name, settings.templates):
            return None
        if (image.path and _matches_any(image.path, settings.paths)) or image.url:
            return None
        if not (image.template_name or image.path):
            raise specs.invalid("image_json", "it names no template, path or URL")
        raise specs.invalid("image_json", f"there is no image {shown(image.template_name or image.path)}")

    def _root(self, machine: FakeMachine, spec: specs.FakeSpec, image: FakeDisk | None) -> FakeDisk:
        size = max(spec.hardware.root_gib * GIB, image.size if image else 0) or IMAGE_BYTES
        root = self._inventory.make_disk(machine, "root", size, spec.root_type)
        if image is not None:
            root.data = image.data
            if self._inventory.disks.pop(image.path, None) is not None:
                # An imported disk becomes the machine's own, and goes with it.
                root.id, root.path = image.id, image.path
        return root

    def _extra(self, machine: FakeMachine, spec: specs.FakeSpec) -> list[FakeDisk]:
        return [self._inventory.make_data_disk(machine, each) for each in spec.disks]

    def _drop(self, machine: FakeMachine) -> None:
        self._inventory.machines.pop(machine.id, None)

    def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Delete a machine with its disks and snapshots, running or not. One that does not exist is deleted already."""
        found = self._inventory.machines.get(request.id)
        if found is None:
            return m.TaskResponse()
        machine = self._inventory.machine(request.id, request.owner)
        task = self._running(machine.delete_task)
        if task is None:
            task = self._inventory.work(machine, lambda: self._drop(machine))
            machine.delete_task = task.id
        return m.TaskResponse(task=task)

    # --- power ------------------------------------------------------------------------------------------------------------

    def power(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change the power. A state that the machine has already is success, with nothing to do."""
        machine = self._inventory.machine(request.id, request.owner)
        if request.op not in (m.PowerOp.ON, m.PowerOp.OFF, m.PowerOp.REBOOT, m.PowerOp.SHUTDOWN_GRACEFUL):
            raise specs.invalid("op", "it is none of ON, OFF, REBOOT and SHUTDOWN_GRACEFUL")
        if machine.busy_until <= self._inventory.clock.seconds() and _has(machine, request.op):
            return m.TaskResponse()
        seconds = self._shutdown_seconds(machine, request) if request.op is m.PowerOp.SHUTDOWN_GRACEFUL else None
        return m.TaskResponse(task=self._inventory.work(machine, lambda: self._set_power(machine, request.op), seconds=seconds))

    def _shutdown_seconds(self, machine: FakeMachine, request: m.PowerRequest) -> float:
        """The guest's time to shut down, or the timeout after which it is forced off."""
        settings = self._inventory.settings
        timeout = request.graceful_timeout_seconds if request.graceful_timeout_seconds > 0 else _GRACE
        hangs = _matches_any(machine.name, (settings.hanging_guests,)) or machine.power == SUSPENDED
        return float(timeout) if hangs else min(settings.shutdown_seconds, timeout)

    def _set_power(self, machine: FakeMachine, op: m.PowerOp) -> None:
        if op is m.PowerOp.REBOOT and machine.power == OFF:
            raise ProviderError(ErrorKind.CONFLICT, f"machine {machine.id} cannot reboot", why="it is off", fix="power it on")
        if op in (m.PowerOp.OFF, m.PowerOp.SHUTDOWN_GRACEFUL):
            machine.power = OFF
        elif op is m.PowerOp.REBOOT or machine.power != ON:
            machine.boot(self._inventory.clock.seconds(), self._inventory.settings.address_seconds)

    # --- reading ----------------------------------------------------------------------------------------------------------

    def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """The state of a machine. One that another owner has is an error, not a missing one."""
        machine = self._inventory.machines.get(request.id)
        if machine is None:
            return m.DescribeResponse(exists=False)
        if is_other(machine.owner, request.owner):
            raise ProviderError(ErrorKind.CONFLICT, f"machine {machine.id} belongs to another owner", why=named(machine.owner))
        return m.DescribeResponse(
            exists=True,
            power_state=machine.power,
            ips=machine.addresses(self._inventory.clock.seconds()),
            console_url=f"https://fake.invalid/console/{machine.id}",
            provider_raw_json=msgspec.json.encode(self._raw(machine)).decode(),
        )

    def _raw(self, machine: FakeMachine) -> dict[str, str]:
        raw = {
            "cpu": str(machine.hardware.cpu),
            "memoryMiB": str(machine.hardware.memory_mib),
            "disks": str(len(machine.disks)),
            "snapshots": str(len(machine.snapshots)),
            "boots": str(machine.boots),
        }
        raw |= {name: value for name, value in (("host", machine.host), ("datastore", machine.datastore)) if value}
        return raw | ({"clonedFrom": machine.cloned_from} if machine.cloned_from else {})

    def list_vms(self) -> m.ListVMsResponse:
        """Every machine, also those that nobody owns."""
        return m.ListVMsResponse(vms=tuple(self._info(each) for each in self._inventory.machines.values()))

    def _info(self, machine: FakeMachine) -> m.VMInfo:
        addresses = machine.addresses(self._inventory.clock.seconds())
        return m.VMInfo(
            id=machine.id,
            name=machine.name,
            power_state=machine.power,
            ips=addresses,
            cpu=machine.hardware.cpu,
            memory_mib=machine.hardware.memory_mib,
            disks=tuple(m.VMDiskInfo(id=each.id, path=each.path, size_gib=-(-each.size // GIB), format="qcow2") for each in machine.disks),
            networks=tuple(
                m.VMNetworkInfo(name=nic.name, mac=nic.mac, ip_address=addresses[0] if addresses and index == 0 else "")
                for index, nic in enumerate(machine.nics)
            ),
            provider_raw={**self._raw(machine), m.OWNER_UID: machine.owner.uid if machine.owner is not None else ""},
        )


def _has(machine: FakeMachine, op: m.PowerOp) -> bool:
    """Return True if the machine has the power that is asked for."""
    if op is m.PowerOp.ON:
        return machine.power == ON
    return op is not m.PowerOp.REBOOT and machine.power == OFF


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return True if one of the patterns matches; an empty one matches nothing."""
    return any(each and fnmatchcase(name, each) for each in patterns)
