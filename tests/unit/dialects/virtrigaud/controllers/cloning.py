"""VMClones of tests, and waiting for them."""

from typing import Any

from paddock.base.jsondata import Data
from tests.unit.kubevirt.controllers.rigaudharness import API, Rigaud, machine

SETTLED = ("Ready", "Failed")


def vmclone(name: str = "copy", source: Data | None = None, target: Data | None = None, **spec: Any) -> Data:
    given = {"source": source or {"vmRef": {"name": "web"}}, "target": {"name": "twin", **(target or {})}, **spec}
    return {"apiVersion": API, "kind": "VMClone", "metadata": {"name": name}, "spec": given}


async def settled(life: Rigaud, name: str = "copy", seconds: float = 900.0) -> Data:
    """Wait until a clone has come to its end."""

    async def holds() -> bool:
        seen = await life.get(name, "VMClone")
        status = seen.get("status") or {}
        return status.get("observedGeneration") == seen["metadata"]["generation"] and status.get("phase") in SETTLED

    try:
        await life.until(holds, seconds)
    except TimeoutError:
        raise AssertionError(f"not settled: {await life.status(name, 'VMClone')}, calls {life.driver.names()}") from None
    return await life.status(name, "VMClone")


async def failure(life: Rigaud, name: str = "copy") -> tuple[str, str]:
    """The reason and message of a clone that failed."""
    status = await settled(life, name)
    ready = await life.condition("Ready", name, "VMClone")
    assert (status["phase"], ready["status"]) == ("Failed", "False"), status
    return ready["reason"], ready["message"]


async def sourced(life: Rigaud, **spec: Any) -> None:
    await life.make(machine(**spec))
    await life.ready()


async def names(life: Rigaud) -> list[str]:
    return sorted(each.name for each in await life.machines())


async def until_gone(life: Rigaud, name: str = "copy") -> None:
    async def holds() -> bool:
        return not await life.get(name, "VMClone")

    await life.until(holds, 300)
