"""A Provider whose peer breaks the rules of HTTP/2, from its creation to its deletion."""

import asyncio
import contextlib
import random
import subprocess
import sys
from collections.abc import AsyncIterator

from paddock.kubernetes.client.errors import NotFound
from tests.host.runs.conftest import Talk
from tests.host.soak.hostile import NAMESPACE
from tests.kit.hostile import hostileproviders
from tests.kit.hostile.hostilepeers import KINDS

_PROVIDERS = f"/apis/infra.virtrigaud.io/v1beta1/namespaces/{NAMESPACE}/providers"
_NAME = "bad"
_GONE_SECONDS = 120


async def live(talk: Talk, chance: random.Random) -> None:
    """The life of one; a server that ends meanwhile leaves it to the next."""
    await _delete(talk)
    async with _peer(chance.choice(tuple(KINDS))) as port:
        await talk.make(_PROVIDERS, hostileproviders.provider(_NAME, port, tls=False))
        await asyncio.sleep(chance.uniform(2, 10))
        await _delete(talk)


async def _delete(talk: Talk) -> None:
    with contextlib.suppress(NotFound):
        await talk.client.request("DELETE", f"{_PROVIDERS}/{_NAME}")
    await talk.until(f"{_PROVIDERS}/{_NAME}", lambda found: not found, "the Provider is gone", _GONE_SECONDS)


@contextlib.asynccontextmanager
async def _peer(kind: str) -> AsyncIterator[int]:
    """A peer in a process of its own; its port."""
    command = ["nice", sys.executable, "-m", "tests.kit.hostile.hostilepeers", kind]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()
