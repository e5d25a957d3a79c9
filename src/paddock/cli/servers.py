"""A connection to the server that the command line names."""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from paddock.base.clock import SystemClock
from paddock.cli import serveraccess
from paddock.cli.console import Console
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.http.https import Https

T = TypeVar("T")


@asynccontextmanager
async def connected(
    parsed: argparse.Namespace, console: Console, *, warnings: bool = False, role: str = ""
) -> AsyncIterator[ServerSession]:
    """Connect to the server that the options of `arguments.add_server` name. With `warnings`, the log has what the server warns of.

    Commands that send what the user wrote want the warnings. For the others they are about kinds that nobody wrote. A command with
    several servers gives each a role, for errors.
    """
    access = serveraccess.find(parsed, console)
    if role:
        access = msgspec.structs.replace(access, title=f"{role} {access.server}")
    async with Client(Https(access), ClientSettings(warnings=warnings)) as client:
        yield ServerSession(client, access, parsed.namespace or access.namespace, SystemClock())


def end_as_by_interrupt() -> None:
    """Have SIGTERM and a closed terminal end the command as ctrl+C does: what was made for a moment must not stay."""
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGHUP):
        # `nohup` has the command ignore that its terminal is closed.
        if signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, _interrupt)


def _interrupt() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control lets its background jobs ignore SIGINT, so raising it would do nothing.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def serve(work: Coroutine[Any, Any, T]) -> T:
    """Run the part of a command that talks to a server, to its end."""
    return asyncio.run(work)
