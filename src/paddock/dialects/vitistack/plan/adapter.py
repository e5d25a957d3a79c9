"""Machines of Vitistack as the commands and the console read and write them, in the document's form and in its own. Pure."""

from collections.abc import Collection

from paddock.base import quantity
from paddock.base.jsondata import Data, at, texts
from paddock.dialects.vitistack.kinds import marks
from paddock.kubevirt.plan.changes.adapters import (
    POD,
    ROOT,
    ChangeRefused,
    DiskWish,
    FieldChange,
    KindName,
    MachineAdapter,
    NicWish,
    Power,
    PowerCall,
    WrittenMachine,
    check_new_disk,
    check_new_nic,
    check_no_bus,
    named,
    place,
    spread,
    unknown_disk,
    whole_gib,
)

# Of a machine in its own form that lists no disk.
_OWN_ROOT_GB = 10
_OWN_FORM = "Vitistack's own form"
# How its own form calls the parts of the processors.
_OWN_CPU = {"cores": "cores", "threads": "threadsPerCore", "sockets": "sockets"}
_NETWORKS = KindName("vitistack.io", "v1alpha1", "networkconfigurations", "NetworkConfiguration")
_POWER = ("metadata", "annotations", marks.POWER_STATE)


def _is_own_form(data: Data) -> bool:
    """Return whether a Machine is in Vitistack's own form, which names its provider."""
    return "provider" in (data.get("spec") or {})


def _set_cpu(machine: WrittenMachine, data: Data, value: str) -> None:
    if not _is_own_form(data):
        spread(place(data, "spec", "resources", "cpu"), machine, int(value))
        return
    cpu = place(data, "spec", "cpu")
    parts = {name: cpu[member] for name, member in _OWN_CPU.items() if member in cpu}
    spread(parts, machine, int(value))
    cpu.update({_OWN_CPU[name]: count for name, count in parts.items()})


def _set_memory(_: WrittenMachine, data: Data, value: str) -> None:
    if _is_own_form(data):
        place(data, "spec")["memory"] = quantity.amount(value, "mem=4Gi")
    else:
        place(data, "spec", "resources", "memory")["size"] = value


def _set_template(machine: WrittenMachine, data: Data, value: str) -> None:
    if _is_own_form(data):
        raise ChangeRefused(f"cannot set template={value} of {machine}", why="Vitistack's own form has classes", fix=f"write class={value}")
    place(data, "spec")["template"] = value


def _set_class(machine: WrittenMachine, data: Data, value: str) -> None:
    if not _is_own_form(data):
        raise ChangeRefused(
            f"cannot set class={value} of {machine}", why="the document's form has templates", fix=f"write template={value}"
        )
    place(data, "spec")["machineClass"] = value


def _check_no_class(machine: WrittenMachine, wish: DiskWish) -> None:
    if wish.storage_class:
        raise ChangeRefused(
            f"cannot put a disk of {machine} on a storage class of your choice",
            why="Vitistack's own form of the Machine has no field for it",
            fix="leave --storage-class out: the default class is used",
        )


class _AnnotationWords:
    """An annotation; what nobody wrote is written, because the VirtualMachine keeps its last wish otherwise."""

    def halted(self, data: Data) -> Data:
        return {"metadata": {"annotations": {marks.POWER_STATE: "stopped"}}}

    def kept(self, data: Data, *, ran: bool) -> Data:
        return {"metadata": {"annotations": {marks.POWER_STATE: "running" if ran else "stopped"}}}

    def needs_start(self, data: Data) -> bool:
        return False


