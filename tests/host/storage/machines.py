"""Machines of a whole server, with the guest of 512 bytes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import orjson

from paddock.app.options.settings import MachineSettings as Settings
from paddock.app.server.enginehost import HostedEngine
from paddock.engine.engine import Engine
from paddock.engine.machine.machine import QemuMachine
from paddock.kubernetes.client.errors import NotFound
from tests.host.storage.conftest import CORE, Data, Site, site

VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"


class Machines:
    """The machines of a server that is up."""

    def __init__(self, here: Site, engine: Engine) -> None:
        self.here = here
        self.engine = engine

    async def send(self, method: str, path: str, document: Data | None = None) -> Data:
        """A request."""
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return dict(orjson.loads(await self.here.client.request(method, path, body=orjson.dumps(document or {}), media=media)))

    async def make(self, name: str, volumes: list[Data], strategy: str = "Always") -> None:
        """A machine with a disk for each volume. What stands beside a volume under `disk` goes into its disk."""
        disks = [{"disk": {"bus": "virtio"}, **volume.pop("disk", {}), "name": volume["name"]} for volume in volumes]
        devices = {"disks": disks, "autoattachPodInterface": False, "autoattachMemBalloon": False}
        domain = {"cpu": {"model": "qemu64"}, "memory": {"guest": "32Mi"}, "devices": devices}
        template = {"spec": {"domain": domain, "volumes": volumes, "terminationGracePeriodSeconds": 0}}
        spec = {"runStrategy": strategy, "template": template}
        await self.send("POST", VMS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec})

    async def set_strategy(self, name: str, strategy: str) -> None:
        """Start or stop a machine for good."""
        await self.send("PATCH", f"{VMS}/{name}", {"spec": {"runStrategy": strategy}})

    async def instance(self, name: str) -> Data:
        """A run; empty when there is none."""
        try:
            return await self.here.get(f"{VMIS}/{name}")
        except NotFound:
            return {}

    async def status(self, name: str) -> Data:
        """The status of a run."""
        return dict((await self.instance(name)).get("status") or {})

    async def running(self, name: str, seconds: float = 30) -> QemuMachine:
        """The engine's machine, when its guest runs."""
        await self._until(name, "runs", lambda status: status.get("phase") == "Running", seconds)
        machine = self.engine.machines.get((await self.instance(name))["metadata"]["uid"])
        assert machine is not None
        await self.here.until("the guest runs", lambda: _holds(b"R" in machine.directory.serial_tail(100)), 30)
        return machine

    async def stopped(self, name: str) -> None:
        """Stop a machine; its run is gone afterwards."""
        await self.set_strategy(name, "Halted")
        await self.here.until("it is gone", lambda: self._gone(name), 30)

    async def again(self, name: str) -> QemuMachine:
        """Stop it and start it."""
        await self.stopped(name)
        await self.set_strategy(name, "Always")
        return await self.running(name)

    async def held(self, name: str, reason: str, seconds: float = 30) -> str:
        """Return the message of a machine that cannot go on for a reason."""

        def holds(status: Data) -> bool:
            return _synchronized(status).get("reason") == reason

        return str(_synchronized(await self._until(name, reason, holds, seconds)).get("message", ""))

    async def word(self, name: str) -> str:
        """The state of a machine in one word."""
        return str((await self.here.get(f"{VMS}/{name}"))["status"]["printableStatus"])

    async def until_told(self, name: str, part: str) -> None:
        """Wait until an event about a machine says something."""

        async def told() -> bool:
            events = (await self.here.get(f"{CORE}/events"))["items"]
            return any(each["involvedObject"]["name"] == name and part in each["message"] for each in events)

        await self.here.until(f"{name}: {part}", told, 30)

    async def disk(self, name: str, volume: str) -> Data:
        """Return the status of a volume."""
        return next(each for each in (await self.status(name)).get("volumeStatus") or () if each["name"] == volume)

    async def until_size(self, name: str, volume: str, size: int) -> None:
        """Wait until the guest sees a size."""

        async def seen() -> bool:
            return (await self.disk(name, volume)).get("size") == size

        await self.here.until(f"{volume} has {size} bytes", seen, 30)

    async def resize(self, claim: str, size: str) -> None:
        """Ask for a larger claim."""
        await self.send("PATCH", f"{CORE}/persistentvolumeclaims/{claim}", {"spec": {"resources": {"requests": {"storage": size}}}})

    async def until_capacity(self, claim: str, size: str) -> None:
        """Wait until a claim has what it asked for."""

        async def has() -> bool:
            return bool((await self.here.get(f"{CORE}/persistentvolumeclaims/{claim}"))["status"]["capacity"]["storage"] == size)

        await self.here.until(f"{claim} has {size}", has, 30)

    async def mark(self, machine: QemuMachine) -> None:
        """Have the guest write, and wait until it has."""
        console = machine.console()
        before = await console.read()
        await console.write(b"w")
        async with asyncio.timeout(20):
            while (said := await console.read()) == before or b"w" not in said:
                assert said
        console.close()

    async def _until(self, name: str, what: str, holds: Callable[[Data], bool], seconds: float) -> Data:
        status: Data = {}

        async def look() -> bool:
            status.clear()
            status.update(await self.status(name))
            return holds(status)

        try:
            await self.here.until(what, look, seconds)
        except AssertionError:
            raise AssertionError(f"{name}: not {what}: {status} {await self.here.get(f'{VMS}/{name}')}") from None
        return status

    async def _gone(self, name: str) -> bool:
        return await self.instance(name) == {}


async def _holds(value: bool) -> bool:
    return value


def _synchronized(status: Data) -> Data:
    return next((each for each in status.get("conditions") or () if each["type"] == "Synchronized"), {})


def claim(name: str) -> Data:
    """The source of a volume."""
    return {"persistentVolumeClaim": {"claimName": name}}


@asynccontextmanager
async def machines(root: Path, **settings: Any) -> AsyncIterator[Machines]:
    """A server with machines; all of them are ended with it."""
    async with site(root, Settings(image_hosts=("127.0.0.1",), network="user", **settings)) as here:
        supervisor = here.running.machines
        assert supervisor is not None and await supervisor.settled() is None
        engine = cast(HostedEngine, supervisor.work)._control.engine
        try:
            yield Machines(here, engine)
        finally:
            for machine in (await here.get(VMS))["items"]:
                await here.client.request("DELETE", f"{VMS}/{machine['metadata']['name']}")
            await here.until("they are ended", lambda: _holds(not any(each.observed.live for each in engine.machines)), 30)
