"""Groups of kinds that nobody uses: their controllers are neither loaded nor run."""

import asyncio
import subprocess
import sys

import pytest

from paddock.app.controllers.usage import group_used
from paddock.store.contract import StoreKey
from paddock.store.memory import MemoryStore

GROUP = "infra.virtrigaud.io"
PROGRAM = """
import sys
import paddock.app.server.enginehost
print(*(each for each in sys.modules if each.startswith(("paddock.drivers", "paddock.contract", "paddock.controllers.virtrigaud"))))
"""


async def put(store: MemoryStore, collection: str) -> None:
    await store.put(StoreKey(collection, "default", "a"), 0, lambda revision: b"{}").committed()


@pytest.mark.parametrize("is_there_before", [True, False])
def test_a_group_is_used_once_it_has_an_object(is_there_before: bool) -> None:
    async def script() -> None:
        store = MemoryStore()
        if is_there_before:
            await put(store, f"providers.{GROUP}")
        waiting = asyncio.create_task(group_used(store, GROUP))
        if not is_there_before:
            for other in ("configmaps", "virtualmachines.kubevirt.io", f"vms.more.{GROUP}"):
                await put(store, other)
                await asyncio.sleep(0)
            assert not waiting.done()
            await put(store, f"vmclasses.{GROUP}")
        await waiting

    asyncio.run(script())


def test_a_server_does_not_load_the_controllers_of_providers() -> None:
    made = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert made.stdout == "\n"
