"""A provider that wants to harm: whatever it answers, objects stay small and true, other machines are left alone, and nothing breaks."""

import asyncio
import json
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.plan import answers
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import GROUP, WORLD, Rigaud, machine, rigaud

HUGE = 1 << 20


@pytest.mark.spec("virtrigaud", 102)
@timeless
async def test_a_description_without_measure() -> None:
    """Texts and lists without end, addresses that are none, and links into the reader's own files."""
    raw = json.dumps({**{f"key-{number}": "x" * (HUGE // 16) for number in range(100)}, "paddock.io/disks": '{"data": 1}', "y" * HUGE: "z"})
    ips = ("10.0.0.9", "metadata.google.internal", "$(reboot)", *("10.1.0.1" for _ in range(10000)))

    async def describes(name: str, request: Any) -> m.WireMessage | None:
        if name != "Describe":
            return None
        return m.DescribeResponse(exists=True, power_state="On", ips=ips, console_url="file:///etc/shadow", provider_raw_json=raw)

    async with rigaud() as life:
        life.driver.script = describes
        await life.make(machine())
        status = await life.ready()
        assert "consoleURL" not in status
        assert status["ips"][0] == "10.0.0.9"
        assert len(status["ips"]) <= 64
        assert all(each.startswith("10.") for each in status["ips"])
        assert status["provider"]["paddock.io/disks"] == "{}"
        assert len(json.dumps(status)) < 100_000


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://lab.example/console?id=1", "https://lab.example/console?id=1"),
        ("vnc://10.0.0.1:5900", "vnc://10.0.0.1:5900"),
        ("file:///etc/shadow", ""),
        ("javascript:alert(1)", ""),
        ("https://lab.example/\x1b]0;owned\x07", ""),
        ("https://lab.example/ https://other.example", ""),
        ("https://" + "a" * 3000, ""),
        ("", ""),
    ],
)
def test_links(given: str, shown: str) -> None:
    assert answers.link(given) == shown


@pytest.mark.spec("virtrigaud", 102)
@pytest.mark.parametrize("id", ["x" * HUGE, "vm\x1b[2J", "vm-1\nREADY"])
@timeless
async def test_an_id_that_is_none(id: str) -> None:
    async def creates(name: str, request: Any) -> m.WireMessage | None:
        return m.CreateResponse(id=id) if name == "Create" else None

    async with rigaud() as life:
        life.driver.script = creates
        await life.make(machine())
        await asyncio.sleep(300)
        status = await life.status()
        assert "id" not in status
        assert (await life.said()) == ("False", "ProviderError")
        assert "too long or not text" in status["message"]
        assert len(json.dumps(status)) < 10_000


@pytest.mark.spec("virtrigaud", 26, 102)
@timeless
async def test_the_id_of_another_machine() -> None:
    """Two objects with one machine would fight over it, and the deletion of one would take the other's."""
    async with rigaud() as life:
        await life.make(machine())
        first = (await life.ready())["id"]

        async def creates(name: str, request: Any) -> m.WireMessage | None:
            return m.CreateResponse(id=first) if name == "Create" else None

        life.driver.script = creates
        await life.make(machine("other"))
        await asyncio.sleep(300)
        status = await life.status("other")
        assert "id" not in status
        assert "the id of another machine, default/web" in status["message"]
        await life.delete("other")
        await life.gone("other", seconds=3000)
        assert [each.id for each in await life.machines()] == [first]
        assert (await life.said()) == ("True", "ReconcileSuccess")


@pytest.mark.spec("virtrigaud", 102)
@pytest.mark.parametrize("rpc", ["Create", "TaskStatus", "Describe", "Power", "Validate", "GetCapabilities"])
@timeless
async def test_errors_without_measure(rpc: str) -> None:
    """An error of a megabyte with control characters is a line of a kilobyte."""

    async def fails(name: str, request: Any) -> m.WireMessage | None:
        if name == rpc == "TaskStatus":
            return m.TaskStatusResponse(done=True, error="\x1b[31m\n" * (HUGE // 6))
        if name == rpc:
            raise ProviderError(ErrorKind.INTERNAL, f"{name} failed", why="\x1b[31m boom\n" * (HUGE // 11))
        return None

    async with rigaud() as life:
        life.driver.script = fails
        await life.make(machine())
        await asyncio.sleep(200)
        for kind in ("virtualmachines", "providers"):
            await _is_small(life, f"{GROUP}/{kind}")
        await _is_small(life, "/api/v1/namespaces/default/events")


async def _is_small(life: Rigaud, path: str) -> None:
    for each in (await life.api.get(path)).data["items"]:
        text = json.dumps(each)
        assert len(text) < 30_000, path
        assert "\\u001b" not in text


@pytest.mark.spec("virtrigaud", 102)
@timeless
async def test_capabilities_without_measure() -> None:
    async def reports(name: str, request: Any) -> m.WireMessage | None:
        if name != "GetCapabilities":
            return None
        return m.GetCapabilitiesResponse(supports_snapshots=True, supported_disk_types=tuple("x" * 1000 for _ in range(1000)))

    async with rigaud(world=False) as life:
        life.driver.script = reports
        await life.make(*WORLD)
        await asyncio.sleep(120)
        status = await life.status("lab", "Provider")
        assert status["reportedCapabilities"]["supportsSnapshots"] is True
        assert len(json.dumps(status)) < 20_000
