"""Scripts in virtual time against a server in memory."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.runtime.machinery import Machinery
from tests import virtualtime
from tests.kit.servers import apiclient
from tests.kit.servers.apiharness import Harness


class World:
    """A server, a client of it and what programs share."""

    def __init__(self, api: Harness, client: Client) -> None:
        self.api = api
        self.client = client
        self.machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))


Script = Callable[[World], Awaitable[Any]]
Play = Callable[[Script], float]


@pytest.fixture
def play() -> Play:
    """Runs a script with a fresh server in virtual time; returns how long it took there."""

    def run(script: Script) -> float:
        async def inside() -> None:
            async with Harness() as api, apiclient.inside(api) as client:
                await script(World(api, client))

        return virtualtime.run(inside())

    return run
