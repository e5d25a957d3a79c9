"""Machines of Stakater as the commands and the console read and write them. Pure."""

from collections.abc import Collection, Iterator

from paddock.base.jsondata import Data, at, entries, texts
from paddock.kubevirt.plan.changes.adapters import (
    POD,
    ROOT,
    ChangeRefused,
    DiskWish,
    FieldChange,
    MachineAdapter,
    NicWish,
    Power,
    PowerCall,
    StrategyWords,
    WrittenMachine,
    check_new_disk,
    check_new_nic,
    cpu_at,
    grace_at,
    named,
    place,
    run_strategy_at,
    text_at,
    unknown_disk,
)

_STRATEGY = ("spec", "parameters", "runStrategy")
# Stakater's default, and the one that a machine gets that was halted.
_RUNS = "RerunOnFailure"


class StakaterAdapter(MachineAdapter):
    """Everything is in `spec.parameters`."""

    cpus = (("status", "vm", "cpuCores"), ("spec", "parameters", "cpu"))
    memory = (("spec", "parameters", "memory", "guest"), ("status", "vm", "memory"))
    disks = ("spec", "parameters", "additionalDisks")
    nics = ("spec", "parameters", "networks")
    sizes = {
        "cpu": cpu_at("spec", "parameters", "cpu"),
        "mem": text_at("spec", "parameters", "memory", "guest"),
        "run": run_strategy_at("spec", "parameters"),
        "grace": grace_at("spec", "parameters"),
    }

    power_words = StrategyWords(*_STRATEGY, default=_RUNS)

    def below(self, data: Data) -> tuple[str, str] | None:
        """The VirtualMachine has its name."""
        return texts(data, "metadata", "namespace"), texts(data, "metadata", "name")

    def strategy(self, data: Data) -> str:
        """Return the run strategy, which is never empty."""
        return texts(data, *_STRATEGY) or _RUNS

    def wants_to_run(self, data: Data) -> bool | None:
        """Return whether its strategy is not `Halted`."""
        return self.strategy(data) != "Halted"

    def power(self, machine: WrittenMachine, wish: Power, *, force: bool) -> FieldChange | PowerCall:
        """Return the change of the strategy, unless that leaves it to requests, which only the VirtualMachine takes."""
        strategy = self.strategy(machine.data)
        if wish == "start" and strategy == "Halted":
            return FieldChange(_STRATEGY, _RUNS)
        if wish == "stop" and strategy != "Manual":
            return FieldChange(_STRATEGY, "Halted")
        return PowerCall(f"a request to {wish}; runStrategy {strategy} stays")

    def add_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Add an empty disk."""
        parameters = place(data, "spec", "parameters")
        check_new_disk(machine, disks, parameters.get("additionalDisks"), wish.name)
        disk: Data = {"name": wish.name, "size": wish.size, "sourceType": "blank"}
        disk |= {key: value for key, value in (("storageClassName", wish.storage_class), ("bus", wish.bus)) if value}
        parameters["additionalDisks"] = [*(parameters.get("additionalDisks") or ()), disk]

    def grow_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Make a disk larger; the root disk has its size in `storage`."""
        parameters = place(data, "spec", "parameters")
        disk = named(parameters.get("additionalDisks"), wish.name)
        if disk is not None:
            disk["size"] = wish.size
        elif wish.name in (ROOT, "rootdisk"):
            place(parameters, "storage")["size"] = wish.size
        else:
            raise unknown_disk(machine, disks, wish.name, [{"name": ROOT}, *(parameters.get("additionalDisks") or ())])

    def add_nic(self, machine: WrittenMachine, data: Data, wish: NicWish) -> None:
        parameters = place(data, "spec", "parameters")
        # Nothing written means one interface on the pod network.
        networks = list(parameters["networks"]) if "networks" in parameters else [{"name": "default", "type": "pod"}]
        check_new_nic(machine, networks, wish.name)
        if wish.mac:
            raise ChangeRefused(
                f"cannot give {machine} an interface with a MAC address of your choice",
                why="stakater has no field for it",
                fix="leave --mac out",
            )
        where = {"type": "pod"} if wish.network == POD else {"multus": {"networkName": wish.network}, "bindingName": "bridge"}
        networks.append({"name": wish.name, **where, **({"interfaceModel": wish.model} if wish.model else {})})
        parameters["networks"] = networks

    def leftovers(self, machine: WrittenMachine) -> Iterator[tuple[str, str]]:
        """Yield the Secrets that its VirtualMachine names, and its Service."""
        if machine.vm is None:
            return
        spec = at(machine.vm, "spec", "template", "spec")
        names = [
            texts(volume, source, reference, "name")
            for volume in entries(spec, "volumes")
            for source in ("cloudInitNoCloud", "cloudInitConfigDrive")
            for reference in ("secretRef", "networkDataSecretRef")
        ]
        names += [texts(each, "sshPublicKey", "source", "secret", "secretName") for each in entries(spec, "accessCredentials")]
        yield from (("secrets", name) for name in dict.fromkeys(names) if name)
        yield "services", f"vm-{machine.name}-lb" if machine.name[:1].isdigit() else f"{machine.name}-lb"


ADAPTER = StakaterAdapter()
