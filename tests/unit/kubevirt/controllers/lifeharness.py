"""A server in memory with controllers of the life cycle, in virtual time, and a player for the instances: what a host would do."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.server.housekeeping.collector import GarbageCollector
from tests import virtualtime
from tests.kit.servers.apiharness import Harness, Reply
from tests.kit.servers.interruption import Interruption

INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
VM_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
FOREGROUND = "kubevirt.io/foregroundDeleteVirtualMachine"
PHASES = ("Pending", "Scheduling", "Scheduled", "Running")
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/default"


class Player:
    """Plays the controller of instances. `until` is the phase that instances reach; `ends` what they end as when they are deleted."""

    def __init__(self, client: Client, clock: virtualtime.Clock) -> None:
        self._client = client
        self._clock = clock
        self.until: dict[str, str] = {}
        self.ends = "Succeeded"
        self.seconds = 0.0
        self.holds_deletion = False
        # when each instance was first seen, by its UID
        self.met: dict[str, float] = {}

    async def reconcile(self, key: Key) -> Outcome:
        try:
            seen = await self._client.get(INSTANCES, key)
        except NotFound:
            return DONE
        phase = seen["status"]["phase"]
        self.met.setdefault(seen["metadata"]["uid"], self._clock.seconds())
        if seen["metadata"].get("deletionTimestamp"):
            if not self.holds_deletion and FOREGROUND in seen["metadata"].get("finalizers", ()):
                await self.end(key, phase if phase in ("Succeeded", "Failed") else self.ends)
            return DONE
        target = self.until.get(key.name, self.until.get("*", "Running"))
        if phase == target or phase in ("Succeeded", "Failed"):
            return DONE
        if self.seconds:
            await asyncio.sleep(self.seconds)
        following = PHASES[PHASES.index(phase) + 1] if target in PHASES and phase != "Running" else target
        await self.say(key, following)
        return DONE

    async def say(self, key: Key, phase: str = "", **status: Any) -> Data:
        """Write a phase and whatever else an instance says of itself."""
        for _ in range(10):
            seen = await self._client.get(INSTANCES, key)
            now = ages.timestamp(self._clock.seconds())
            told = dict(status)
            if phase:
                before = seen["status"].get("phaseTransitionTimestamps", [])
                told["phase"] = phase
                told["phaseTransitionTimestamps"] = [*before, {"phase": phase, "phaseTransitionTimestamp": now}]
                told["conditions"] = [*status.get("conditions", ()), ready(phase == "Running", now)]
            patch = {"metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]}, "status": told}
            try:
                return await self._client.patch(INSTANCES, key, merge_patch(patch))
            except Conflict:
                await asyncio.sleep(0.01)
        raise AssertionError("the instance does not come to rest")

    async def end(self, key: Key, phase: str) -> None:
        """The guest is down: say so, and let the instance go."""
        seen = await self._client.get(INSTANCES, key)
        if seen["status"]["phase"] != phase:
            seen = await self.say(key, phase)
        gone = [FOREGROUND] if seen["metadata"].get("ownerReferences") else [FOREGROUND, VM_FINALIZER]
        rest = [each for each in seen["metadata"]["finalizers"] if each not in gone]
        metadata = {"finalizers": rest or None, "resourceVersion": seen["metadata"]["resourceVersion"]}
        # After a conflict the queue brings us here again.
        await self._client.patch(INSTANCES, key, merge_patch({"metadata": metadata}))


def ready(is_ready: bool, now: str) -> Data:
    reason = {} if is_ready else {"reason": "GuestNotRunning", "message": "Guest VM is not reported as running"}
    return {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": now, **reason}


class Life:
    """The world of one test."""

    def __init__(self, api: Harness, client: Client) -> None:
        self.api = api
        self.client = client
        self.clock = virtualtime.Clock()
        self.machinery = Machinery(clock=self.clock, chance=random.Random(1))
        self.program = ControllerManager(client, component="virtualmachine-controller", instance="test", machinery=self.machinery)
        self.player = Player(client, self.clock)
        self.played = Controller("player", self.program.informers.of(INSTANCES), self.player.reconcile, machinery=self.machinery)
        self.program.add(self.played)

    # --- what a user does -------------------------------------------------------------------------------------------------

    async def make(self, body: Data, plural: str = "virtualmachines", base: str = KUBEVIRT) -> Data:
        made = await self.api.post(f"{base}/{plural}", body)
        assert made.status == 201, made.data
        return dict(made.data)

    async def get(self, name: str = "web", plural: str = "virtualmachines", base: str = KUBEVIRT) -> Data | None:
        found = await self.api.current(f"{base}/{plural}/{name}")
        return None if found.status == 404 else dict(found.data)

    async def vm(self, name: str = "web") -> Data:
        found = await self.get(name)
        assert found is not None
        return found

    async def vmi(self, name: str = "web") -> Data | None:
        return await self.get(name, "virtualmachineinstances")

    async def merge(self, body: Data, name: str = "web", plural: str = "virtualmachines", base: str = KUBEVIRT) -> Reply:
        said = await self.api.merge(f"{base}/{plural}/{name}", body)
        assert said.status == 200, said.data
        return said

    async def delete(self, name: str = "web", plural: str = "virtualmachines", body: Data | None = None, base: str = KUBEVIRT) -> None:
        said = await self.api.delete(f"{base}/{plural}/{name}", body)
        assert said.status in (200, 202), said.data

    async def events(self, name: str = "web") -> list[tuple[str, str, str]]:
        await self.rest()
        found = (await self.api.get("/api/v1/namespaces/default/events")).data["items"]
        return [(each["type"], each["reason"], each["message"]) for each in found if each["involvedObject"]["name"] == name]

    async def word(self, name: str = "web") -> str:
        return str(((await self.vm(name)).get("status") or {}).get("printableStatus", ""))

    # --- waiting ----------------------------------------------------------------------------------------------------------

    async def rest(self, seconds: float = 3.0) -> None:
        """Let everything settle; time passes."""
        await asyncio.sleep(seconds)

    async def until(self, holds: Callable[[], Any], seconds: float = 600.0) -> None:
        """Wait until a coroutine function says something true."""
        async with asyncio.timeout(seconds):
            while not await holds():
                await asyncio.sleep(0.2)

    async def shows(self, word: str, name: str = "web", seconds: float = 600.0) -> Data:
        """Wait for a status in one word."""

        async def holds() -> bool:
            return await self.word(name) == word

        try:
            await self.until(holds, seconds)
        except TimeoutError:
            raise AssertionError(f"{await self.word(name)} instead of {word}: {await self.vm(name)}") from None
        return await self.vm(name)


@asynccontextmanager
async def living(*wires: Callable[[ControllerManager], Any], collects: bool = False, writing: float = 0.0) -> AsyncIterator[Life]:
    """A world with these controllers, and with the garbage collector where that is asked for; their writes take time."""
    async with Harness() as api:
        wire_of_all = Interruption.of(api)
        wire_of_all.writing = writing
        client = Client(wire_of_all)
        life = Life(api, client)
        collector = GarbageCollector(api.parts)
        if collects:
            collector.start()
        for wire in wires:
            wire(life.program)
        running = asyncio.create_task(life.program.run())
        try:
            yield life
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            if collects:
                await collector.chores.stop()
