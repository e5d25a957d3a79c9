"""The responder's state, and its messages to and from the server. Pure.

The server writes the state to a file, and hands the responder that file and the sockets that it lacks. A socket has a key, which says
what it is for. The keys, `ResponderRequest` and `ResponderAnswer` keep their form: a server also talks with the responder of another
version.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.dhcp6 import Dhcp6Lease
from paddock.engine.networks.dns import Zone
from paddock.engine.networks.listeners import ForwardTo, ListenEndpoint
from paddock.engine.networks.nics import NicPolicy

# Of one message; the kernel takes 253 handles in one.
MOST_SOCKETS, LONGEST_MESSAGE = 200, 1 << 20


class GuestPort(Struct, frozen=True):
    """A tap, and what its guest gets by DHCP, DHCPv6 and router advertisements."""

    device: str
    # the device as it was made; another number is another device
    number: int
    # the server's
    mac: str
    lease: DhcpLease | None = None
    lease6: Dhcp6Lease | None = None

    @property
    def key(self) -> str:
        """The key of its socket."""
        return f"tap {self.device} {self.number}"


class NamedNic(Struct, frozen=True):
    """A card that names lead to."""

    owner: str
    name: str
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


class RelayedPort(Struct, frozen=True):
    """A port of the host, where clients are led to cards."""

    place: ListenEndpoint
    lead: ForwardTo


class ResponderState(Struct, frozen=True):
    ports: tuple[GuestPort, ...] = ()
    # the host's, at which names are asked for
    addresses: tuple[str, ...] = ()
    suffix: str = ""
    networks: tuple[str, ...] = ()
    nics: tuple[NamedNic, ...] = ()
    # of Services
    names: dict[str, tuple[str, ...]] = {}
    relays: tuple[RelayedPort, ...] = ()
    # those that concern clients of relays
    policies: tuple[NicPolicy, ...] = ()

    def sockets(self) -> Iterator[str]:
        """The keys of the sockets that it takes."""
        for address in self.addresses:
            yield f"udp {address}"
            yield f"tcp {address}"
        for port in self.ports:
            yield port.key
        for relay in self.relays:
            yield relay.place.key

    def zone(self) -> Zone:
        """Everything that has a name."""
        return Zone.of(self.suffix, ((nic.names, nic.addresses) for nic in self.nics), self.names, *self.networks)


class ResponderRequest(Struct, frozen=True):
    """A message to the responder. With `serve` come the state's file and the sockets of these keys."""

    verb: Literal["hello", "serve", "hand over"]
    sockets: tuple[str, ...] = ()


class ResponderAnswer(Struct, frozen=True):
    """Its answer. With `hand over` come the sockets of these keys, and `more` says that another message follows."""

    build: str = ""
    pid: int = 0
    sockets: tuple[str, ...] = ()
    more: bool = False
