"""The network cards of a machine: portgroups of standard and distributed switches, and opaque networks.

A card that the manager names is known by its key, which the machine's marks hold. A card that was just added has no key there yet: the
cards without a name are then those of the names without a key, in order.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET
from pyVmomi import vim

from paddock.base import reasons
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere.inventory import VSphereInventory

_MODELS = {
    "": vim.vm.device.VirtualVmxnet3,
    "vmxnet3": vim.vm.device.VirtualVmxnet3,
    "e1000": vim.vm.device.VirtualE1000,
    "e1000e": vim.vm.device.VirtualE1000e,
}
_CARD = vim.vm.device.VirtualEthernetCard
_Spec = vim.vm.device.VirtualDeviceSpec
# What a network's name resolves to: the backing of a card on it, None without a name.
Backings = Callable[[NetworkPayload], Any]


class CardChanges(msgspec.Struct, frozen=True):
    """Changes of devices, and the keys of the named cards afterwards; 0 for one that is new."""

    changes: tuple[Any, ...] = ()
    keys: Mapping[str, int] = {}
    limitations: tuple[str, ...] = ()


def cards(devices: Iterable[Any]) -> list[Any]:
    """Return the cards of a machine in the order of their keys."""
    return sorted((each for each in devices if isinstance(each, _CARD)), key=lambda each: int(each.key))


def named(devices: Iterable[Any], keys: Mapping[str, int]) -> dict[str, Any]:
    """Return the cards by the names that the manager gave them."""
    there = {each.key: each for each in cards(devices)}
    found = {name: there[key] for name, key in keys.items() if key in there}
    taken = {key for key in keys.values() if key}
    left = iter([each for key, each in sorted(there.items()) if key not in taken])
    for name, key in keys.items():
        if not key and (nic := next(left, None)) is not None:
            found[name] = nic
    return found


def label(network: NetworkPayload, index: int) -> str:
    """Return the name of a card."""
    return network.name or f"nic{index}"


def changes(
    devices: Iterable[Any], keys: Mapping[str, int], networks: tuple[NetworkPayload, ...], backings: Backings, *, fresh: bool
) -> CardChanges:
    """Return what makes the cards those that are wanted.

    Cards without a name stay. Those of a template give way, but for one that is wanted on no network: it keeps its place and its network.
    """
    known = tuple(devices)
    present = named(known, keys)
    made, after, limitations = [], {}, []
    names = [label(each, index) for index, each in enumerate(networks)]
    for name, each in zip(names, networks, strict=True) if fresh else ():
        stranger = next((own_nic for own_nic in cards(known) if own_nic not in present.values()), None)
        if name not in present and stranger is not None and backings(each) is None:
            present[name] = stranger
    if fresh and networks:
        made += [_Spec(operation="remove", device=each) for each in cards(known) if each not in present.values()]
    for name in keys:
        if name not in names and name in present:
            made.append(_Spec(operation="remove", device=present[name]))
    for index, (name, each) in enumerate(zip(names, networks, strict=True)):
        limitations += _limitations(name, each)
        nic = present.get(name)
        backing = backings(each) or (nic.backing if nic is not None else None)
        if backing is None:
            fix = "give it a VMNetworkAttachment with vsphere.portgroup, or set spec.defaults.network of the Provider"
            raise refusals.invalid(f'network "{name}" names no portgroup, and the template has no card for it', fix=fix)
        if nic is None:
            made.append(_Spec(operation="add", device=_new(-200 - index, each, backing)))
            after[name] = 0
            continue
        after[name] = nic.key
        if (edited := _edited(nic, each, backing)) is not None:
            made.append(_Spec(operation="edit", device=edited))
    return CardChanges(tuple(made), after, tuple(limitations))


def _limitations(name: str, network: NetworkPayload) -> list[str]:
    found = []
    if network.vlan:
        found.append(f"networks.{name}.vlan: the portgroup has the VLAN; name the portgroup of VLAN {network.vlan}")
    if network.bridge:
        found.append(f"networks.{name}.bridge: vSphere has portgroups instead of bridges")
    if network.qos is not UNSET or network.security is not UNSET:
        found.append(f"networks.{name}: traffic and security are properties of the portgroup; set them there")
    return found


def _new(key: int, network: NetworkPayload, backing: Any) -> Any:
    model = _MODELS.get(network.model.lower())
    if model is None:
        raise refusals.not_supported(f"a card of model {network.model[:32]!r} cannot be made", fix="use vmxnet3, e1000 or e1000e")
    connectable = vim.vm.device.VirtualDevice.ConnectInfo(startConnected=True, allowGuestControl=True, connected=True)
    nic = model(key=key, backing=backing, connectable=connectable, addressType="generated", wakeOnLanEnabled=True)
    if network.mac_address:
        nic.addressType, nic.macAddress = "manual", _mac(network)
    if network.pci_slot_number is not None:
        nic.slotInfo = vim.vm.device.VirtualDevice.PciBusSlotInfo(pciSlotNumber=network.pci_slot_number)
    return nic


def _edited(nic: Any, network: NetworkPayload, backing: Any) -> Any:
    """The card with its new network or address; None when it has them."""
    if _place(nic.backing) == _place(backing) and (not network.mac_address or _mac(network) == str(nic.macAddress).lower()):
        return None
    nic.backing = backing
    if network.mac_address and _mac(network) != str(nic.macAddress).lower():
        nic.addressType, nic.macAddress = "manual", _mac(network)
    return nic


def _mac(network: NetworkPayload) -> str:
    return network.mac_address.lower().replace("-", ":")


def _place(backing: Any) -> tuple[str, str]:
    """The network of a backing, to compare by."""
    port = getattr(backing, "port", None)
    if port is not None:
        return (str(port.switchUuid), str(port.portgroupKey))
    opaque = getattr(backing, "opaqueNetworkId", None)
    return ("opaque", str(opaque)) if opaque else ("standard", str(getattr(backing, "deviceName", "")))


class NetworkFinder:
    """Finds the networks that cards are put on. For threads."""

    def __init__(self, inventory: VSphereInventory, default: str, root: Any) -> None:
        self._inventory = inventory
        self._default = default
        self._root = root
        self._found: dict[str, Any] = {}

    def backing(self, network: NetworkPayload) -> Any:
        """Return the backing of a card, None when no network is named; raises NotFound when there is no such network."""
        name = network.network_name or network.portgroup or self._default
        if not name:
            return None
        if name not in self._found:
            self._found[name] = self._resolved(name)
        return self._found[name]

    def _resolved(self, name: str) -> Any:
        row = self._inventory.named(vim.Network, name, self._root)
        if isinstance(row.ref, vim.dvs.DistributedVirtualPortgroup):
            portgroup = self._inventory.find(row.ref, ("key", "config.distributedVirtualSwitch"))
            switch = portgroup.get("config.distributedVirtualSwitch") if portgroup is not None else None
            owner = self._inventory.find(switch, ("uuid",)) if switch is not None else None
            if portgroup is None or owner is None:
                raise refusals.not_found(
                    f'portgroup "{name}" belongs to no switch that the account sees',
                    "give the account a role on it",
                    reason=reasons.NETWORK_MISSING,
                )
            port = vim.dvs.PortConnection(portgroupKey=portgroup.get("key"), switchUuid=owner.get("uuid"))
            return _CARD.DistributedVirtualPortBackingInfo(port=port)
        summary = (self._inventory.find(row.ref, ("summary",)) or row).get("summary")
        if isinstance(summary, vim.OpaqueNetwork.Summary):
            return _CARD.OpaqueNetworkBackingInfo(opaqueNetworkId=summary.opaqueNetworkId, opaqueNetworkType=summary.opaqueNetworkType)
        return _CARD.NetworkBackingInfo(deviceName=row.name, network=row.ref)
