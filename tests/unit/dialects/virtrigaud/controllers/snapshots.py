"""Snapshots in the tests of VirtRigaud's controllers: objects, and what is awaited of them."""

from typing import Any

from paddock.base.jsondata import Data
from tests.unit.kubevirt.controllers.rigaudharness import API, Rigaud

KIND = "VMSnapshot"


def snapshot(name: str = "s", vm: str = "web", **spec: Any) -> Data:
    return {"apiVersion": API, "kind": KIND, "metadata": {"name": name}, "spec": {"vmRef": {"name": vm}, **spec}}


async def state(life: Rigaud, name: str = "s") -> Data:
    return await life.status(name, KIND)


async def phase(life: Rigaud, wanted: str, name: str = "s", seconds: float = 600.0) -> Data:
    """Wait until a snapshot is in a phase."""

    async def holds() -> bool:
        return bool((await state(life, name)).get("phase") == wanted)

    try:
        await life.until(holds, seconds)
    except TimeoutError:
        raise AssertionError(f"not {wanted}: {await life.get(name, KIND)}, calls {life.driver.names()}") from None
    return await state(life, name)


async def end(life: Rigaud, name: str = "s", seconds: float = 600.0) -> None:
    """Wait until a snapshot's object is gone."""

    async def holds() -> bool:
        return not await life.get(name, KIND)

    try:
        await life.until(holds, seconds)
    except TimeoutError:
        raise AssertionError(f"not gone: {await life.get(name, KIND)}, calls {life.driver.names()}") from None


async def names(life: Rigaud) -> list[str]:
    found = await life.api.get(f"/apis/{API}/namespaces/default/vmsnapshots")
    return sorted(each["metadata"]["name"] for each in found.data["items"])


def kept(life: Rigaud) -> list[str]:
    """The snapshots that the provider has, by the names that it was given."""
    machines = life.driver.driver._inventory.machines.values()
    life.driver.driver._inventory.tasks.settle()
    return [each.name for machine in machines for each in machine.snapshots]
