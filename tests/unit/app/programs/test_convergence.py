"""Controllers with the programs of an embedded server: machines converge whenever a program is killed. Real time, real processes."""

import asyncio
import contextlib
import os
import random
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.base.backoff import Backoff
from paddock.base.clock import SystemClock
from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import controller
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.dialects.virtrigaud.plan import retries
from paddock.dialects.virtrigaud.plan.polls import MachinePolls
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from tests.coroutines import scripted
from tests.kit.providers.providerchildren import KEY, Programs
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.interruption import Interruption
from tests.unit.kubevirt.controllers.rigaudharness import WORLD, base, machine

SCRIPT = 'tasks = "mixed"\naddress_seconds = 0.0\n[task_seconds]\nleast = 0.0\nmost = 0.05\n'
POLLS = dict.fromkeys(MachinePolls.__struct_fields__, 0.2)


class Life:
    """A server in memory whose controllers run the programs of Providers."""

    def __init__(self, api: Harness, folder: Path) -> None:
        self.api = api
        self.programs = Programs(folder, pauses=Backoff(first=0.02, longest=0.05))
        machinery = Machinery(clock=SystemClock(), chance=random.Random(1))
        program = ControllerManager(Client(Interruption.of(api)), component="paddock", instance="test", machinery=machinery)
        settings = VirtrigaudSettings(polls=msgspec.convert(POLLS, MachinePolls))
        controller.wire(program, self.programs.connections, settings)
        self._task = asyncio.create_task(program.run())

    async def make(self, *bodies: Data) -> None:
        for body in bodies:
            made = await self.api.post(base(body["kind"]), body)
            assert made.status == 201, made.data

    async def get(self, kind: str, name: str) -> Data:
        found = await self.api.get(f"{base(kind)}/{name}")
        return dict(found.data) if found.status == 200 else {}

    async def until(self, kind: str, name: str, **status: Any) -> None:
        async with asyncio.timeout(60):
            while not (status.items() <= ((await self.get(kind, name)).get("status") or {}).items()):
                await asyncio.sleep(0.02)

    async def powers(self) -> list[str]:
        """The power of each machine at the provider; nothing while that does not answer."""
        driver = self.programs.connections.find(KEY, "libvirt").driver
        with contextlib.suppress(ProviderError):
            return [each.power_state for each in (await driver.list_vms(m.ListVMsRequest())).vms] if driver is not None else []
        return []

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.programs.connections.close()
        await self.programs.programs.close()


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between retries are a hundredth: these tests wait for real."""
    rule = retries.rule
    monkeypatch.setattr(retries, "rule", lambda kind: msgspec.structs.replace(rule(kind), first=0.05, longest=0.5))


@pytest.mark.spec("virtrigaud", 67)
@scripted
async def test_a_machine_converges_whenever_the_program_is_killed(tmp_path: Path) -> None:
    async with Harness() as api:
        life = Life(api, tmp_path)
        try:
            secret: Data = {"kind": "Secret", "metadata": {"name": "lab"}, "stringData": {"password": "p", "script.toml": SCRIPT}}
            await life.make(secret, *WORLD, machine())
            for seconds in (0.0, 0.1, 0.3):
                await life.until("Provider", "lab", healthy=True)
                await asyncio.sleep(seconds)
                pid = life.programs.programs.pids().get(Key("default", "lab"))
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
            # The fake hypervisor goes with its program, so the machine of the last one counts; and there is one.
            async with asyncio.timeout(60):
                while await life.powers() != ["On"]:
                    await asyncio.sleep(0.02)
            await life.until("VirtualMachine", "web", phase="Running", powerState="On")
            assert (await api.delete(f"{base('VirtualMachine')}/web")).status == 200
            async with asyncio.timeout(60):
                while await life.get("VirtualMachine", "web"):
                    await asyncio.sleep(0.02)
            # The Provider goes with its program.
            pid = life.programs.pid()
            assert (await api.delete(f"{base('Provider')}/lab")).status == 200
            async with asyncio.timeout(60):
                while os.path.exists(f"/proc/{pid}") or await life.get("Provider", "lab"):
                    await asyncio.sleep(0.02)
        finally:
            await life.end()


@pytest.mark.spec("virtrigaud", 68)
@scripted
async def test_a_change_of_the_secret_starts_the_program_anew(tmp_path: Path) -> None:
    async with Harness() as api:
        life = Life(api, tmp_path)
        try:
            secret: Data = {"kind": "Secret", "metadata": {"name": "lab"}, "stringData": {"password": "first"}}
            await life.make(secret, WORLD[0])
            await life.until("Provider", "lab", healthy=True)
            pid = life.programs.pid()
            reply = await api.merge(f"{base('Secret')}/lab", {"stringData": {"password": "second"}})
            assert reply.status == 200
            async with asyncio.timeout(60):
                while life.programs.programs.pids().get(KEY) in (pid, None):
                    await asyncio.sleep(0.02)
            files = sorted((tmp_path / "providers").glob("*/credentials/password"))
            assert files[-1].read_text() == "second"
            await life.until("Provider", "lab", healthy=True)
        finally:
            await life.end()
