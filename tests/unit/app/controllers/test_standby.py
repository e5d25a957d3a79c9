"""The report of a host that cannot run machines appears, and goes when the host can."""

import asyncio
from pathlib import Path

import pytest

from paddock.app.controllers.standby import OutageReporter
from paddock.server.housekeeping.node import NodeProblem
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import Data, FakeHost, machine


@pytest.mark.spec("kubevirt", 112)
@run_by(virtualtime.run)
async def test_every_machine_says_why_until_the_host_can_run_it(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        await host.make(machine("before"))
        ran = await host.running("before")
        await host.end()
        standby = OutageReporter(host.api.api, "host")
        await standby.report(NodeProblem("NetworkUnusable", "there is no network; make one"))
        await host.make(machine("web"), machine("off", "Halted"))
        await asyncio.sleep(5)
        said = {"status": "False", "reason": "HostNotReady", "message": "the host cannot run machines: there is no network; make one"}
        for name in ("before", "web"):
            assert said.items() <= _ready(await host.vmi(name)).items()
            assert said.items() <= _ready(await host.vm(name)).items()
        assert _ready(await host.vm("off"))["reason"] == "VMINotExists"
        await standby.report(NodeProblem("QemuMissing", "there is no QEMU"))
        await asyncio.sleep(10)
        assert _ready(await host.vm())["message"].endswith(": there is no QEMU")
        # Told once each, however often it is reported.
        await standby.report(NodeProblem("QemuMissing", "there is no QEMU"))
        assert await host.events("host") == ["NetworkUnusable", "QemuMissing"]
        await standby.stop()
        await host.begin()
        await host.running("web")
        for name in ("before", "web"):
            assert _ready(await host.vm(name))["status"] == "True"
        assert (await host.running("before")).id == ran.id


def _ready(found: Data) -> Data:
    return next((dict(each) for each in found["status"]["conditions"] if each["type"] == "Ready"), {})
