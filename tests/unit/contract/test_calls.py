"""Calls from a client to a served driver over loopback: messages, errors, deadlines, limits, secrets."""

import asyncio
import enum
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import NoneType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from paddock.base import reasons
from paddock.contract import messages as m
from paddock.contract import methods
from paddock.contract.breaker import BreakerState
from paddock.contract.client import ProviderClient
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.methods import EXTENSIONS, METHODS
from paddock.contract.payloads import InvalidPayload
from paddock.contract.server import ProviderServerSettings
from tests.coroutines import played_by, run_by
from tests.kit.providers.providerdrivers import SETTINGS, ScriptedDriver, connected, until


def filled(kind: type[Any], bits: int = 64) -> Any:
    """A message with something in every field."""
    if get_origin(kind) is dict:
        return {"key": "väl ue"}
    if get_origin(kind) is tuple:
        return (filled(get_args(kind)[0], bits), filled(get_args(kind)[0], bits))
    if args := get_args(kind):
        return filled(next(each for each in args if each is not NoneType), bits)
    if issubclass(kind, enum.Enum):
        return list(kind)[-1]
    if issubclass(kind, m.WireMessage):
        hints = get_type_hints(kind, include_extras=True)
        values = {name: filled(get_args(hints[name])[0], field.bits) for name, field in kind.wire_fields().items()}
        if "reason" in values:
            # Any other word is none of a program of Paddock's, and left out.
            values["reason"] = reasons.PROVIDER_FULL
        return kind(**values)
    return {str: "töxt", bytes: b"\x00\xff", bool: True, int: -(1 << (bits - 1))}[kind]


def raising(error: Exception) -> Callable[[m.WireMessage], Awaitable[m.WireMessage]]:
    async def behave(_request: m.WireMessage) -> m.WireMessage:
        raise error

    return behave


def answering(response: m.WireMessage) -> Callable[[m.WireMessage], Awaitable[m.WireMessage]]:
    async def behave(_request: m.WireMessage) -> m.WireMessage:
        return response

    return behave


@asynccontextmanager
async def calling(driver: ScriptedDriver, settings: ProviderServerSettings = SETTINGS, **options: Any) -> AsyncIterator[ProviderClient]:
    """Serve a driver, and give a client of it."""
    async with asyncio.timeout(30), connected(driver, settings, **options) as client:
        yield client


