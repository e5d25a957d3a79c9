"""Faults: what is done to a whole host in virtual time, and what `paddock why` has to say of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from paddock.cli.names import candidates
from paddock.fleet.diagnosis.explain import Explanation, explain
from paddock.fleet.servers.serverreader import ServerReader
from tests.kit.engine.fakehost import FakeHost
from tests.virtualtime import Clock

Inject = Callable[[FakeHost], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """`ask` is about what; `cause` and `of` are the first finding and the object it was read from (`Kind name`)."""

    name: str
    inject: Inject
    cause: str
    of: str
    ask: str = "vm/web"
    state: str = "fails"
    # how long after the last thing that was done somebody asks
    seconds: float = 5.0
    # words of the cause
    says: str = ""


async def asked(host: FakeHost, text: str) -> Explanation:
    """Return the explanation of `paddock why`."""
    looking = ServerReader(host.api.client(), Clock())
    found = await looking.find(candidates(text, "default"))
    assert found, f"there is no {text}"
    return explain(await looking.gather(found[0]), found[0])


async def answered(host: FakeHost, fault: Fault) -> Explanation:
    """Inject a fault and ask."""
    await fault.inject(host)
    await asyncio.sleep(fault.seconds)
    return await asked(host, fault.ask)
