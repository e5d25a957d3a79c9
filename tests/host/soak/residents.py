"""Guests that live as long as the soak: each keeps a ledger on its disk, and may neither restart nor lose a line."""

import asyncio
from dataclasses import dataclass, field

import pytest

from paddock.base.errors import PaddockError
from tests.host.runs.conftest import PROMPT, VMS, Data, Host, Talk, machine
from tests.kit.servers.websockets import Rejected

NAMES = ("resident-0", "resident-1")
DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
BOOT_SECONDS = 240.0
PAUSE_SECONDS = 10.0
# What a console says with when its server goes: the socket's end, a refusal, or nothing for too long.
_CUT = (OSError, EOFError, AssertionError, PaddockError, Rejected, pytest.fail.Exception)


@dataclass
class Resident:
    """One guest, and what it acknowledged."""

    name: str
    host: Host
    # the boot it is in, and the QEMU that it runs in
    boot: str = ""
    pids: list[int] = field(default_factory=list)
    # the lines that the guest said are on its disk
    written: int = 0
    cut: int = 0

    async def prepare(self, talk: Talk, url: str) -> None:
        """Make it, and wait until its shell answers."""
        await talk.make(DISKS, _disk(self.name, url))
        domain = {"memory": {"guest": "192Mi"}}
        volumes = [{"name": "root", "dataVolume": {"name": self.name}}]
        await talk.make(VMS, machine(self.name, volumes=volumes, domain=domain, terminationGracePeriodSeconds=30))
        found = await talk.running(self.name, BOOT_SECONDS)
        self.pids = self.host.qemus()[found["metadata"]["uid"]]
        async with talk.console(self.name) as console:
            await console.write(b"\r")
            await console.until(PROMPT, BOOT_SECONDS)
            self.boot = await console.shell("cat /proc/sys/kernel/random/boot_id", BOOT_SECONDS)

    async def run(self) -> None:
        """Write line after line until cancelled, over all the ends of Paddock."""
        while True:
            kills = self.host.kills
            try:
                await self._write()
            except _CUT:
                # A console that breaks while Paddock lives is a defect.
                if kills == self.host.kills and self.host.is_up:
                    raise
                self.cut += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _write(self) -> None:
        line = self.written + 1
        async with self.host.client() as client, Talk(self.host, client).console(self.name) as console:
            await console.write(b"\r")
            await console.until(PROMPT, BOOT_SECONDS)
            said = await console.shell(f"echo line-{line} >> /data/ledger && sync && tail -n 1 /data/ledger", BOOT_SECONDS)
            assert f"line-{line}\n" in said, said
        self.written = line

    async def check(self, talk: Talk) -> None:
        """At the end: the same boot in the same QEMU, and every line is on the disk."""
        found = await talk.running(self.name)
        assert self.host.qemus()[found["metadata"]["uid"]] == self.pids
        async with talk.console(self.name) as console:
            await console.write(b"\r")
            await console.until(PROMPT, BOOT_SECONDS)
            assert await console.shell("cat /proc/sys/kernel/random/boot_id", BOOT_SECONDS) == self.boot
            said = (await console.shell("cat /data/ledger", BOOT_SECONDS)).split()
        assert {f"line-{number}" for number in range(1, self.written + 1)} <= set(said)
        assert self.written


def _disk(name: str, url: str) -> Data:
    storage = {"resources": {"requests": {"storage": "256Mi"}}}
    spec = {"source": {"http": {"url": url}}, "storage": storage}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name}, "spec": spec}