class VitistackAdapter(MachineAdapter):
    """The disks of a Machine are on claims of its own, and go with it."""

    ips = ("ipAddresses", "ipv6Addresses")
    cpus = (("spec", "resources", "cpu"), ("spec", "cpu"))
    memory = (("spec", "resources", "memory", "size"), ("spec", "memory"))
    images = (("metadata", "annotations", marks.ROOT_IMAGE),)
    has_pod_nic = False
    network_kind = _NETWORKS
    sizes = {"cpu": _set_cpu, "mem": _set_memory, "template": _set_template, "class": _set_class}
    disks_go = ("Vitistack deletes the disks of a Machine with it", "add --purge if they may go")
    claim_label = marks.MACHINE
    power_words = _AnnotationWords()
    # The target's controller would derive others, because the machine has another UID there.
    names_macs = True
    carried = (
        KindName("vitistack.io", "v1alpha1", "machineclasses", "MachineClass", namespaced=False),
        KindName("vitistack.io", "v1alpha1", "machinetemplates", "MachineTemplate"),
        _NETWORKS,
    )

    def below(self, data: Data) -> tuple[str, str] | None:
        """The VirtualMachine has its name, unless the status says otherwise."""
        return texts(data, "metadata", "namespace"), texts(data, "status", "vmName") or texts(data, "metadata", "name")

    def strategy(self, data: Data) -> str:
        """Return the power state that is wanted."""
        return texts(data, "spec", "powerState")

    def wants_to_run(self, data: Data) -> bool | None:
        """Return what the annotation says."""
        state = at(data, *_POWER)
        return bool(state == "running") if state in marks.POWER_STATES else None

    def power(self, machine: WrittenMachine, wish: Power, *, force: bool) -> FieldChange | PowerCall:
        """Return the change of the annotation."""
        return FieldChange(_POWER, "running" if wish == "start" else "stopped")

    def add_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Add an empty disk."""
        spec = place(data, "spec")
        check_new_disk(machine, disks, spec.get("disks"), wish.name)
        if _is_own_form(data):
            _check_no_class(machine, wish)
            own = {"name": wish.name, "sizeGB": whole_gib(machine, wish.size, _OWN_FORM), **({"type": wish.bus} if wish.bus else {})}
            # Without a list there is the default root disk, which the list then has to name.
            spec["disks"] = [*(spec.get("disks") or ({"name": ROOT, "sizeGB": _OWN_ROOT_GB, "boot": True},)), own]
            return
        check_no_bus(machine, wish)
        disk = {"name": wish.name, "size": wish.size, **({"storageClass": wish.storage_class} if wish.storage_class else {})}
        spec["disks"] = [*(spec.get("disks") or ()), disk]

    def grow_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Make a disk larger; one of the template is written as an entry of the machine's own, which adds to it."""
        spec, name = place(data, "spec"), wish.name
        disk = named(spec.get("disks"), name)
        if _is_own_form(data):
            own: Data | None = disk if disk is not None else {"name": name} if name == ROOT and not spec.get("disks") else None
            if own is None:
                raise unknown_disk(machine, disks, name, spec.get("disks"))
            own["sizeGB"] = whole_gib(machine, wish.size, _OWN_FORM)
            spec["disks"] = spec.get("disks") or [own]
        elif disk is not None:
            disk["size"] = wish.size
        elif spec.get("template") and (name == ROOT or name in disks):
            spec["disks"] = [*(spec.get("disks") or ()), {"name": name, "size": wish.size}]
        else:
            raise unknown_disk(machine, disks, name, spec.get("disks"))

    def add_nic(self, machine: WrittenMachine, data: Data, wish: NicWish) -> None:
        """Add an interface on a network with a NetworkConfiguration."""
        if wish.network == POD:
            raise ChangeRefused(
                f"cannot add an interface on the pod network to {machine}",
                why="vitistack's interfaces are on networks with a NetworkConfiguration",
                fix="name one: --network NAME",
            )
        spec = place(data, "spec")
        if _is_own_form(data):
            raise ChangeRefused(
                f"cannot add an interface to {machine}",
                why="Vitistack's own form of the Machine has one card, which spec.network.networkNamespaceName attaches",
                fix="write the machine in the document's form: paddock convert --to vitistack --form document",
            )
        networks = list(spec.get("networks") or ())
        check_new_nic(machine, networks, wish.name)
        more = {"model": wish.model, "macAddress": wish.mac}
        networks.append({"name": wish.name, "networkName": wish.network, **{key: value for key, value in more.items() if value}})
        spec["networks"] = networks


ADAPTER = VitistackAdapter()
