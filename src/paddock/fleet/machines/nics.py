"""Network interfaces of a machine, as each dialect writes them. Pure."""

from collections.abc import Callable, Mapping

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.kinds import STAKATER, VIRTRIGAUD, VITISTACK, VM, VMI, MachineKind, is_own_form
from paddock.fleet.machines.edits import ChangeRefused, copy, named, names, place
from paddock.fleet.machines.finding import MachineView

POD = "pod"


class NicWish(msgspec.Struct, frozen=True, kw_only=True):
    """A new interface. `network` is a NetworkAttachmentDefinition or NetworkConfiguration, or `pod`."""

    name: str
    network: str
    mac: str = ""
    model: str = ""


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
            for each in entries(machine.data, *_PATHS.get(machine.kind, ("spec", "networks")))
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
    data = copy(machine.data)
    _ADDING[machine.kind](machine, data, wish)
    return data


def _unused(machine: MachineView, present: list[Data], name: str) -> None:
    if named(present, name) is not None:
        raise ChangeRefused(f'{machine} already has an interface "{name}"', fix="choose another name with --name")


def _add_kubevirt(machine: MachineView, data: Data, wish: NicWish) -> None:
    spec = place(data, "spec", "template", "spec")
    devices = place(spec, "domain", "devices")
    networks, interfaces = list(spec.get("networks") or ()), list(devices.get("interfaces") or ())
    _unused(machine, interfaces, wish.name)
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


def _add_stakater(machine: MachineView, data: Data, wish: NicWish) -> None:
    parameters = place(data, "spec", "parameters")
    # Nothing written means one interface on the pod network.
    networks = list(parameters["networks"]) if "networks" in parameters else [{"name": "default", "type": "pod"}]
    _unused(machine, networks, wish.name)
    if wish.mac:
        raise ChangeRefused(
            f"cannot give {machine} an interface with a MAC address of your choice",
            why="stakater has no field for it",
            fix="leave --mac out",
        )
    where = {"type": "pod"} if wish.network == POD else {"multus": {"networkName": wish.network}, "bindingName": "bridge"}
    networks.append({"name": wish.name, **where, **({"interfaceModel": wish.model} if wish.model else {})})
    parameters["networks"] = networks


def _add_vitistack(machine: MachineView, data: Data, wish: NicWish) -> None:
    if wish.network == POD:
        raise ChangeRefused(
            f"cannot add an interface on the pod network to {machine}",
            why="vitistack's interfaces are on networks with a NetworkConfiguration",
            fix="name one: --network NAME",
        )
    spec = place(data, "spec")
    if is_own_form(data):
        raise ChangeRefused(
            f"cannot add an interface to {machine}",
            why="Vitistack's own form of the Machine has one card, which spec.network.networkNamespaceName attaches",
            fix="write the machine in the document's form: paddock convert --to vitistack --form document",
        )
    networks = list(spec.get("networks") or ())
    _unused(machine, networks, wish.name)
    more = {"model": wish.model, "macAddress": wish.mac}
    networks.append({"name": wish.name, "networkName": wish.network, **{key: value for key, value in more.items() if value}})
    spec["networks"] = networks


def _no_virtrigaud(machine: MachineView, *_: object) -> None:
    raise ChangeRefused(
        f"cannot change the interfaces of {machine}",
        why="VirtRigaud wires a machine when it makes it, and its providers have no call for a change",
        fix="clone the machine with a VMClone that has other target.networks",
    )


def _no_instance(machine: MachineView, *_: object) -> None:
    raise ChangeRefused(
        f"cannot change the interfaces of {machine}",
        why="the spec of an instance without a VirtualMachine does not change",
        fix="make a VirtualMachine of it",
    )


# --- removing ---------------------------------------------------------------------------------------------------------------


def removed(machine: MachineView, name: str) -> Data:
    """Return the object that the user wrote without an interface. Raises `ChangeRefused`."""
    if machine.kind in (VIRTRIGAUD, VMI):
        _ADDING[machine.kind](machine, {}, NicWish(name=name, network=""))
    data = copy(machine.data)
    path = _PATHS[machine.kind]
    owner = place(data, *path[:-1])
    present = owner.get(path[-1]) or []
    if named(present, name) is None:
        has = names(present)
        why = "it has the pod network's interface, which nobody wrote" if not present and machine.kind is not VITISTACK else f"it has {has}"
        raise ChangeRefused(f'{machine} has no interface "{name}" in its spec', why=why, fix=f"`paddock nic ls {machine.name}` lists them")
    owner[path[-1]] = [each for each in present if each.get("name") != name]
    if machine.kind is VM:
        spec = place(data, "spec", "template", "spec")
        spec["networks"] = [each for each in spec.get("networks") or () if each.get("name") != name]
        if not spec["networks"]:
            # Otherwise KubeVirt would attach the pod network by itself.
            place(spec, "domain", "devices")["autoattachPodInterface"] = False
    return data


_PATHS: Mapping[MachineKind, tuple[str, ...]] = {
    VM: ("spec", "template", "spec", "domain", "devices", "interfaces"),
    STAKATER: ("spec", "parameters", "networks"),
    VITISTACK: ("spec", "networks"),
    VIRTRIGAUD: ("spec", "networks"),
}
_ADDING: Mapping[MachineKind, Callable[[MachineView, Data, NicWish], None]] = {
    VM: _add_kubevirt,
    STAKATER: _add_stakater,
    VITISTACK: _add_vitistack,
    VIRTRIGAUD: _no_virtrigaud,
    VMI: _no_instance,
}
