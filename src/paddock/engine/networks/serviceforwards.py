"""Services as the packet filter leads to them. Pure.

The kernel leads everybody, also while no server runs, but for clients at the host's loopback address: these go through a listener of this
process. Its listeners also keep the ports, and refuse clients that `sources` leaves out.
"""

from collections.abc import Callable, Collection, Iterator

from paddock.engine.networks.families import IP4, IP6, Family, family_of
from paddock.engine.networks.listeners import ListenEndpoint
from paddock.engine.networks.nics import ForwardTarget, PublishedPort, PublishedService
from paddock.engine.networks.rules import ServiceForward

# The addresses of a target; none where the kernel cannot lead there
Addresses = Callable[[ForwardTarget], tuple[str, ...]]


def services(published: Collection[PublishedService], listened: Collection[ListenEndpoint], addresses: Addresses) -> list[ServiceForward]:
    """Every port of every address. A port of the host that is somebody else's is not taken from them."""
    found: list[ServiceForward] = []
    for service in sorted(published, key=lambda each: each.name):
        for port in service.ports:
            found += _of_port(service, port, listened, addresses)
    # An address belongs to the first that has it.
    first: dict[tuple[str, str, int], ServiceForward] = {}
    for each in found:
        first.setdefault((each.address, each.protocol, each.port), each)
    return list(first.values())


def _of_port(
    service: PublishedService, port: PublishedPort, listened: Collection[ListenEndpoint], addresses: Addresses
) -> Iterator[ServiceForward]:
    sticky = service.affinity_seconds > 0
    targets = {
        family: tuple((known, target.port) for target in port.targets for known in addresses(target) if family.has(known))
        for family in (IP4, IP6)
    }
    for own in service.addresses:
        yield ServiceForward(own, port.protocol, port.port, targets[family_of(own)], sticky)
    # (address, port, family) that whoever is outside may use
    places = [(own, port.port, family_of(own)) for own in service.outside if ListenEndpoint(port.protocol, own, port.port) in listened]
    for family, everywhere in ((IP4, ""), (IP6, "::")):
        if port.node_port and _is_listened(port, listened, family):
            places.append((everywhere, port.node_port, family))
    for own, number, family in places:
        sources = tuple(filter(family.has, service.sources))
        if targets[family] and (sources or not service.sources):
            yield ServiceForward(own, port.protocol, number, targets[family], sticky, sources)


def _is_listened(port: PublishedPort, listened: Collection[ListenEndpoint], family: Family) -> bool:
    return any((place.protocol, place.port) == (port.protocol, port.node_port) and family.has(place.address) for place in listened)
