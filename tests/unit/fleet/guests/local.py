"""A machine whose guest is this host: its agent runs commands and opens files here, behind a real server on loopback."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from paddock.base.clock import SystemClock
from paddock.engine.machine import guest
from paddock.engine.machine.errors import AgentError
from paddock.fleet.guests import guest as guests
from paddock.fleet.guests.guest import GuestAccess
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.http.https import Https
from tests.kit.engine.enginefakes import FakeMachine
from tests.unit.app.subresources.wire import served
from tests.unit.app.subresources.world import World


def execute(argv: tuple[str, ...], stdin: bytes = b"") -> guest.GuestExecResult:
    """Run a command here, as an agent runs it in its guest."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=20)
    except FileNotFoundError as error:
        what = f'Failed to execute child process "{argv[0]}" (No such file or directory)'
        raise AgentError("cannot ask the agent of machine x for guest-exec", reason="Refused", why=what) from error
    return guest.GuestExecResult(done.returncode, done.stdout, done.stderr)


@asynccontextmanager
async def session(port: int) -> AsyncIterator[ServerSession]:
    """A connection to a server on loopback."""
    access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential())
    async with Client(Https(access), ClientSettings()) as client:
        yield ServerSession(client, access, "default", SystemClock())


@asynccontextmanager
async def reached(world: World, name: str = "vm") -> AsyncIterator[GuestAccess]:
    """The guest of a machine, over a real server."""
    async with served(world) as port, session(port) as server:
        yield await guests.access(server, name, "reach")


async def with_agent(world: World) -> FakeMachine:
    """A machine that runs, whose agent works on this host."""
    await world.machine()
    machine = await world.running()
    agent = machine.agent
    agent.connect()
    given: list[bytes] = []

    async def spawn(argv: tuple[str, ...], stdin: bytes = b"") -> int:
        given.append(stdin)
        agent.runs.append(tuple(argv))
        if not Path(argv[0]).exists() and "/" in argv[0]:
            execute(tuple(argv))
        return len(agent.runs)

    async def outcome(number: int, seconds: float) -> guest.GuestExecResult | None:
        return None if agent.busy else execute(agent.runs[number - 1], given[number - 1])

    async def read_file(path: str, offset: int, count: int) -> tuple[bytes, bool]:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise AgentError("cannot ask the agent of machine x for guest-file-open", reason="Refused", why=str(error)) from error
        return data[offset : offset + count], offset + count > len(data)

    async def write_file(path: str, offset: int, data: bytes) -> None:
        try:
            with open(path, "r+b" if offset else "wb") as file:
                file.seek(offset)
                file.write(data)
        except OSError as error:
            raise AgentError("cannot ask the agent of machine x for guest-file-open", reason="Refused", why=str(error)) from error

    for method in (spawn, outcome, read_file, write_file):
        setattr(agent, method.__name__, method)
    return machine
