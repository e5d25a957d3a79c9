"""The books of addresses of bridges: a file for each network of a bridge, in `bridges`."""

import asyncio
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
from paddock.engine.networks.nics import HostBridge


class BridgeAddresses:
    """The addresses of cards in bridges of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "bridges"
        # by their file
        self._ledgers: dict[Path, AddressStore] = {}
        # Two networks of a bridge can overlap: what one gives, the other must see.
        self._giving = asyncio.Lock()

    async def give(self, key: Key, bridge: HostBridge) -> tuple[BridgeOptions, BridgeOptions]:
        """Return what a card is given in both families, `NOTHING` in one of which the bridge says nothing."""
        return await self._give(key, bridge, IP4), await self._give(key, bridge, IP6)

    async def _give(self, key: Key, bridge: HostBridge, family: Family) -> BridgeOptions:
        said = bridges.fixed(bridge, family)
        ranges = bridges.ranges_of(bridge, family)
        if said is not None or not ranges:
            return said or NOTHING
        of = ranges[0]
        link = _digest(f"{bridge.name}.{bridge.vlan}")
        path = self._directory / f"{link}-{_digest(of.network)}.json"
        # Earlier versions had a book for each form of a range.
        text = f"{bridge.name}\0{of}".replace(", excluded=()", "")
        earlier = self._directory / f"{_digest(text)}.json"
        if not path.exists() and earlier.exists():
            earlier.rename(path)
        ledger = self._ledger_at(path, lambda: bridges.book(of))
        async with self._giving:
            others = [self._ledger_at(path, _never).book for path in self._directory.glob(f"{link}-*.json")]
            among = bridges.numbers(of, [each for each in others if each is not ledger.book])
            entry = await ledger.give(key, 0.0, among=among)
        book = ledger.book
        return bridges.from_range(bridge, of, book.address(entry) or book.address6(entry))

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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _never() -> AddressTable:
    raise NetworkUnusable("a book of addresses vanished while it was read")
