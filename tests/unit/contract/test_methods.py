"""The table of RPCs is the specification's, and every driver has a coroutine for each."""

import asyncio
import contextlib
import dataclasses
import inspect
import re
from collections.abc import Iterator
from unittest.mock import AsyncMock

import pytest

from paddock.contract import messages as m
from paddock.contract.client import ProviderClient
from paddock.contract.driver import Calls, ComposedDriver, Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.methods import BY_PATH, EXTENSIONS, GET_FEATURES, METHODS
from tests.unit.contract.test_messages import SPEC

UNITS = {"s": 1, "min": 60}


def rows() -> list[tuple[str, str, str, str]]:
    section = SPEC.read_text(encoding="utf-8").partition("### 3.1 ")[2].partition("### 3.2 ")[0]
    found = (line.strip("| ").split(" | ") for line in section.splitlines() if re.match(r"\| \w+( \(v0.4\))? \| \w+ \|", line))
    return [(name.removesuffix(" (v0.4)"), request, response, deadline) for name, request, response, deadline in found if name != "RPC"]


def test_table() -> None:
    assert [(each.name, each.request.__name__, each.response.__name__) for each in METHODS] == [row[:3] for row in rows()]
    for each, (_, _, _, deadline) in zip(METHODS, rows(), strict=True):
        if found := re.search(r"(\d+) (s|min)", deadline):
            assert each.deadline == int(found[1]) * UNITS[found[2]], each.name
        else:
            assert each.name == "HardwareUpgrade"


@pytest.mark.parametrize("cls", [Driver, ProviderClient])
def test_every_rpc_has_a_coroutine(cls: type) -> None:
    assert all(inspect.iscoroutinefunction(getattr(cls, each.attribute)) for each in METHODS)
    public = {name for name, value in vars(Driver).items() if inspect.iscoroutinefunction(value)}
    assert public == {each.attribute for each in METHODS}


def test_what_a_driver_may_lack_is_refused_by_name() -> None:
    calls = dataclasses.fields(Calls)
    assert {each.name for each in calls} == {each.attribute for each in (*METHODS, *EXTENSIONS)}
    required = {each.name: AsyncMock() for each in calls if each.default is dataclasses.MISSING}
    assert required.keys() > {"create", "delete", "power", "describe", "reconfigure", "task_status", "validate"}
    made = ComposedDriver(Calls(**required))
    for each in (*METHODS, *EXTENSIONS):
        if each.attribute not in required and each is not GET_FEATURES:
            with pytest.raises(ProviderError, match=f"this provider does not support {each.name}$"):
                asyncio.run(getattr(made, each.attribute)(each.request()))


def test_what_a_part_raises_becomes_an_error_of_the_provider() -> None:
    @contextlib.contextmanager
    def mapped() -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ProviderError(ErrorKind.UNAVAILABLE, str(error)) from error

    required = {
        each.name: AsyncMock(side_effect=OSError("gone")) for each in dataclasses.fields(Calls) if each.default is dataclasses.MISSING
    }
    with pytest.raises(ProviderError, match="gone"):
        asyncio.run(ComposedDriver(Calls(**required), mapped).create(m.CreateRequest()))


def test_paths() -> None:
    assert BY_PATH["/provider.v1.Provider/ListVMs"].attribute == "list_vms"
    assert BY_PATH["/provider.v1.Provider/GetDiskInfo"].attribute == "get_disk_info"
