"""Drivers on the simulator: real processes, real sockets, and a network of names."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock_drivers.firecracker import apifacts
from paddock_drivers.firecracker.driver import FirecrackerDriver
from paddock_drivers.firecracker.host import HypervisorFacts
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.kit import refusals
from paddock_drivers.kit.staging import StagingSettings
from tests.unit.drivers.firecracker import simulator

GIB = 1 << 30
IMAGE = payloads.ImagePayload(template_name="conformance")


class NamedNetwork:
    """A host with one bridge, and taps that are names."""

    def __init__(self) -> None:
        self.taps: dict[str, tuple[str, int]] = {}
        self.neighbours: dict[str, str] = {}

    def check(self, bridge: str) -> None:
        if bridge != "br0":
            raise refusals.conflict(f"there is no bridge {bridge} on this host")

    def ensure(self, tap: str, bridge: str, user: int) -> None:
        self.check(bridge)
        self.taps[tap] = (bridge, user)

    def remove(self, tap: str) -> None:
        self.taps.pop(tap, None)

    def addresses(self) -> Mapping[str, str]:
        return self.neighbours


class Lab:
    """A directory with an image and a kernel, and drivers for it, one at a time."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.directory = place / "data"
        self.faults = place / "faults"
        self.program = place / "firecracker"
        self.network = NamedNetwork()
        self.kvm = ""
        words = f'exec {sys.executable} -I -S {simulator.__file__} {apifacts.__file__} {self.faults} "$@"'
        self.program.write_text(f"#!/bin/sh\n{words}\n")
        self.program.chmod(0o755)
        (self.directory / "images/conformance").mkdir(parents=True)
        (self.directory / "kernels").mkdir()
        (self.directory / "kernels/vmlinux").write_bytes(b"\x7fELF kernel")
        with open(self.directory / "images/conformance/disk.raw", "wb") as disk:
            disk.write(b"boot" * 1024)
            disk.truncate(64 << 20)
        (place / "staging").mkdir()

    def settings(self, **changes: Any) -> FirecrackerSettings:
        plain = FirecrackerSettings(
            directory=self.directory,
            program=str(self.program),
            kernel=str(self.directory / "kernels/vmlinux"),
            staging=StagingSettings(claims=self.place / "staging"),
            sources=("127.0.0.1",),
        )
        return msgspec.structs.replace(plain, **changes)

    def make(self, **changes: Any) -> FirecrackerDriver:
        """A driver that is not open yet."""

        async def kvm() -> str:
            return self.kvm

        settings = self.settings(**changes)
        return FirecrackerDriver(settings, HypervisorFacts(settings.program, kvm), self.network, SystemClock())

    @contextlib.asynccontextmanager
    async def driver(self, **changes: Any) -> AsyncIterator[FirecrackerDriver]:
        driver = self.make(**changes)
        await driver.open()
        try:
            yield driver
        finally:
            await driver.close()

    def fault(self, **effects: str) -> None:
        """Make calls fail: `PUT_actions="die"`."""
        named = {name.replace("_", " /", 1).replace("__", "/"): effect for name, effect in effects.items()}
        self.faults.write_text(json.dumps(named))

    def folder(self, name: str) -> Path:
        return self.directory / "machines" / name

    def calls(self, name: str) -> list[str]:
        """The calls that the VMM of a machine has got."""
        return (self.folder(name) / "root/calls").read_text().splitlines()

    def pids(self) -> dict[str, int]:
        """The VMMs that live, by machine, whatever the driver knows of them."""
        found = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if simulator.__file__.encode() in words and str(self.faults).encode() in words and b"--api-sock" in words:
                    found[Path(os.readlink(entry / "cwd")).parent.name] = int(entry.name)
        return found

    def close(self) -> None:
        for pid in self.pids().values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A place for machines; their VMMs end with the test."""
    made = Lab(tmp_path)
    yield made
    made.close()


Play = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def play() -> Play:
    """Run a coroutine to its end."""

    def run(script: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await script

        asyncio.run(bounded())

    return run


def request(name: str = "web", *, cpu: int = 1, memory: int = 256, **changes: Any) -> m.CreateRequest:
    """A create with an owner of its own."""
    extra = changes.pop("extra", None)
    hardware = payloads.ClassPayload(cpu=cpu, memory_mib=memory, extra_config=extra)
    plain = m.CreateRequest(
        name=name,
        class_json=payloads.encode(hardware),
        image_json=payloads.encode(IMAGE),
        networks_json="null",
        disks_json="null",
        owner=m.ObjectIdentity(uid=f"uid-{name}", namespace="lab", name=name),
    )
    return msgspec.structs.replace(plain, **changes)


def disks(**sizes: int) -> str:
    """`disks_json` with disks of so many GiB."""
    return payloads.encode_list(tuple(payloads.DiskPayload(name=name, size_gib=size) for name, size in sizes.items()))


def beginning(disk: Path, size: int = 4) -> bytes:
    """Return the first bytes of a disk, which may have gigabytes."""
    with disk.open("rb") as file:
        return file.read(size)


async def done(driver: FirecrackerDriver, task: m.TaskRef | None, seconds: float = 20.0) -> str:
    """Wait for a task and return its error."""
    ends = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends:
        status = await driver.task_status(m.TaskStatusRequest(task=task))
        if status.done or status.error:
            return status.error
        await asyncio.sleep(0.02)
    raise AssertionError("the task does not end")


async def state(driver: FirecrackerDriver, id: str) -> str:
    """The power state of a machine."""
    return (await driver.describe(m.DescribeRequest(id=id))).power_state


async def power(driver: FirecrackerDriver, id: str, op: m.PowerOp, seconds: int = 0) -> None:
    """Change power and wait for its end."""
    response = await driver.power(m.PowerRequest(id=id, op=op, graceful_timeout_seconds=seconds))
    assert await done(driver, response.task) == ""
