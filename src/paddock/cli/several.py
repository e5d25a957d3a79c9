"""Commands that take several machines: each is found, handled and reported by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from paddock.base.errors import PaddockError
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.waiting import NotReached
from paddock.fleet.servers.session import ServerSession

_AT_A_TIME = 8
EXITS = {0: "done", 1: "a machine did not get there in time", 2: "failure, or wrong usage"}


def add_names(options: arguments.Container) -> None:
    """Add the names of machines."""
    named = options.add_argument("names", metavar="[KIND/]NAME", nargs="+", help=arguments.MACHINES_TEXT)
    arguments.complete_with(named, arguments.KnownNames.MACHINES)


async def each(
    session: ServerSession,
    names: Sequence[str],
    console: Console,
    work: Callable[[MachineView], Awaitable[str]],
) -> int:
    """Do the work for every name, some at a time. Print a line for each as it ends; return the exit code of the worst."""
    turns = asyncio.Semaphore(_AT_A_TIME)

    async def one(name: str) -> int:
        async with turns:
            try:
                machine = await finding.find(session.client, name, session.namespace)
                console.out(f"{machine} {await work(machine)}\n")
                console.flush()
            except NotReached as error:
                console.say(f"paddock: {error}")
                return FINDINGS
            except PaddockError as error:
                console.say(f"paddock: {error}")
                return UNUSABLE
            return GOOD

    return max(await asyncio.gather(*(one(name) for name in dict.fromkeys(names))), default=GOOD)
