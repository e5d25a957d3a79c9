"""A guest's state that leaves its QEMU: into a file, or into another QEMU of this host or of another one.

QEMU gets descriptors, never names: its sandbox starts no programs, and no port is opened. Whoever receives begins with `-incoming defer`.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from paddock.base.errors import PaddockError
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.errors import RequestRefused, StartFailed, Unanswered
from paddock.engine.machine.events import Events
from paddock.engine.machine.owner import MachineOwner

_PATIENCE = 3600.0
_GREETING_SECONDS = 10.0
# A guest that goes on elsewhere should stand still no longer than this.
_STILL_MS = 100
_STATE = "state"
_CUT = "the line was cut, or the other side gave up: its log tells more"
_SWITCHOVER = "pre-switchover"
_UNDER_WAY = ("setup", "active", "device", "pre-switchover", "cancelling", "wait-unplug")
_PAUSE = 0.005


class MigrationEnd(Protocol):
    """A QEMU that sends or receives: a machine's own, or one beside it."""

    @property
    def id(self) -> str: ...
    @property
    def started(self) -> MachineConfig: ...
    @property
    def events(self) -> Events: ...
    @property
    def directory(self) -> Directory: ...
    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None, *, fds: Sequence[int] = ()) -> Any: ...


class Wire(Struct, frozen=True):
    """A line to another host. Each side proves to the other who it is; whoever sends hears whether all arrived."""

    # names of QEMU's object with the certificates, and of the peer that it demands
    credentials: str
    peer: str
    # bytes per second; 0: as fast as it goes
    bandwidth: int = 0
    # slow a guest down that writes faster than its memory is sent
    auto_converge: bool = False


def _capabilities(owner: MigrationEnd, *, pauses: bool = False, wire: Wire | None = None, bitmaps: bool = False) -> dict[str, Any]:
    """Memory that is a file stays where it is: the state is small then, and whoever receives it maps the same file.

    `pauses`: with the guest stopped QEMU waits for a word before it writes the rest. `bitmaps`: those of changed blocks go along.
    """
    wanted = {
        "events": True,
        "dirty-bitmaps": bitmaps,
        "pause-before-switchover": pauses,
        "return-path": wire is not None,
        "auto-converge": wire is not None and wire.auto_converge,
    }
    if owner.started.memory.file is not None:
        wanted["x-ignore-shared"] = True
    return {"capabilities": [{"capability": name, "state": state} for name, state in wanted.items()]}


def _parameters(wire: Wire | None) -> dict[str, Any]:
    """Nobody shares a line within the host."""
    speed = {"max-bandwidth": (wire.bandwidth if wire is not None else 0) or 1 << 40, "downtime-limit": _STILL_MS}
    return speed | {"tls-creds": wire.credentials if wire else "", "tls-hostname": wire.peer if wire else ""}


def _over(name: str, data: Mapping[str, Any]) -> bool:
    return name == "MIGRATION" and data.get("status") in ("completed", "failed", "cancelled")


def _begins(name: str, data: Mapping[str, Any]) -> bool:
    return name == "MIGRATION" and data.get("status") != "setup"


def _pauses(name: str, data: Mapping[str, Any]) -> bool:
    return _over(name, data) or (name == "MIGRATION" and data.get("status") == _SWITCHOVER)


async def write(owner: MachineOwner, handle: int, *, bitmaps: bool = False) -> None:
    """The guest stands still, and its state is in a file that a power cut does not take away."""
    if not owner.observed.paused:
        await owner.execute("stop")
    await give(owner, handle)
    await send(owner, "save", bitmaps=bitmaps)
    await asyncio.to_thread(os.fsync, handle)


async def go_on(owner: MachineOwner) -> None:
    """The guest runs, whatever a migration left its QEMU in, unless it was started paused or a user had paused it."""
    while (await owner.execute("query-migrate")).get("status") in _UNDER_WAY:
        await owner.execute("migrate_cancel")
        await asyncio.sleep(_PAUSE)
    # QEMU says that a migration is over a moment before it leaves this state, in which it refuses to let a guest go on.
    while (status := str((await owner.execute("query-status")).get("status"))) == "finish-migrate":
        await asyncio.sleep(_PAUSE)
    if status in ("paused", "postmigrate", "prelaunch") and not (owner.record.paused or owner.record.start_paused):
        await owner.execute("cont")