def run(driver: ScriptedDriver, script: Callable[[ProviderClient], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with calling(driver, **options) as client:
            await script(client)

    asyncio.run(main())


async def failure(call: Awaitable[Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("method", [*METHODS, *EXTENSIONS], ids=[each.name for each in (*METHODS, *EXTENSIONS)])
@run_by(asyncio.run)
async def test_every_rpc_carries_every_field(method: methods.RpcMethod[Any, Any]) -> None:
    request, response = filled(method.request), filled(method.response)

    async def answer(_request: m.WireMessage) -> m.WireMessage:
        return response  # type: ignore[no-any-return]

    driver = ScriptedDriver(**{method.attribute: answer})

    async with calling(driver) as client:
        assert await getattr(client, method.attribute)(request) == response
        # Nothing is left out silently: zeros arrive as zeros.
        await getattr(client, method.attribute)(method.request())
        assert driver.requests == [request, method.request()]


@run_by(asyncio.run)
async def test_a_reason_code_travels_and_a_foreign_word_does_not() -> None:
    driver = ScriptedDriver()
    async with calling(driver) as client:
        for given, arrives in ((reasons.POOL_MISSING, reasons.POOL_MISSING), ("Evil\x07", ""), ("", "")):
            driver.behaviours["create"] = raising(ProviderError(ErrorKind.NOT_FOUND, "gone", reason=given))
            assert (await failure(client.create(m.CreateRequest()))).reason_code == arrives
            driver.behaviours["task_status"] = answering(m.TaskStatusResponse(done=True, error="x", reason=given))
            assert (await client.task_status(m.TaskStatusRequest())).reason == arrives
            driver.behaviours["validate"] = answering(m.ValidateResponse(message="x", reason=given))
            assert (await client.validate(m.ValidateRequest())).reason == arrives


@run_by(asyncio.run)
async def test_a_missing_machine_is_no_error_and_trouble_is() -> None:
    driver = ScriptedDriver()
    async with calling(driver) as client:
        assert (await client.describe(m.DescribeRequest(id="a"))).exists is False
        driver.behaviours["describe"] = raising(ProviderError(ErrorKind.UNAVAILABLE, "the hypervisor is away"))
        assert (await failure(client.describe(m.DescribeRequest(id="a")))).kind is ErrorKind.UNAVAILABLE
        assert (await client.delete(m.DeleteRequest(id="a"))).task is None


@pytest.mark.parametrize(
    "status",
    [
        m.TaskStatusResponse(error="no room\x07"),
        m.TaskStatusResponse(error="\x07"),
        m.TaskStatusResponse(done=True, error="x"),
        m.TaskStatusResponse(done=True),
    ],
)
@run_by(asyncio.run)
async def test_task_status(status: m.TaskStatusResponse) -> None:
    async def answer(_request: m.WireMessage) -> m.WireMessage:
        return status

    async with calling(ScriptedDriver(task_status=answer)) as client:
        found = await client.task_status(m.TaskStatusRequest(task=m.TaskRef(id="t")))
        assert (found.done, bool(found.error)) == (status.done, bool(status.error))
        assert found.error.isprintable()


@pytest.mark.parametrize("kind", ErrorKind)
@run_by(asyncio.run)
async def test_every_kind_of_error_travels(kind: ErrorKind) -> None:
    driver = ScriptedDriver(describe=raising(ProviderError(kind, "cannot\nsee it", why="ä", retry_after=3.5)))

    async with calling(driver) as client:
        error = await failure(client.describe(m.DescribeRequest()))
        assert (error.kind, error.retry_after) == (kind, 3.5)
        assert str(error) == "cannot call Describe of provider default/lab: cannot see it: ä"


@pytest.mark.parametrize("error", [RuntimeError("hunter2"), KeyError("hunter2"), TimeoutError("hunter2"), InvalidPayload("hunter2")])
@run_by(asyncio.run)
async def test_an_unexpected_exception_leaks_nothing(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    driver = ScriptedDriver(import_disk=raising(error))

    with caplog.at_level(logging.DEBUG):
        async with calling(driver) as client:
            found = await failure(client.import_disk(m.ImportDiskRequest(credentials={"secretAccessKey": "hunter2"})))
            assert found.kind is (ErrorKind.INVALID_SPEC if isinstance(error, InvalidPayload) else ErrorKind.INTERNAL)
            assert "hunter2" not in str(found)
            assert (await client.validate(m.ValidateRequest())).ok is False, "the server goes on"
    assert "hunter2" not in caplog.text + str([vars(record) for record in caplog.records])


@run_by(asyncio.run)
async def test_an_error_does_not_repeat_secrets_of_its_request() -> None:
    driver = ScriptedDriver(export_disk=raising(ProviderError(ErrorKind.UNAVAILABLE, "cannot sign in at https://u:pass@host with hunter2")))

    async with calling(driver) as client:
        request = m.ExportDiskRequest(credentials={"secretAccessKey": "hunter2"})
        assert str(await failure(client.export_disk(request))).endswith("cannot sign in at https://<hidden>@host with <hidden>")


@pytest.mark.parametrize("other", ["server", "client"])
@run_by(asyncio.run)
async def test_each_side_cleans_by_itself(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"paddock.contract.{other}.errortext", SimpleNamespace(cleaned=lambda text, _secrets=(): text))
    driver = ScriptedDriver(export_disk=raising(ProviderError(ErrorKind.UNAVAILABLE, "no\nsign-in with hunter2")))

    async with calling(driver) as client:
        request = m.ExportDiskRequest(credentials={"secretAccessKey": "hunter2"})
        assert (await failure(client.export_disk(request))).why == "no sign-in with <hidden>"


@run_by(asyncio.run)
async def test_a_long_error_is_cut() -> None:
    driver = ScriptedDriver(validate=raising(ProviderError(ErrorKind.UNAVAILABLE, "x" * 5000)))

    async with calling(driver) as client:
        assert len((await failure(client.validate(m.ValidateRequest()))).why) == 1024


async def forever(_request: m.WireMessage) -> m.WireMessage:
    await asyncio.Event().wait()
    raise AssertionError


@run_by(asyncio.run)
async def test_the_deadline_of_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "DESCRIBE", msgspec.structs.replace(methods.DESCRIBE, deadline=0.2))
    cancelled = []

    async def slow(request: m.WireMessage) -> m.WireMessage:
        try:
            return await forever(request)
        finally:
            cancelled.append(True)

    async with calling(ScriptedDriver(describe=slow)) as client:
        error = await failure(client.describe(m.DescribeRequest()))
        assert error.kind is ErrorKind.TIMEOUT
        await until(lambda: bool(cancelled))


@run_by(asyncio.run)
async def test_a_caller_that_gives_up_cancels_the_driver() -> None:
    events: list[str] = []

    async def slow(request: m.WireMessage) -> m.WireMessage:
        events.append("begun")
        try:
            return await forever(request)
        finally:
            events.append("cancelled")

    async with calling(ScriptedDriver(create=slow)) as client:
        call = asyncio.create_task(client.create(m.CreateRequest()))
        await until(lambda: events == ["begun"])
        call.cancel()
        await until(lambda: events == ["begun", "cancelled"])
        await client.validate(m.ValidateRequest())
        assert client.connections == 1, "the connection is used on"


@played_by(run, ScriptedDriver(create=forever), settings=msgspec.structs.replace(SETTINGS, call_seconds=0.1))
async def test_the_server_bounds_a_call_too(client: ProviderClient, /) -> None:
    assert (await failure(client.create(m.CreateRequest()))).kind is ErrorKind.TIMEOUT


@run_by(asyncio.run)
async def test_a_large_message_passes_in_both_directions() -> None:
    async def echo(request: m.WireMessage) -> m.WireMessage:
        assert isinstance(request, m.ReconfigureRequest)
        return m.TaskResponse(task=m.TaskRef(id=request.desired_json))

    async with calling(ScriptedDriver(reconfigure=echo)) as client:
        text = "x" * 3_000_000
        found = await asyncio.gather(*(client.reconfigure(m.ReconfigureRequest(desired_json=text)) for _ in range(3)))
        assert all(each.task == m.TaskRef(id=text) for each in found)


@run_by(asyncio.run)
async def test_sizes_are_bounded_by_the_server() -> None:
    async def big(_request: m.WireMessage) -> m.WireMessage:
        return m.DescribeResponse(provider_raw_json="x" * 2000)

    driver = ScriptedDriver(describe=big)

    async with calling(driver, settings=msgspec.structs.replace(SETTINGS, request=1000, response=1000)) as client:
        error = await failure(client.create(m.CreateRequest(user_data=b"x" * 1_500_000)))
        assert "1000 bytes at most" in str(error) or "1005 bytes at most" in str(error)
        assert driver.requests == []
        assert "the answer has 2003 bytes" in str(await failure(client.describe(m.DescribeRequest())))
        await client.validate(m.ValidateRequest())


@run_by(asyncio.run)
async def test_sizes_are_bounded_by_the_client() -> None:
    async def big(_request: m.WireMessage) -> m.WireMessage:
        return m.DescribeResponse(provider_raw_json="x" * 200_000)

    driver = ScriptedDriver(describe=big)

    async with calling(driver, request=1000, response=1000) as client:
        error = await failure(client.create(m.CreateRequest(user_data=b"x" * 2000)))
        assert error.kind is ErrorKind.INVALID_SPEC
        assert driver.requests == []
        error = await failure(client.describe(m.DescribeRequest()))
        assert (error.kind, "too large" in str(error)) == (ErrorKind.INTERNAL, True)
        await client.validate(m.ValidateRequest())


@run_by(asyncio.run)
async def test_calls_are_bounded() -> None:
    release = asyncio.Event()

    async def slow(_request: m.WireMessage) -> m.WireMessage:
        await release.wait()
        return m.CreateResponse()

    driver = ScriptedDriver(create=slow)

    async with calling(driver, settings=msgspec.structs.replace(SETTINGS, calls=2)) as client:
        running = [asyncio.create_task(client.create(m.CreateRequest())) for _ in range(2)]
        await until(lambda: len(driver.requests) == 2)
        error = await failure(client.validate(m.ValidateRequest()))
        assert (error.kind, error.retry_after) == (ErrorKind.RATE_LIMIT, 1.0)
        release.set()
        await asyncio.gather(*running)
        await client.validate(m.ValidateRequest())


@pytest.mark.spec("virtrigaud", 100)
@run_by(asyncio.run)
async def test_the_breaker_of_one_provider() -> None:
    sick = ScriptedDriver(describe=raising(ProviderError(ErrorKind.INTERNAL, "sick")))
    well = ScriptedDriver()
    async with connected(sick) as client, connected(well) as other:
        sick.behaviours["create"] = raising(ProviderError(ErrorKind.INVALID_SPEC, "bad request"))
        for _ in range(20):
            await failure(client.create(m.CreateRequest()))
        assert client.breaker_state == "closed", "a bad request says nothing about the provider"
        for _ in range(10):
            await failure(client.describe(m.DescribeRequest()))
        assert client.breaker_state is BreakerState.OPEN
        begun = len(sick.requests)
        error = await failure(client.validate(m.ValidateRequest()))
        assert (error.kind, "circuit breaker" in str(error)) == (ErrorKind.UNAVAILABLE, True)
        assert error.retry_after is not None and 50 < error.retry_after <= 60
        assert len(sick.requests) == begun, "no call reaches the provider"
        assert other.breaker_state is BreakerState.CLOSED
        await other.validate(m.ValidateRequest())


@played_by(run, ScriptedDriver(), qps=10.0, burst=10)
async def test_the_rate_limit_delays_calls(client: ProviderClient, /) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(client.validate(m.ValidateRequest()) for _ in range(12)))
    assert loop.time() - began >= 0.19
