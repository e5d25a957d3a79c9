"""Asks a hypervisor for its abilities, once for each connection, and for its networks before a machine is put on them."""

from typing import Any

import libvirt
import msgspec

from paddock.base import reasons
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import abilities, failures
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from paddock_drivers.libvirt.connection import LibvirtConnection

_ARCHITECTURE = "x86_64"
_MACHINE = "q35"
_TYPES = ("kvm", "qemu")


class Hypervisor:
    """The hypervisor of a connection."""

    def __init__(self, connection: LibvirtConnection) -> None:
        self._connection = connection
        self._abilities: HypervisorAbilities | None = None
        self._revision = -1

    async def abilities(self) -> HypervisorAbilities:
        """Return what it can do. Another connection may lead to another version of it."""
        found = self._abilities
        if found is None or self._revision != self._connection.events.revision:
            revision = self._connection.events.revision
            found = await self._connection.run(_read)
            self._abilities, self._revision = found, revision
        return found

    async def cards(self, networks: tuple[NetworkPayload, ...], default: str) -> tuple[NetworkPayload, ...]:
        """Return the cards of a machine: those wanted, or one on the default network if there is one. Raises NotFound.

        Bridges are the host's: libvirt says whether they exist when the machine starts.
        """
        names = sorted({nic.network_name or default for nic in networks if not nic.bridge})
        missing = await self._connection.run(_missing_networks, names or [default])
        if not networks:
            return () if missing else (NetworkPayload(),)
        if missing and names:
            what, fix = f'the network "{missing}" does not exist at the hypervisor', "define it there, or name another one"
            raise refusals.not_found(what, fix, reason=reasons.NETWORK_MISSING)
        return networks


def _read(conn: Any) -> HypervisorAbilities:
    host = conn.getCapabilities()
    found = abilities.of_capabilities(host, _domain_capabilities(conn))
    model, memory_mib, cpus, mhz, *_ = conn.getInfo()
    version = conn.getVersion()
    return msgspec.structs.replace(
        found,
        mhz=mhz,
        host_cpus=cpus,
        host_memory_mib=memory_mib,
        hostname=conn.getHostname(),
        cpu_model=found.cpu_model or str(model),
        version=f"{conn.getType()} {version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}",
    )


def _domain_capabilities(conn: Any) -> str:
    """The capabilities of the fastest kind of domain; empty where the driver of libvirt has none."""
    for kind in _TYPES:
        try:
            return str(conn.getDomainCapabilities(None, _ARCHITECTURE, _MACHINE, kind))
        except libvirt.libvirtError as error:
            if failures.is_lost(error) and failures.code_of(error) != failures.NO_SUPPORT:
                raise
    return ""


def _missing_networks(conn: Any, names: list[str]) -> str:
    for name in names:
        try:
            conn.networkLookupByName(name)
        except libvirt.libvirtError as error:
            if failures.code_of(error) == failures.NO_SUPPORT:
                return ""
            if failures.code_of(error) != failures.NO_NETWORK:
                raise
            return name
    return ""