async def save(owner: MachineOwner, path: Path) -> None:
    """The guest stands still, its state goes into a file, and the machine ends with `saved`. A failure leaves it as it was."""
    new = path.with_name(path.name + ".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    runs = not owner.observed.paused
    with owner.occupied():
        try:
            await write(owner, handle)
            os.rename(new, path)
            owner.quit("saved")
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                new.unlink()
            if runs:
                with contextlib.suppress(PaddockError):
                    await owner.execute("cont")
            raise
        finally:
            os.close(handle)


async def give(owner: MigrationEnd, handle: int) -> None:
    """The file that its guest's state goes to, or comes from; the caller's is no longer needed."""
    await owner.execute("getfd", {"fdname": _STATE}, fds=[handle])


async def send(
    owner: MigrationEnd,
    action: str,
    switchover: Callable[[], Awaitable[None]] | None = None,
    wire: Wire | None = None,
    *,
    bitmaps: bool = False,
) -> None:
    """To the file it was given. Returns when everything has gone. The guest stands still then.

    `switchover` is awaited when the guest has stopped and its disks are still open: what it does belongs to the same moment.
    `bitmaps`: whoever receives the guest has the same disks open under the same names, and gets what is known of changed blocks.
    """
    capabilities = _capabilities(owner, pauses=switchover is not None, wire=wire, bitmaps=bitmaps)
    await owner.execute("migrate-set-capabilities", capabilities)
    await owner.execute("migrate-set-parameters", _parameters(wire))
    with owner.events.expect(_over if switchover is None else _pauses) as event, owner.events.expect(_begins) as beginning:
        await owner.execute("migrate", {"uri": f"fd:{_STATE}"})
        if wire is not None:
            await _greeted(owner, beginning, action)
        data = await _patiently(owner, event, action, wire)
    if switchover is not None and data.get("status") == _SWITCHOVER:
        await switchover()
        with owner.events.expect(_over) as event:
            await owner.execute("migrate-continue", {"state": _SWITCHOVER})
            data = await _patiently(owner, event, action, wire)
    if data.get("status") != "completed":
        answer = await owner.execute("query-migrate")
        why = str(answer.get("error-desc") or (_CUT if wire is not None else data.get("status")))
        raise RequestRefused(f"cannot {action} machine {owner.id}", reason="MigrationFailed", why=why)


async def _greeted(owner: MigrationEnd, event: Awaitable[tuple[str, Mapping[str, Any]]], action: str) -> None:
    """The other side has answered, and proved who it is."""
    try:
        async with asyncio.timeout(_GREETING_SECONDS):
            await event
    except TimeoutError:
        why = f"the other side did not answer within {_GREETING_SECONDS:g} s"
        raise Unanswered(f"cannot {action} machine {owner.id}", why=why, fix="see whether it runs") from None


async def _patiently(
    owner: MigrationEnd, event: Awaitable[tuple[str, Mapping[str, Any]]], action: str, wire: Wire | None
) -> Mapping[str, Any]:
    try:
        # How long a line to another host may take, its user knows.
        async with asyncio.timeout(_PATIENCE if wire is None else None):
            _, data = await event
    except TimeoutError:
        await owner.execute("migrate_cancel")
        raise Unanswered(f"cannot {action} machine {owner.id}", why=f"it took longer than {_PATIENCE:g} s") from None
    return data


async def receive(owner: MigrationEnd, wire: Wire | None = None) -> None:
    """From the file it was given. Returns when the guest is there, standing still."""
    await owner.execute("migrate-set-capabilities", _capabilities(owner, bitmaps=wire is None))
    await owner.execute("migrate-set-parameters", _parameters(wire))
    with owner.events.expect(_over) as event:
        await owner.execute("migrate-incoming", {"uri": f"fd:{_STATE}"})
        try:
            async with asyncio.timeout(_PATIENCE if wire is None else None):
                _, data = await event
        except TimeoutError:
            raise StartFailed(f"cannot restore machine {owner.id}", why=f"it took longer than {_PATIENCE:g} s") from None
    if data.get("status") != "completed":
        raise StartFailed(f"cannot restore machine {owner.id}", why=f"QEMU gave up ({data.get('status')})", text=owner.directory.log_tail())


async def restore(owner: MachineOwner, path: Path) -> None:
    """The state of a file that `save` wrote."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StartFailed(f"cannot restore machine {owner.id}", why=f"{path}: {error.strerror}") from error
    try:
        await give(owner, handle)
        await receive(owner)
    finally:
        os.close(handle)
