"""Reconfiguration: the difference between a machine and its desired state, and whether it can be applied while the machine runs.

The answer is honest: a change that only a stopped machine can take is refused while it runs, and nothing of the request is applied.
"""

import copy

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake import specs
from paddock_drivers.fake.inventory import FakeInventory
from paddock_drivers.fake.machines import GIB, OFF, FakeDisk, FakeMachine


class FakeReconfiguration:
    """The calls that change a machine's hardware."""

    def __init__(self, inventory: FakeInventory) -> None:
        self._inventory = inventory

    def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state, all of it or nothing."""
        machine = self._inventory.machine(request.id, request.owner)
        spec = specs.of_desired(request.desired_json)
        self._check(machine, spec)
        if machine.busy_until <= self._inventory.clock.seconds() and not self._differs(machine, spec):
            return m.TaskResponse()
        return m.TaskResponse(task=self._inventory.work(machine, lambda: self._apply(machine, spec)))

    def hardware_upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Give a stopped machine a newer version of virtual hardware."""
        machine = self._inventory.machine(request.id)
        if request.target_version <= machine.hardware.version:
            raise specs.invalid("target_version", f"the machine has version {machine.hardware.version}")
        if machine.power != OFF:
            raise _running(machine, "the version of its hardware")

        def upgrade() -> None:
            machine.hardware.version = request.target_version

        return m.TaskResponse(task=self._inventory.work(machine, upgrade))

    # --- deciding ---------------------------------------------------------------------------------------------------------

    def _check(self, machine: FakeMachine, spec: specs.FakeSpec) -> None:
        """Raise `ProviderError` for a change that cannot be applied, whatever the machine does, or while it runs."""
        wanted = spec.hardware
        if wanted.root_gib and wanted.root_gib < machine.hardware.root_gib:
            raise specs.invalid("Class.DiskDefaults.SizeGiB", "a disk cannot shrink")
        for each in spec.disks:
            disk = _disk(machine, each.name)
            if disk is not None and each.size_gib * GIB < disk.size:
                raise specs.invalid(f"disk {each.name}", "a disk cannot shrink")
        self._inventory.check_quota(wanted, instead_of=machine)
        if machine.power != OFF:
            self._check_online(machine, spec)

    def _check_online(self, machine: FakeMachine, spec: specs.FakeSpec) -> None:
        have, wanted, can = machine.hardware, spec.hardware, self._inventory.capabilities
        for name, before, after, hot in (
            ("CPUs", have.cpu, wanted.cpu, have.hot_add_cpu),
            ("memory", have.memory_mib, wanted.memory_mib, have.hot_add_memory),
        ):
            if after != before and not (can.supports_reconfigure_online and hot and after > before):
                raise _running(machine, f"its {name} from {before} to {after}")
        if not can.supports_disk_expansion_online and self._grows(machine, spec):
            raise _running(machine, "the size of its disks")

    def _grows(self, machine: FakeMachine, spec: specs.FakeSpec) -> bool:
        sizes = [(_disk(machine, each.name), each.size_gib) for each in spec.disks]
        grown = any(disk is not None and size * GIB > disk.size for disk, size in sizes)
        return grown or spec.hardware.root_gib * GIB > machine.disks[0].size

    def _differs(self, machine: FakeMachine, spec: specs.FakeSpec) -> bool:
        have, wanted = machine.hardware, spec.hardware
        names = {each.name for each in machine.disks[1:]}
        flags = (have.hot_add_cpu, have.hot_add_memory) != (wanted.hot_add_cpu, wanted.hot_add_memory)
        sizes = (have.cpu, have.memory_mib) != (wanted.cpu, wanted.memory_mib)
        return flags or sizes or names != {each.name for each in spec.disks} or self._grows(machine, spec)

    # --- applying ---------------------------------------------------------------------------------------------------------

    def _apply(self, machine: FakeMachine, spec: specs.FakeSpec) -> None:
        # The machine may have been started since the call.
        self._check(machine, spec)
        have, wanted = machine.hardware, spec.hardware
        hardware = copy.copy(wanted)
        hardware.version, hardware.root_gib = have.version, max(have.root_gib, wanted.root_gib)
        if machine.power != OFF:
            # A guest finds hot-add switched on at its next start.
            hardware.hot_add_cpu, hardware.hot_add_memory = have.hot_add_cpu, have.hot_add_memory
        machine.hardware = hardware
        machine.disks[0].size = max(machine.disks[0].size, wanted.root_gib * GIB)
        for each in spec.disks:
            disk = _disk(machine, each.name)
            if disk is None:
                machine.disks.append(self._inventory.make_data_disk(machine, each))
            else:
                disk.size = each.size_gib * GIB
        self._detach(machine, {each.name for each in spec.disks})
        if spec.nics:
            known = {nic.name: nic for nic in machine.nics}
            made = specs.interfaces(spec.nics, machine.number)
            machine.nics = tuple(msgspec.structs.replace(nic, mac=known[nic.name].mac) if nic.name in known else nic for nic in made)

    def _detach(self, machine: FakeMachine, kept: set[str]) -> None:
        """Take away the disks that are no longer wanted. Their data stays."""
        gone = [each for each in machine.disks[1:] if each.name not in kept]
        for each in gone:
            machine.disks.remove(each)
            self._inventory.disks[each.path] = each


def _disk(machine: FakeMachine, name: str) -> FakeDisk | None:
    return next((each for each in machine.disks[1:] if each.name == name), None)


def _running(machine: FakeMachine, what: str) -> ProviderError:
    return ProviderError(ErrorKind.CONFLICT, f"machine {machine.id} cannot change {what}", why="it is running", fix="power it off first")
