"""The book of addresses on disk: `addresses.json`, written whole to a new file that takes the old one's place.

While the file cannot be read, no card gets an address and nothing is written: another book would give those of running machines to others.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import orjson

from paddock.base import reasons
from paddock.base.threads import undisturbed
from paddock.engine import versions
from paddock.engine.networks.addresses import AddressEntry, AddressTable, Key, Numbers
from paddock.engine.networks.errors import NetworkUnusable

_LOG = logging.getLogger(__name__)
_VERSION = 1


class AddressStore:
    """The book and its file. What was answered is on disk; a thread waits for that."""

    def __init__(self, path: Path, fresh: Callable[[], AddressTable]) -> None:
        self._path = path
        self._fresh = fresh
        self.book = AddressTable("")
        self._damage: NetworkUnusable | None = None
        # One change at a time: the next one begins with what is on disk.
        self._changing = asyncio.Lock()

    @classmethod
    def open(cls, path: Path, fresh: Callable[[], AddressTable]) -> "AddressStore":
        """The book as it was left; `fresh` makes the first one."""
        # Others may pass through to sockets whose names they know.
        path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        store = cls(path, fresh)
        try:
            store._load()
        except NetworkUnusable as error:
            _LOG.error("addresses of machines unreadable", extra={"error": str(error)})
            store._damage = error
        return store

    @property
    def is_damaged(self) -> bool:
        """Return whether the file could not be read when that was last tried."""
        return self._damage is not None

    def check(self) -> None:
        """Read a file again that could not be read. Raises `NetworkUnusable`."""
        if self._damage is not None:
            self._load()
            self._damage = None

    def _load(self) -> None:
        try:
            self.book = _decoded(self._path, self._path.read_bytes())
        except FileNotFoundError:
            self.book = self._fresh()
            _write(self._path, self.book)
        except OSError as error:
            raise _unreadable(self._path, error.strerror or str(error)) from error

    async def give(self, key: Key, now: float, mac: str = "", among: Numbers | None = None) -> AddressEntry:
        """The card's entry. Raises `NetworkUnusable` while the file cannot be read."""
        async with self._changing:
            self.check()
            book, entry = self.book.give(key, now, mac, among)
            await self._set(book)
            return entry

    async def release(self, owners: AbstractSet[str], now: float) -> None:
        """The addresses of these owners are free, after a rest. In a file that cannot be read they stay."""
        async with self._changing:
            if not self.is_damaged:
                await self._set(self.book.release(owners, now))

    async def move(self, network: str, network6: str = "") -> None:
        """The addresses lie in these networks from now on."""
        async with self._changing:
            if (network, network6) != (self.book.network, self.book.network6):
                await self._set(self.book.moved(network, network6))

    def get(self, key: Key) -> AddressEntry | None:
        """The card's entry, when it has one."""
        return self.book.entries.get(key)

    def owners(self) -> set[str]:
        return {entry.owner for entry in self.book.entries.values()}

    async def _set(self, book: AddressTable) -> None:
        if book is self.book:
            return
        await undisturbed(_write, self._path, book)
        self.book = book


def _write(path: Path, book: AddressTable) -> None:
    write_record(path, _encoded(book), durable=True)


def write_record(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file that only this user reads. What is of use only while guests run need not outlast a loss of power."""
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fdatasync(file.fileno())
    fresh.replace(path)


def _encoded(book: AddressTable) -> bytes:
    data = {
        "version": _VERSION,
        "network": book.network,
        "network6": book.network6,
        "site": book.site,
        "cards": [
            {"owner": entry.owner, "name": entry.name, "mac": entry.mac, "index": entry.index}
            for entry in sorted(book.entries.values(), key=lambda entry: entry.key)
        ],
        "resting": {str(index): at for index, at in sorted(book.resting.items())},
    }
    return orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n"


def _decoded(path: Path, raw: bytes) -> AddressTable:
    if why := versions.strange(raw, _VERSION):
        raise _unreadable(path, why, versions.FIX)
    try:
        data: dict[str, Any] = orjson.loads(raw)
        entries = [AddressEntry(each["owner"], each["name"], each["mac"], each["index"]) for each in data["cards"]]
        # Earlier versions kept the gateway of a bridge's range here, which rests for ever: JSON has no such number.
        resting = {int(index): float(at) for index, at in data["resting"].items() if at is not None}
        known = {entry.key: entry for entry in entries}
        return AddressTable(data["network"], data["site"], known, resting, network6=data.get("network6", ""))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def _unreadable(path: Path, why: str, fix: str = "restore the file, or remove it when no machine runs") -> NetworkUnusable:
    what = f"cannot read the addresses of machines in {path}"
    return NetworkUnusable(what, why=why, fix=fix, reason=reasons.ADDRESSES_DAMAGED)
