"""A fake driver in virtual time, with the calls that tests make of it."""

import asyncio
from typing import Any

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from tests import virtualtime

SMALL = '{"CPU":1,"MemoryMiB":512}'
IMAGE = '{"TemplateName":"debian"}'


def driver(**settings: Any) -> FakeDriver:
    """A driver with these settings."""
    return FakeDriver(FakeSettings(**settings), virtualtime.Clock())


def create(name: str = "web", uid: str = "", **changes: Any) -> m.CreateRequest:
    """A create of a small machine; with a uid it has an owner."""
    owner = m.ObjectIdentity(uid=uid, namespace="shop", name=name) if uid else None
    return m.CreateRequest(**{"name": name, "class_json": SMALL, "image_json": IMAGE, "owner": owner} | changes)


async def made(driver: FakeDriver, request: m.CreateRequest | None = None) -> str:
    """A machine that is there; its id."""
    response = await driver.create(request or create())
    await ended(driver, response.task)
    return response.id


async def ended(driver: FakeDriver, task: m.TaskRef | None) -> str:
    """Wait for a task; its error."""
    while task is not None:
        status = await driver.task_status(m.TaskStatusRequest(task=task))
        if status.done or status.error:
            return status.error
        await asyncio.sleep(0.1)
    return ""


async def exists(driver: FakeDriver, id: str) -> bool:
    """Return what Describe says."""
    return (await driver.describe(m.DescribeRequest(id=id))).exists


async def error(call: Any) -> ProviderError:
    """The error of a call that must fail."""
    try:
        found = await call
    except ProviderError as problem:
        return problem
    except PaddockError as problem:
        raise AssertionError(f"{problem!r} is no ProviderError") from problem
    raise AssertionError(f"it succeeded: {found}")


async def kind(call: Any) -> ErrorKind:
    """The kind of the error of a call that must fail."""
    return (await error(call)).kind
