"""Network interfaces of a machine, as each dialect writes them. Pure."""

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines.edits import copy
from paddock.fleet.machines.finding import MachineView
from paddock.kubevirt.plan.changes.adapters import POD as POD
from paddock.kubevirt.plan.changes.adapters import ChangeRefused, check_new_nic, named, names, place
from paddock.kubevirt.plan.changes.adapters import NicWish as NicWish

_INTERFACES = ("spec", "template", "spec", "domain", "devices", "interfaces")


class NicRow(msgspec.Struct, frozen=True, kw_only=True):
    """An interface as `nic ls` shows it."""

    name: str
    network: str
    binding: str
    model: str
    mac: str
    addresses: tuple[str, ...]
    state: str


def listed(machine: MachineView) -> list[NicRow]:
    """Return the interfaces: those of the VirtualMachine, or those of the spec where another hypervisor runs the machine."""
    below = at(machine.vm, "spec", "template", "spec") if machine.vm is not None else at(machine.vmi, "spec")
    if below is None:
        return [
            NicRow(
                name=texts(each, "name"),
                network=texts(each, "networkRef", "name") or texts(each, "networkName") or texts(each, "multus", "networkName") or POD,
                binding=texts(each, "bindingName"),
                model=texts(each, "model") or texts(each, "interfaceModel"),
                mac=texts(each, "macAddress"),
                addresses=(),
                state="",
            )
            for each in entries(machine.data, *machine.kind.adapter.nics)
        ]
    seen = {texts(each, "name"): each for each in entries(machine.vmi, "status", "interfaces")}
    networks = {texts(each, "name"): each for each in entries(below, "networks")}
    return [_row(each, networks.get(texts(each, "name")) or {}, seen.get(texts(each, "name"))) for each in _interfaces(machine, below)]


def _interfaces(machine: MachineView, below: Data) -> list[Data]:
    """Return the interfaces. A running machine has those of its instance, too: one that is not gone yet, or not there yet."""
    found = {texts(each, "name"): each for each in entries(at(machine.vmi, "spec"), "domain", "devices", "interfaces")}
    found |= {texts(each, "name"): each for each in entries(below, "domain", "devices", "interfaces")}
    return list(found.values())


def _row(interface: Data, network: Data, seen: Data | None) -> NicRow:
    bindings = [name for name in ("masquerade", "bridge", "sriov", "passt", "slirp", "macvtap") if name in interface]
    info = seen or {}
    return NicRow(
        name=texts(interface, "name"),
        network=texts(network, "multus", "networkName") or POD,
        binding=texts(interface, "binding", "name") or (bindings[0] if bindings else ""),
        model=texts(interface, "model"),
        mac=texts(info, "mac") or texts(interface, "macAddress"),
        addresses=tuple(str(each) for each in at(info, "ipAddresses") or ((at(info, "ipAddress"),) if at(info, "ipAddress") else ())),
        state="" if seen is None else texts(info, "linkState") or "up",
    )


# --- adding -----------------------------------------------------------------------------------------------------------------


def added(machine: MachineView, wish: NicWish) -> Data:
    """Return the object that the user wrote with one interface more. Raises `ChangeRefused`."""
    _check(machine)
    data = copy(machine.data)
    if machine.kind is VM:
        _add_kubevirt(machine, data, wish)
    else:
        machine.kind.adapter.add_nic(machine, data, wish)
    return data


def _check(machine: MachineView) -> None:
    """Raise `ChangeRefused` if the interfaces of the machine stay as they are."""
    if machine.kind is VMI:
        raise ChangeRefused(
            f"cannot change the interfaces of {machine}",
            why="the spec of an instance without a VirtualMachine does not change",
            fix="make a VirtualMachine of it",
        )
    machine.kind.adapter.check_nics(machine)


def _add_kubevirt(machine: MachineView, data: Data, wish: NicWish) -> None:
    spec = place(data, "spec", "template", "spec")
    devices = place(spec, "domain", "devices")
    networks, interfaces = list(spec.get("networks") or ()), list(devices.get("interfaces") or ())
    check_new_nic(machine, interfaces, wish.name)
    if not interfaces and devices.get("autoattachPodInterface") is not False:
        # Without any entry KubeVirt attaches the pod network by itself, and with one it does not.
        networks.append({"name": "default", "pod": {}})
        interfaces.append({"name": "default", "masquerade": {}})
    if wish.network == POD and any("pod" in each for each in networks):
        raise ChangeRefused(
            f"cannot add a second interface on the pod network to {machine}",
            why="KubeVirt allows one",
            fix="name a NetworkAttachmentDefinition: --network NAME",
        )
    way: Data = {"masquerade": {}} if wish.network == POD else {"bridge": {}}
    more = {"macAddress": wish.mac, "model": wish.model}
    interfaces.append({"name": wish.name, **way, **{key: value for key, value in more.items() if value}})
    networks.append({"name": wish.name, **({"pod": {}} if wish.network == POD else {"multus": {"networkName": wish.network}})})
    spec["networks"], devices["interfaces"] = networks, interfaces


# --- removing ---------------------------------------------------------------------------------------------------------------


def removed(machine: MachineView, name: str) -> Data:
    """Return the object that the user wrote without an interface. Raises `ChangeRefused`."""
    _check(machine)
    data = copy(machine.data)
    adapter = machine.kind.adapter
    path = _INTERFACES if machine.kind is VM else adapter.nics
    owner = place(data, *path[:-1])
    present = owner.get(path[-1]) or []
    if named(present, name) is None:
        has = names(present)
        why = "it has the pod network's interface, which nobody wrote" if not present and adapter.has_pod_nic else f"it has {has}"
        raise ChangeRefused(f'{machine} has no interface "{name}" in its spec', why=why, fix=f"`paddock nic ls {machine.name}` lists them")
    owner[path[-1]] = [each for each in present if each.get("name") != name]
    if machine.kind is VM:
        spec = place(data, "spec", "template", "spec")
        spec["networks"] = [each for each in spec.get("networks") or () if each.get("name") != name]
        if not spec["networks"]:
            # Otherwise KubeVirt would attach the pod network by itself.
            place(spec, "domain", "devices")["autoattachPodInterface"] = False
    return data
