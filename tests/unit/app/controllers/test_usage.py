"""Kinds that nobody uses: their controllers are neither loaded nor run."""

import asyncio
import subprocess
import sys

import pytest

from paddock.app.controllers.usage import in_use
from paddock.server.store.contract import StoreKey
from paddock.server.store.memory import MemoryStore
from tests.coroutines import run_by

GROUP = "infra.virtrigaud.io"
PROGRAM = """
import sys
import paddock.app.server.enginehost
dialects = ("kubermatic", "stakater", "virtrigaud", "vitistack")
controllers = (f"paddock.dialects.{each}.controllers" for each in dialects)
late = ("cryptography", "yaml", "email", "paddock_drivers", "paddock.contract", *controllers)
print(*(each for each in sys.modules if each.startswith(late)))
"""


async def put(store: MemoryStore, collection: str, value: bytes = b"{}") -> None:
    await store.put(StoreKey(collection, "default", "a"), 0, lambda revision: value).committed()


@pytest.mark.parametrize("kinds", [GROUP, f"vmclasses.{GROUP}"])
@pytest.mark.parametrize("is_there_before", [True, False])
@run_by(asyncio.run)
async def test_kinds_are_used_once_there_is_an_object(is_there_before: bool, kinds: str) -> None:
    store = MemoryStore()
    if is_there_before:
        await put(store, f"vmclasses.{GROUP}")
    waiting = asyncio.create_task(in_use(store, kinds, GROUP))
    if not is_there_before:
        for other in ("configmaps", "virtualmachines.kubevirt.io", f"vms.more.{GROUP}"):
            await put(store, other)
            await asyncio.sleep(0)
        assert not waiting.done()
        await put(store, f"vmclasses.{GROUP}")
    await waiting


@pytest.mark.parametrize("collection", ["virtualmachines.kubevirt.io", "datavolumes.cdi.kubevirt.io", "persistentvolumeclaims"])
@run_by(asyncio.run)
async def test_what_a_dialect_has_left_is_use_as_well(collection: str) -> None:
    store = MemoryStore()
    await put(store, collection, b'{"metadata":{"finalizers":["%s/finalizer"]}}' % GROUP.encode())
    await asyncio.wait_for(in_use(store, GROUP, GROUP), 5)


def test_a_server_loads_no_controllers_of_dialects() -> None:
    made = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert made.stdout == "\n"
