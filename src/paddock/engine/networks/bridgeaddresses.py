"""The books of addresses of bridges: a file for each range, in `bridges`."""

import hashlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

from paddock.engine.networks import bridges
from paddock.engine.networks.addresses import AddressTable, Key
from paddock.engine.networks.addressstore import AddressStore
from paddock.engine.networks.bridges import NOTHING, BridgeOptions
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.families import IP4, IP6, Family
from paddock.engine.networks.nics import HostBridge, Range


class BridgeAddresses:
    """The addresses of cards in bridges of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "bridges"
        # by their file
        self._ledgers: dict[Path, AddressStore] = {}

    async def give(self, key: Key, bridge: HostBridge) -> tuple[BridgeOptions, BridgeOptions]:
        """Return what a card is given in both families, `NOTHING` in one of which the bridge says nothing."""
        return await self._give(key, bridge, IP4), await self._give(key, bridge, IP6)

    async def _give(self, key: Key, bridge: HostBridge, family: Family) -> BridgeOptions:
        said = bridges.fixed(bridge, family)
        ranges = bridges.ranges_of(bridge, family)
        if said is not None or not ranges:
            return said or NOTHING
        of = ranges[0]
        ledger = self._ledger_of(bridge.name, of)
        entry = await ledger.give(key, 0.0, among=bridges.numbers(of))
        book = ledger.book
        return bridges.from_range(bridge, of, book.address(entry) or book.address6(entry))

    def _ledger_of(self, bridge: str, of: Range) -> AddressStore:
        name = hashlib.sha256(f"{bridge}\0{of}".encode()).hexdigest()[:12]
        return self._ledger_at(self._directory / f"{name}.json", lambda: bridges.book(of))

    def _ledger_at(self, path: Path, fresh: Callable[[], AddressTable]) -> AddressStore:
        """Return the book in a file; whoever changes it meanwhile uses the same."""
        found = self._ledgers.get(path)
        if found is None:
            found = self._ledgers[path] = AddressStore.open(path, fresh)
        return found

    async def release(self, owners: AbstractSet[str], seconds: float) -> None:
        """The addresses of these owners are free."""
        for path in self._directory.glob("*.json"):
            await self._ledger_at(path, _never).release(owners, seconds)


def _never() -> AddressTable:
    raise NetworkUnusable("a book of addresses vanished while it was read")
