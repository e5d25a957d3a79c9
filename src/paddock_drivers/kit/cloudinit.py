"""Documents for a guest's first boot: cloud-init's NoCloud disk, and a config drive for Ignition. Pure."""

import ipaddress
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from paddock.base.seeds import configdrive, nocloud
from paddock.base.seeds.seed import Seed, SeedIdentity, Texts
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import refusals

_EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
_PREFIXES = {4: 24, 6: 64}
# The policy of a card that gets no address.
NO_ADDRESS = "none"
_IGNITION = b'"ignition"'
# A guest with network data alone needs user data that says nothing.
_NOTHING = b"#cloud-config\n{}\n"
_SPOKEN = ("local-hostname", "hostname")


class GuestDocuments(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a guest, its cards and its documents.

    `instance` is what a guest compares to see whether it is a new machine. A card without `mac_address` is left to DHCP.
    """

    instance: str
    hostname: str
    networks: tuple[NetworkPayload, ...] = ()
    user_data: bytes = b""
    meta_data: bytes = b""
    public_keys: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Documents for guests hold passwords.
        return f"GuestDocuments(hostname={self.hostname!r})"


def is_ignition(document: bytes) -> bool:
    """Return whether a guest reads a document with Ignition."""
    return document.lstrip().startswith(b"{") and _IGNITION in document


def wanted(guest_documents: GuestDocuments) -> bool:
    """Return whether a guest has to be given anything."""
    return bool(
        guest_documents.user_data or guest_documents.meta_data or guest_documents.public_keys or network_config(guest_documents.networks)
    )


def files(guest_documents: GuestDocuments) -> Mapping[str, bytes]:
    """Return the documents by the names that NoCloud gives them: meta-data, user-data, network-config."""
    network = network_config(guest_documents.networks)
    seed = nocloud.seed(_identity(guest_documents), Texts(guest_documents.user_data or _NOTHING, network.encode()))
    found = dict(seed.files)
    if guest_documents.meta_data:
        found["meta-data"] = _merged(found["meta-data"], guest_documents.meta_data)
    return found


def image(guest_documents: GuestDocuments) -> bytes:
    """Return the disk that a guest reads: ISO 9660, the same bytes for the same documents."""
    if is_ignition(guest_documents.user_data):
        return configdrive.seed(_identity(guest_documents), Texts(guest_documents.user_data)).image()
    return Seed(nocloud.LABEL, files(guest_documents)).image()


def network_config(networks: tuple[NetworkPayload, ...]) -> str:
    """Return cloud-init's network data of version 2; empty when plain DHCP does for every card."""
    if not any(map(speaks, networks)):
        return ""
    ethernets = {each.name or f"nic{index}": _ethernet(each) for index, each in enumerate(networks) if each.mac_address}
    missing = next((each.name for each in networks if speaks(each) and not each.mac_address), None)
    if missing is not None:
        raise refusals.invalid(f'network "{missing}" says how its card is set up, and has no MAC address that finds the card')
    text: str = yaml.safe_dump({"version": 2, "ethernets": ethernets}, sort_keys=False)
    return text


def speaks(network: NetworkPayload) -> bool:
    """Return whether a guest needs more about a card than that DHCP serves it."""
    return bool(network.static_ip or network.dns or network.routes or network.search_domains or network.ip_policy == NO_ADDRESS)


def _ethernet(network: NetworkPayload) -> dict[str, Any]:
    entry: dict[str, Any] = {"match": {"macaddress": network.mac_address.lower().replace("-", ":")}}
    if network.ip_policy == NO_ADDRESS and not network.static_ip:
        return {**entry, "dhcp4": False, "dhcp6": False}
    if network.static_ip:
        entry |= _addresses(network)
    else:
        entry["dhcp4"] = True
    if network.routes:
        entry["routes"] = [*entry.get("routes", ()), *map(_route, network.routes)]
    servers = [each.strip() for each in network.dns.split(",") if each.strip()]
    names = {"addresses": servers, "search": list(network.search_domains or ())}
    if found := {key: value for key, value in names.items() if value}:
        entry["nameservers"] = found
    return entry


def _addresses(network: NetworkPayload) -> dict[str, Any]:
    try:
        address = ipaddress.ip_address(network.static_ip)
        gateway = ipaddress.ip_address(network.gateway) if network.gateway else None
    except ValueError as error:
        raise refusals.invalid(f'network "{network.name}" has an address that cannot be read', why=str(error)) from error
    found: dict[str, Any] = {"addresses": [f"{address}/{network.prefix or _PREFIXES[address.version]}"]}
    if gateway is not None:
        found["routes"] = [{"to": _EVERYWHERE[gateway.version], "via": str(gateway)}]
    return found


def _route(given: dict[str, Any]) -> dict[str, Any]:
    found = {"to": given.get("destination"), "via": given.get("gateway"), "metric": given.get("metric")}
    return {key: value for key, value in found.items() if value is not None}


def _identity(guest_documents: GuestDocuments) -> SeedIdentity:
    return SeedIdentity(
        uuid=guest_documents.instance,
        name=guest_documents.hostname,
        hostname=guest_documents.hostname,
        public_keys=guest_documents.public_keys,
    )


def _merged(made: bytes, document: bytes) -> bytes:
    """The metadata of a machine over that made for it; the instance's id stays, so that a guest knows itself again."""
    try:
        own = yaml.load(document, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise refusals.invalid("the metadata of the machine is no YAML") from error
    if not isinstance(own, dict):
        raise refusals.invalid("the metadata of the machine is no mapping")
    base = yaml.load(made, Loader=yaml.CSafeLoader)
    spoken = any(name in own for name in _SPOKEN)
    kept = {key: value for key, value in base.items() if not (spoken and key in _SPOKEN)}
    text: str = yaml.safe_dump({**kept, **own}, sort_keys=False, allow_unicode=True)
    return text.encode()
