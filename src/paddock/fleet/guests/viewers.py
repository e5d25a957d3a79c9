"""Programs that show a display over VNC, and the loopback port that they connect to."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.fleet.guests import forwarding
from paddock.fleet.guests.guest import GuestAccess

Say = Callable[[str], None]
# gvncviewer counts displays from this port on.
_FIRST_DISPLAY = 5900


class NoViewer(Terminal):
    """This host has no program that shows a display."""


class DisplayViewer(msgspec.Struct, frozen=True):
    """A program, and its arguments. They name the loopback port only: there is no password that they could show to others."""

    program: str
    arguments: tuple[str, ...]

    def command(self, port: int) -> list[str]:
        """Return the command that connects to a port of loopback."""
        values = {"port": port, "display": port - _FIRST_DISPLAY}
        return [self.program, *(each.format(**values) for each in self.arguments)]


VIEWERS = (
    DisplayViewer("remote-viewer", ("vnc://127.0.0.1:{port}",)),
    DisplayViewer("xtigervncviewer", ("127.0.0.1::{port}",)),
    DisplayViewer("tigervnc", ("127.0.0.1::{port}",)),
    DisplayViewer("vncviewer", ("127.0.0.1::{port}",)),
    DisplayViewer("xtightvncviewer", ("127.0.0.1::{port}",)),
    DisplayViewer("vinagre", ("vnc://127.0.0.1:{port}",)),
    DisplayViewer("remmina", ("-c", "vnc://127.0.0.1:{port}")),
    DisplayViewer("krdc", ("vnc://127.0.0.1:{port}",)),
    DisplayViewer("gvncviewer", ("127.0.0.1:{display}",)),
)


def choose(environ: Mapping[str, str] = os.environ) -> DisplayViewer:
    """Return the first viewer of this host. Raises `NoViewer` if it has none, or no screen."""
    found = next((each for each in VIEWERS if shutil.which(each.program, path=environ.get("PATH"))), None)
    if found is None:
        fix = "install virt-viewer or tigervnc-viewer, or use --proxy and a viewer of your own; `paddock screenshot` takes a picture"
        raise NoViewer("cannot show the display", why="this host has no VNC viewer", fix=fix)
    if not environ.get("DISPLAY") and not environ.get("WAYLAND_DISPLAY"):
        fix = "use --proxy, and connect a viewer through it; `paddock screenshot` takes a picture"
        why = "there is no graphical session here (neither DISPLAY nor WAYLAND_DISPLAY is set)"
        raise NoViewer("cannot show the display", why=why, fix=fix)
    return found


@contextlib.asynccontextmanager
async def served(guest: GuestAccess, port: int, say: Say) -> AsyncIterator[int]:
    """Listen on a port of loopback (0: any) that leads to the guest's display; yield it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with guest.stream("vnc") as stream:
                await forwarding.exchange(stream, reader, forwarding.writing(writer))
        except PaddockError as error:
            say(f"display of {guest.name}: {error}")
        except OSError:
            # The viewer went.
            pass
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port)
    except OSError as error:
        raise forwarding.BadPort(f"cannot listen on port {port}", why=error.strerror or str(error), fix="choose another --port") from error
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
