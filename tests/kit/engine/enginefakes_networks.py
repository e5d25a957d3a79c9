"""Networks in a test: addresses as the real ones give them, no taps, no sockets.

networks = FakeNetworks()
networks.guests["vm-uid", "default", 80] = handler      # what `dial` connects to
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

from paddock.engine.machine.config import Tap, UserNetwork
from paddock.engine.networks.addresses import AddressTable
from paddock.engine.networks.errors import GuestUnreachable, NetworkUnusable
from paddock.engine.networks.nics import AttachedNic, NicPolicy, NicSpec, PublishedService

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class FakeNetworks:
    """The calls of `paddock.engine.networks.networks.Networks`, remembered."""

    def __init__(self, *, routed: bool = True, limits: tuple[str, ...] = ()) -> None:
        self.routed = routed
        self.limits = limits
        self.book = AddressTable("10.112.64.0/18", "0000000001")
        self.cards: dict[tuple[str, str], NicSpec] = {}
        self.published: tuple[PublishedService, ...] = ()
        self.policies: tuple[NicPolicy, ...] = ()
        self.names: dict[str, tuple[str, ...]] = {}
        self.guests: dict[tuple[str, str, int], Handler] = {}
        # problems that `publish` answers with, by the name of what is published
        self.problems: dict[str, tuple[str, ...]] = {}
        # cards that cannot be plugged, and why
        self.refused: dict[str, str] = {}
        # the reason codes of those that have one
        self.reasons: dict[str, str] = {}

    @property
    def outside_addresses(self) -> tuple[str, ...]:
        return ("192.0.2.10",)

    @property
    def mode(self) -> str:
        return "routed" if self.routed else "user"

    async def plug(self, card: NicSpec) -> AttachedNic:
        if card.name in self.refused:
            reason = self.reasons.get(card.name, "")
            raise NetworkUnusable(f"cannot plug {card.name}", why=self.refused[card.name], reason=reason)
        self.book, entry = self.book.give(card.key, 0.0, card.mac)
        self.cards[card.key] = card
        address = self.book.address(entry)
        inner = "10.0.2.2/24" if card.binding == "masquerade" or not self.routed else f"{address}/18"
        tap = Tap(f"tap{entry.index}", card.queues)
        backend = tap if self.routed else UserNetwork("10.0.2.0/24", "10.0.2.1", "10.0.2.2", "10.0.2.3")
        return AttachedNic(entry.mac, address, inner, backend, limits=self.limits)

    async def unplug(self, owner: str, name: str) -> None:
        self.cards.pop((owner, name), None)

    async def release(self, owners: AbstractSet[str]) -> None:
        for key in [key for key in self.cards if key[0] in owners]:
            del self.cards[key]
        self.book = self.book.release(owners, 0.0)

    def owners(self) -> set[str]:
        return {owner for owner, _ in self.book.entries}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def collect(self, owners: Collection[str]) -> None: ...

    async def dial(self, owner: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        handler = self.guests.get((owner, name, port))
        if handler is None or (owner, name) not in self.cards:
            raise GuestUnreachable(f"cannot connect to port {port} of {name}", why="Connection refused")
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        try:
            return await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        finally:
            server.close()

    async def publish(self, services: Collection[PublishedService]) -> Mapping[str, tuple[str, ...]]:
        self.published = tuple(services)
        return {each.name: self.problems[each.name] for each in services if each.name in self.problems}

    async def police(self, policies: Collection[NicPolicy]) -> None:
        self.policies = tuple(policies)

    async def name(self, names: Mapping[str, Collection[str]]) -> None:
        self.names = {name: tuple(addresses) for name, addresses in names.items()}
