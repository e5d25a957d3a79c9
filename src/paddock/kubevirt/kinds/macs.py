"""Hardware addresses that machines say themselves, and who else on the same network has them. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from paddock.kubernetes.schema.finding import Path

RULE = "kubevirt/same-mac"
_HARDWARE = ("spec", "template", "spec")


class NicAddress(NamedTuple):
    """A network card with an address of its own."""

    path: Path
    network: str
    address: str


def plain(address: str) -> str:
    """An address in one of its spellings."""
    return address.lower().replace("-", ":")


def cards(machine: Any) -> tuple[NicAddress, ...]:
    """The cards of a VirtualMachine, as data of any shape, that say their address."""
    hardware = machine
    for name in _HARDWARE:
        hardware = _members(hardware).get(name)
    networks = {_members(each).get("name"): _network(_members(each)) for each in _entries(_members(hardware).get("networks"))}
    interfaces = _entries(_members(_members(_members(hardware).get("domain")).get("devices")).get("interfaces"))
    return tuple(_cards(interfaces, networks))


def _cards(interfaces: list[Any], networks: dict[Any, str]) -> Iterator[NicAddress]:
    for index, each in enumerate(interfaces):
        address = _members(each).get("macAddress")
        if isinstance(address, str) and address:
            path = (*_HARDWARE, "domain", "devices", "interfaces", index, "macAddress")
            yield NicAddress(path, networks.get(_members(each).get("name"), ""), plain(address))


def _network(network: dict[str, Any]) -> str:
    name = _members(network.get("multus")).get("networkName")
    return name if isinstance(name, str) else ""


def message(machine: str, another: str = "") -> str:
    """The sentence about machines with one address: one of them by name, and whether there are others."""
    who = f"the VirtualMachine {machine} and others have" if another else f"the VirtualMachine {machine} has"
    return f"{who} the same address on the same network: frames reach one of them at most"


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
