"""The health of Providers and what they report (docs/spec/virtrigaud.md 1.5 and 2.4)."""

import asyncio
from typing import Any

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import RpcFault
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, machine, provider, rigaud


async def of_provider(life: Rigaud, name: str = "lab") -> dict[str, Any]:
    return await life.status(name, "Provider")


async def said(life: Rigaud, type: str, name: str = "lab") -> tuple[str, str]:
    return await life.said(type, name, "Provider")


@timeless
async def test_a_healthy_provider_reports() -> None:
    async with rigaud() as life:
        await asyncio.sleep(2)
        status = await of_provider(life)
        assert status["healthy"] is True and status["runtime"]["phase"] == "Running" and status["connectedVMs"] == 0
        assert status["reportedCapabilities"]["supportsImageImport"] is True
        assert status["reportedCapabilities"]["supportedDiskTypes"]
        assert await said(life, "ProviderRuntimeReady") == ("True", "DeploymentReady")
        assert await said(life, "ProviderAvailable") == ("True", "RemoteAvailable")
        assert await said(life, "CapabilitiesReported") == ("True", "CapabilitiesFetched")


@pytest.mark.spec("virtrigaud", 67)
@timeless
async def test_health_has_thresholds() -> None:
    async with rigaud(world=False) as life:
        check = {"interval": "20s", "failureThreshold": 3, "successThreshold": 2}
        await life.make(provider(healthCheck=check))
        await asyncio.sleep(2)
        assert "healthy" not in await of_provider(life)
        assert (await said(life, "ProviderAvailable"))[0] == "Unknown"
        await asyncio.sleep(20)
        assert (await of_provider(life))["healthy"] is True
        checked = (await of_provider(life))["lastHealthCheck"]
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await asyncio.sleep(45)
        status = await of_provider(life)
        assert status["healthy"] is True and status["lastHealthCheck"] > checked
        await asyncio.sleep(20)
        assert (await of_provider(life))["healthy"] is False
        found = await life.condition("ProviderAvailable", "lab", "Provider")
        assert (found["status"], found["reason"]) == ("False", "RemoteUnavailable") and "connection refused" in found["message"]
        life.driver.down = None
        await asyncio.sleep(22)
        assert (await of_provider(life))["healthy"] is False
        await asyncio.sleep(20)
        assert (await of_provider(life))["healthy"] is True
        assert {"Unhealthy", "Healthy"} <= set(await life.events("lab"))


@timeless
async def test_a_check_that_hangs_ends_at_its_timeout() -> None:
    async with rigaud(world=False) as life:

        async def hangs(rpc: str, request: Any) -> None:
            if rpc == "Validate":
                await asyncio.Event().wait()

        life.driver.script = hangs
        await life.make(provider(healthCheck={"timeout": "5s", "failureThreshold": 1}))
        await asyncio.sleep(7)
        assert "did not answer in 5 s" in (await life.condition("ProviderAvailable", "lab", "Provider"))["message"]


@pytest.mark.spec("virtrigaud", 72)
@pytest.mark.parametrize("type", ["qemu", "firecracker"])
@timeless
async def test_a_type_without_a_driver_is_said(type: str) -> None:
    async with rigaud() as life:
        await life.make(provider("bare", type, endpoint="https://lab"), machine(providerRef={"name": "bare"}))
        await asyncio.sleep(200)
        found = await life.condition("ProviderRuntimeReady", "bare", "Provider")
        assert (found["status"], found["reason"]) == ("False", "DriverMissing")
        assert f"no driver for Providers of type {type}" in found["message"]
        status = await of_provider(life, "bare")
        assert status["healthy"] is False and status["runtime"]["phase"] == "Failed"
        assert await life.condition("TLSConfigured", "bare", "Provider") == {}
        assert "no driver" in (await life.condition())["message"] and await life.said() == ("False", "ProviderError")
        writes = life.wire.writes
        await asyncio.sleep(1000)
        # Only the other Provider's checks are written.
        assert life.wire.writes - writes <= 35


@timeless
async def test_a_machine_without_a_driver_can_be_deleted() -> None:
    async with rigaud() as life:
        await life.make(provider("bare", "firecracker", endpoint="https://lab"), machine(providerRef={"name": "bare"}))
        await asyncio.sleep(20)
        await life.delete()
        await life.gone(seconds=3)


@timeless
async def test_a_provider_that_is_not_checked_is_not_called_healthy() -> None:
    async with rigaud(world=False) as life:
        await life.make(provider(healthCheck={"enabled": False}))
        await asyncio.sleep(100)
        assert "healthy" not in await of_provider(life) and life.driver.count("Validate") == 0
        found = await life.condition("ProviderAvailable", "lab", "Provider")
        assert (found["status"], "is not checked" in found["message"]) == ("Unknown", True)
        assert (await of_provider(life))["reportedCapabilities"]["supportsSnapshots"] is True


@timeless
async def test_capabilities_that_cannot_be_had_are_unknown() -> None:
    fault = RpcFault(rpc="GetCapabilities", kind=ErrorKind.NOT_SUPPORTED, count=0, message="not implemented")
    async with rigaud(faults=(fault,)) as life:
        await asyncio.sleep(2)
        found = await life.condition("CapabilitiesReported", "lab", "Provider")
        assert (found["status"], found["reason"]) == ("False", "CapabilitiesUnavailable") and "not implemented" in found["message"]
        await life.make(machine())
        await life.ready()
        await life.merge("small", {"spec": {"performanceProfile": {"cpuHotAddEnabled": True}, "cpu": 4}}, "VMClass")
        await asyncio.sleep(30)
        assert await life.said() == ("True", "RestartRequired")


@timeless
async def test_a_provider_goes_when_its_machines_are_gone() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        await life.delete("lab", "Provider")
        await asyncio.sleep(60)
        assert (await said(life, "Deleting")) == ("True", "DeleteBlocked")
        await life.delete()
        await life.gone()
        await asyncio.sleep(3)
        assert await life.get("lab", "Provider") == {}


@timeless
async def test_a_provider_is_checked_once_per_interval_however_many_machines_it_has() -> None:
    async with rigaud() as life:
        await life.make(*(machine(f"vm-{number}") for number in range(20)))
        for number in range(20):
            await life.ready(f"vm-{number}")
        await asyncio.sleep(300)
        life.driver.calls.clear()
        await asyncio.sleep(600)
        assert 19 <= life.driver.count("Validate") <= 21
        assert 20 * 4 <= life.driver.count("Describe") <= 20 * 6
        assert life.driver.names() == []
