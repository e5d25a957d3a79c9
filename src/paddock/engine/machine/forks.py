"""A fork: a machine whose guest goes on from the memory of another machine, which runs on. What it needs for that. Pure.

The guest keeps what it has read once: the firmware's UUID and serial number until its next start, and what its programs remember.
"""

from collections.abc import Iterator

from msgspec import Struct

from paddock.engine.machine.config import MachineConfig, UserNetwork


class GuestIdentity(Struct, frozen=True):
    """The identity that the guest of a fork is to get from its agent."""

    hostname: str
    # network interface -> the MAC address that the guest knows, and the one of the fork
    macs: dict[str, tuple[str, str]]


def obstacles(config: MachineConfig, *, agent: bool) -> tuple[str, ...]:
    """Return the reasons why a machine cannot be forked, besides those why its memory cannot be taken; empty: it can.

    `agent`: an agent in the guest has its channel open.
    """
    found = []
    if config.devices.tpm is not None:
        found.append("its TPM holds secrets that must exist once")
    if config.nics and not agent:
        found.append("its guest has no agent, which would give the network interfaces of a fork MAC addresses of their own")
    found += [
        f"network interface {nic.name} is in user mode, where a fork would have the address of its source"
        for nic in config.nics
        if isinstance(nic.backend, UserNetwork)
    ]
    found += [f"disk {disk.name} is written by several machines" for disk in config.disks if disk.shareable and not disk.readonly]
    return tuple(found)


def mismatches(source: MachineConfig, fork: MachineConfig, *, agent: bool) -> Iterator[str]:
    """Yield the reasons why a machine cannot be a fork of another one; `agent` is that of the source."""
    if _namespace(source) != _namespace(fork):
        yield "it is of a machine of another namespace"
    yield from obstacles(source, agent=agent)
    known = {nic.mac.lower() for nic in source.nics}
    yield from (
        f"network interface {nic.name} has the MAC address of the source, {nic.mac}" for nic in fork.nics if nic.mac.lower() in known
    )


def _namespace(config: MachineConfig) -> str:
    return config.label.partition("_")[0]


def is_fork(source: MachineConfig, config: MachineConfig) -> bool:
    """Return whether a machine is another one than that whose memory its guest goes on from."""
    return source.label != config.label


def identity(source: MachineConfig, fork: MachineConfig, hostname: str) -> GuestIdentity:
    """Return the identity of a fork."""
    known = {nic.name: nic.mac.lower() for nic in source.nics}
    return GuestIdentity(hostname, {nic.name: (known[nic.name], nic.mac.lower()) for nic in fork.nics if nic.name in known})
