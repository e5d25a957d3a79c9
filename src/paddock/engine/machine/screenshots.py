"""Pictures of a guest at one moment: its screen, and its memory."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.owner import MachineOwner

_PICTURE = "screen.png"
# No screen has a larger picture.
_LARGEST = 64 << 20
_PATIENCE = 20.0
_DUMP_PATIENCE = 3600.0


async def screenshot(owner: MachineOwner) -> bytes:
    """A PNG."""
    if not owner.started.devices.graphics:
        what = f"cannot take a picture of machine {owner.id}"
        raise RequestRefused(what, reason="NoDisplay", why="it has no display", fix="set autoattachGraphicsDevice and start it anew")
    path = owner.directory.run / _PICTURE
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    await owner.execute("screendump", {"filename": _PICTURE, "format": "png"}, patience=_PATIENCE)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(_LARGEST)
    except OSError as error:
        raise Unanswered(f"cannot take a picture of machine {owner.id}", why=error.strerror or str(error)) from error
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


async def dump_memory(owner: MachineOwner, path: Path) -> None:
    """An ELF file with the guest's memory, readable for us alone. The guest stands still meanwhile."""

    def over(name: str, data: Mapping[str, Any]) -> bool:
        return name == "DUMP_COMPLETED"

    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with owner.occupied():
            await owner.execute("getfd", {"fdname": "dump"}, fds=[handle])
            with owner.events.expect(over) as event:
                try:
                    await owner.execute("dump-guest-memory", {"paging": False, "protocol": "fd:dump", "detach": True})
                except BaseException:
                    with contextlib.suppress(PaddockError):
                        await owner.execute("closefd", {"fdname": "dump"})
                    raise
                async with asyncio.timeout(_DUMP_PATIENCE):
                    _, data = await event
        if error := data.get("error"):
            raise QemuRefused(f"cannot write the memory of machine {owner.id}", kind="GenericError", description=str(error))
    except TimeoutError:
        raise Unanswered(f"cannot write the memory of machine {owner.id}", why=f"it took longer than {_DUMP_PATIENCE:g} s") from None
    finally:
        os.close(handle)
