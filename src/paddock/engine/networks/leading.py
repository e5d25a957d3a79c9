"""Services as the packet filter leads to them. Pure.

Machines and this host's programs are led by the kernel; whoever comes from outside is led by it too at node ports, and otherwise through a
listener of this process.
"""

from collections.abc import Callable, Collection, Iterator

from paddock.engine.networks.cards import Published, PublishedPort, Target
from paddock.engine.networks.listeners import Place
from paddock.engine.networks.rules import Service

# The address of a target; "" where the kernel cannot lead there
Address = Callable[[Target], str]


def services(published: Collection[Published], listened: Collection[Place], address: Address) -> list[Service]:
    """Every port of every address. A port of the host that is somebody else's is not taken from them."""
    found: list[Service] = []
    for service in sorted(published, key=lambda each: each.name):
        for port in service.ports:
            found += _of_port(service, port, listened, address)
    # An address belongs to the first that has it.
    first: dict[tuple[str, str, int], Service] = {}
    for each in found:
        first.setdefault((each.address, each.protocol, each.port), each)
    return list(first.values())


def _of_port(service: Published, port: PublishedPort, listened: Collection[Place], address: Address) -> Iterator[Service]:
    targets = tuple((known, target.port) for target in port.targets if (known := address(target)))
    sticky = service.affinity_seconds > 0
    for own in service.addresses:
        if ":" not in own:
            yield Service(own, port.protocol, port.port, targets, sticky)
    if service.sources:
        # The listener asks who it is.
        return
    for own in service.outside:
        if targets and Place(port.protocol, own, port.port) in listened:
            yield Service(own, port.protocol, port.port, targets, sticky)
    if port.node_port and targets and any((place.protocol, place.port) == (port.protocol, port.node_port) for place in listened):
        yield Service("", port.protocol, port.node_port, targets, sticky)
