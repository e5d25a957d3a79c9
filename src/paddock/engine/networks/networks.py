"""`Networks`: the cards of machines, and who reaches them.

As root each card is a tap that the host routes to; otherwise QEMU's user-mode network or passt. Callers see the same calls either way, and
what cannot be done is said in `Plug.limits`. Every call may be repeated.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paddock.engine.networks import hostnetwork
from paddock.engine.networks.addresses import Book, Entry, check_network, choose_network
from paddock.engine.networks.cards import Card, Plug
from paddock.engine.networks.datagrams import Datagrams, open_datagrams
from paddock.engine.networks.errors import Unreachable
from paddock.engine.networks.ledger import Ledger
from paddock.engine.networks.usermode import Forward, UserMode, connect

_DIAL_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """How machines are connected."""

    # "auto" is routed where that is possible
    mode: Literal["auto", "routed", "user"] = "auto"
    # "" chooses one that the host does not use, once
    pod_network: str = ""
    service_network: str = "10.96.0.0/12"
    # names end with it
    zone: str = "cluster.local"


class Networks:
    """All cards, by (owner, name)."""

    def __init__(self, directory: Path, settings: Settings = Settings(), *, seconds: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._settings = settings
        self._seconds = seconds
        self._why_user = (
            "" if settings.mode == "routed" else "user mode was chosen" if settings.mode == "user" else hostnetwork.why_not_routed()
        )
        self._ledger = Ledger.open(directory / "addresses.json", self._fresh)
        self._cards: dict[tuple[str, str], Card] = {}
        self._user = UserMode(passt_program=shutil.which("passt"), nameservers=hostnetwork.nameservers)

    @property
    def mode(self) -> Literal["routed", "user"]:
        """How cards are connected."""
        return "user" if self._why_user else "routed"

    @property
    def why_user(self) -> str:
        """Why there is no pod network; "" when there is one."""
        return self._why_user

    def forward_by(self, forward: Forward) -> None:
        """Whom to ask, in user mode, for a port of a running machine."""
        self._user.forward = forward

    async def plug(self, card: Card) -> Plug:
        """The card is ready for a machine, with the same MAC and addresses each time."""
        entry = self._ledger.give(card.key, self._seconds(), card.mac)
        plug = await self._user.plug(card, entry)
        self._cards[card.key] = card
        return plug

    async def unplug(self, owner: str, name: str) -> None:
        """What the host has for the card goes; its addresses stay."""
        self._cards.pop((owner, name), None)
        await self._user.unplug((owner, name))

    async def release(self, owner: str) -> None:
        """The owner's cards go, and their addresses with them."""
        for key in [key for key in self._cards if key[0] == owner]:
            await self.unplug(*key)
        self._ledger.release(owner, self._seconds())

    def owners(self) -> set[str]:
        """Everybody who has addresses."""
        return self._ledger.owners()

    def restarted(self, owner: str) -> None:
        """The owner's machine runs in a new process, to which nothing has been forwarded yet."""
        self._user.restarted(owner)

    async def dial(self, owner: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A TCP connection to the guest; raises `Unreachable`."""
        return await connect(await self._user.reach(self._entry(owner, name), "tcp", port), _DIAL_SECONDS)

    async def datagrams(self, owner: str, name: str, port: int) -> Datagrams:
        """UDP to the guest; raises `Unreachable`."""
        return await open_datagrams(await self._user.reach(self._entry(owner, name), "udp", port))

    def _entry(self, owner: str, name: str) -> Entry:
        entry = self._ledger.get((owner, name))
        if entry is None or (owner, name) not in self._cards:
            raise Unreachable(f"cannot reach {name}", why="the card is not plugged")
        return entry

    def _fresh(self) -> Book:
        used = (network for _, network in hostnetwork.routes())
        wanted = check_network(self._settings.pod_network) if self._settings.pod_network else ""
        return Book(choose_network(wanted, used, self._settings.service_network), os.urandom(5).hex())
