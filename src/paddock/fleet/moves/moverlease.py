"""The Lease by which one command at a time moves a machine. It lies beside the machine at the source, and nobody else reads it.

A move is safe without it: each step finds what another command did. Two at once only stand in each other's way, and both give up.
"""

import asyncio
import contextlib
import getpass
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.moves.mover import CannotMove
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.errors import AlreadyExists, ApiError, Conflict, Forbidden, MethodNotAllowed, NotFound
from paddock.kubernetes.client.options import DeletionOptions, merge_patch
from paddock.kubernetes.client.target import LEASES, Key
from paddock.kubernetes.meta import ages

# A command that was killed holds up another one at most so long.
SECONDS = 30
_RENEW_SECONDS = 10.0


def own_identity() -> str:
    """Return who this command is, for people."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()} (process {os.getpid()})"


class MoverLease:
    """The Lease of one machine."""

    def __init__(self, source: MoveSide, machine: MachineView, identity: str) -> None:
        self._client = source.client
        self._clock = source.session.clock
        self._machine = machine
        self._identity = identity
        self._key = Key(machine.key.namespace, f"paddock-move-{texts(machine.data, 'metadata', 'uid')}")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold it. Raises `CannotMove` while another command does. Who may have no Leases goes on without."""
        try:
            uid = await self._take()
        except (Forbidden, NotFound, MethodNotAllowed):
            yield
            return
        renewing = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            with contextlib.suppress(ApiError):
                await self._client.delete(LEASES, self._key, DeletionOptions(uid=uid))

    async def _take(self) -> str:
        while True:
            now = self._clock.seconds()
            spec = {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": SECONDS,
                "acquireTime": ages.micro_timestamp(now),
                "renewTime": ages.micro_timestamp(now),
            }
            metadata = {"name": self._key.name, "namespace": self._key.namespace}
            with contextlib.suppress(AlreadyExists):
                made = await self._client.create(
                    LEASES, {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
                )
                return texts(made, "metadata", "uid")
            found = await self._client.find(LEASES, self._key)
            if found is None:
                continue
            if now < (ages.seconds_of(texts(found, "spec", "renewTime")) or 0.0) + SECONDS and not _is_over(
                texts(found, "spec", "holderIdentity")
            ):
                raise self._refusal(found)
            document = {"metadata": {"resourceVersion": texts(found, "metadata", "resourceVersion")}, "spec": spec}
            with contextlib.suppress(Conflict, NotFound):
                return texts(await self._client.patch(LEASES, self._key, merge_patch(document)), "metadata", "uid")

    def _refusal(self, found: Data) -> CannotMove:
        holder, since = texts(found, "spec", "holderIdentity"), texts(found, "spec", "acquireTime")
        return CannotMove(
            f"cannot move {self._machine}",
            why=f"another command moves it: {holder}, since {since.partition('.')[0]}Z",
            fix=f"wait until that one has ended; if it was killed, run this again in {SECONDS} s",
        )

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            document = {"spec": {"renewTime": ages.micro_timestamp(self._clock.seconds())}}
            # Without a server the move itself says what is wrong.
            with contextlib.suppress(ApiError):
                await self._client.patch(LEASES, self._key, merge_patch(document))


def _is_over(holder: str) -> bool:
    """Return whether a command of this host has ended without giving its Lease back."""
    _, _, place = holder.partition("@")
    host, _, process = place.partition(" (process ")
    number = process.removesuffix(")")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
