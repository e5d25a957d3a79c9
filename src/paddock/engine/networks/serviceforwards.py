"""Services as the packet filter leads to them. Pure.

Machines and this host's programs are led by the kernel; whoever comes from outside is led by it too at node ports, and otherwise through a
listener of this process.
"""

from collections.abc import Callable, Collection, Iterator

from paddock.engine.networks.listeners import ListenEndpoint
from paddock.engine.networks.nics import ForwardTarget, PublishedPort, PublishedService
from paddock.engine.networks.rules import ServiceForward

# The address of a target; "" where the kernel cannot lead there
Address = Callable[[ForwardTarget], str]


def services(published: Collection[PublishedService], listened: Collection[ListenEndpoint], address: Address) -> list[ServiceForward]:
    """Every port of every address. A port of the host that is somebody else's is not taken from them."""
    found: list[ServiceForward] = []
    for service in sorted(published, key=lambda each: each.name):
        for port in service.ports:
            found += _of_port(service, port, listened, address)
    # An address belongs to the first that has it.
    first: dict[tuple[str, str, int], ServiceForward] = {}
    for each in found:
        first.setdefault((each.address, each.protocol, each.port), each)
    return list(first.values())


def _of_port(
    service: PublishedService, port: PublishedPort, listened: Collection[ListenEndpoint], address: Address
) -> Iterator[ServiceForward]:
    targets = tuple((known, target.port) for target in port.targets if (known := address(target)))
    sticky = service.affinity_seconds > 0
    for own in service.addresses:
        if ":" not in own:
            yield ServiceForward(own, port.protocol, port.port, targets, sticky)
    if service.sources:
        # The listener asks who it is.
        return
    for own in service.outside:
        if targets and ListenEndpoint(port.protocol, own, port.port) in listened:
            yield ServiceForward(own, port.protocol, port.port, targets, sticky)
    if port.node_port and targets and any((place.protocol, place.port) == (port.protocol, port.node_port) for place in listened):
        yield ServiceForward("", port.protocol, port.node_port, targets, sticky)
