"""The extension service: it is as the design note says, and a provider without it has none of its features."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import Driver, DriverExtensions, ExtensionCalls, extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import WireMessage
from paddock.contract.methods import EXTENSIONS
from tests.coroutines import run_by
from tests.kit.providers.providerdrivers import ScriptedDriver
from tests.unit.contract.test_calls import calling, failure
from tests.unit.contract.test_messages import FIELD, declared, typed

NOTE = Path(__file__).parents[3] / "docs" / "design" / "0017-provider-contract.md"
SHARED = {"TaskResponse"}


def section() -> str:
    return NOTE.read_text(encoding="utf-8").partition("### The extension service")[2].partition("\n### ")[0]


def test_the_note_has_every_call_and_every_message() -> None:
    rows = [line.strip("| ").split(" | ") for line in section().splitlines() if line.startswith("| ")]
    calls = [tuple(row[:3]) for row in rows if len(row) == 4 and row[0] != "call"]
    assert calls == [(each.name, each.request.__name__, each.response.__name__) for each in EXTENSIONS]
    told = {row[0]: {field: (int(number), typed(kind)) for field, number, kind in FIELD.findall(row[1])} for row in rows if len(row) == 2}
    kinds = [cls for cls in vars(x).values() if isinstance(cls, type) and issubclass(cls, WireMessage) and cls.__module__ == x.__name__]
    for cls in kinds:
        assert told[cls.__name__] == declared(cls), cls.__name__
    assert {each.response.__name__ for each in EXTENSIONS} - {cls.__name__ for cls in kinds} == SHARED


def test_the_note_has_every_feature() -> None:
    named = set(re.findall(r"`([a-z][A-Za-z.-]+)`", section()))
    assert {*features.CALLS, *features.MEMBERS} <= named


@run_by(asyncio.run)
async def test_every_driver_has_an_extension_service() -> None:
    class Plain:
        """A driver that knows the contract of upstream alone."""

    drivers: tuple[Any, ...] = (Plain(), ExtensionCalls())
    for driver in drivers:
        found = extensions(driver)
        assert (await found.get_features(x.GetFeaturesRequest())).features == ()
        with pytest.raises(ProviderError) as caught:
            await found.exec(x.ExecRequest(vm_id="a", command=("true",)))
        assert caught.value.kind is ErrorKind.NOT_SUPPORTED
    calls = {name for name in vars(DriverExtensions) if not name.startswith("_")}
    assert calls == {each.attribute for each in EXTENSIONS} and calls.isdisjoint(vars(Driver))


class UpstreamDriver(ScriptedDriver):
    """A driver without the extension service."""

    def __getattr__(self, name: str) -> Any:
        if name in {each.attribute for each in EXTENSIONS}:
            raise AttributeError(name)
        return super().__getattr__(name)


@pytest.mark.spec("virtrigaud", 104)
@run_by(asyncio.run)
async def test_an_upstream_provider_has_no_features() -> None:
    driver = UpstreamDriver()
    async with calling(driver) as client:
        assert (await client.get_features(x.GetFeaturesRequest())).features == ()
        found = await failure(client.exec(x.ExecRequest(vm_id="a", command=("true",))))
        assert found.kind is ErrorKind.NOT_SUPPORTED
        assert (await client.describe(m.DescribeRequest(id="a"))).exists is False
        assert client.breaker_state.value == "closed"
    assert [type(each) for each in driver.requests] == [m.DescribeRequest]


@run_by(asyncio.run)
async def test_trouble_is_not_taken_for_a_missing_service() -> None:
    async def away(_request: WireMessage) -> WireMessage:
        raise ProviderError(ErrorKind.UNAVAILABLE, "the hypervisor is away")

    async with calling(ScriptedDriver(get_features=away)) as client:
        assert (await failure(client.get_features(x.GetFeaturesRequest()))).kind is ErrorKind.UNAVAILABLE


def test_what_a_command_says_is_in_no_representation() -> None:
    answer = x.ExecResponse(exit_code=3, stdout=b"hunter2", stderr=b"hunter2")
    assert "hunter2" not in repr(answer) and "hunter2" not in repr(x.ExecRequest(command=("login", "hunter2")))
