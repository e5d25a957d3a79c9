"""A provider in bad weather, for VirtRigaud's trials: calls fail, answers get lost, tasks are forgotten, the program restarts or is away.

The machines are those of the fake driver, which outlives the controllers as a hypervisor does.
"""

import asyncio
import random
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.methods import METHODS
from paddock.dialects.virtrigaud.controllers import controller
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection, ProviderSecrets
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.program import ControllerManager
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.inventory import FakeInventory
from paddock_drivers.fake.machines import FakeMachine
from paddock_drivers.fake.settings import FakeDatastore, FakeSettings, SecondsRange
from tests import virtualtime
from tests.kit.servers.apiharness import Harness
from tests.scenario.fronts.trial import SWEEP_SECONDS

MACHINES = "/apis/infra.virtrigaud.io/v1beta1/virtualmachines"
SNAPSHOTS = "/apis/infra.virtrigaud.io/v1beta1/vmsnapshots"
_NAMES = {method.attribute: method.name for method in METHODS}
# What may happen to a call, in parts of 1000.
_AWAY, _RESTARTS, _FAILS, _UNANSWERED = 15, 45, 125, 185
_LATE = (0.0, 0.0, 0.01, 1.0, 20.0)
_AWAY_SECONDS = (5.0, 60.0)
# A provider that does not know what it has would be another one: these errors would be lies.
_LIES = {("Delete", ErrorKind.NOT_FOUND), ("SnapshotDelete", ErrorKind.NOT_FOUND)}
# The provider has certainly not begun, or nobody can tell.
_AFTERWARDS = (ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.INTERNAL)


class StormyProvider:
    """The fake driver with the weather between it and its callers. Without chance the weather is good."""

    def __init__(self, chance: random.Random | None, staging: str) -> None:
        self.blows = chance is not None
        self._chance = chance or random.Random(1)
        self._clock = virtualtime.Clock()
        settings = FakeSettings(
            tasks="mixed" if chance else "async",
            task_seconds=SecondsRange(0.05, 12.0),
            shutdown_seconds=4.0,
            address_seconds=4.0,
            datastores=(FakeDatastore(name="fast"), FakeDatastore(name="slow")),
            directory=staging,
        )
        self.driver = FakeDriver(settings, self._clock, random.Random(self._chance.randrange(1 << 32)))
        self._away_until = 0.0
        self.violations: list[str] = []

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in _NAMES:
            raise AttributeError(attribute)

        async def call(request: m.WireMessage) -> m.WireMessage:
            if not self.blows:
                return await self._carried_out(attribute, request)
            return await self._stormy(attribute, request)

        return call

    @property
    def inventory(self) -> FakeInventory:
        """What the hypervisor has."""
        return self.driver._inventory

    async def _stormy(self, attribute: str, request: m.WireMessage) -> m.WireMessage:
        name, fate = _NAMES[attribute], self._chance.randrange(1000)
        await asyncio.sleep(self._chance.choice(_LATE))
        now = self._clock.seconds()
        if fate < _AWAY:
            self._away_until = now + self._chance.uniform(*_AWAY_SECONDS)
        if now < self._away_until:
            self.driver.restart()
            raise ProviderError(ErrorKind.UNAVAILABLE, "the provider is away")
        if fate < _RESTARTS:
            self.driver.restart()
        elif fate < _FAILS:
            kind = self._chance.choice(list(ErrorKind))
            if (name, kind) not in _LIES:
                raise ProviderError(kind, f"{name} fails in the storm")
        answer = await self._carried_out(attribute, request)
        if _FAILS <= fate < _UNANSWERED:
            raise ProviderError(self._chance.choice(_AFTERWARDS), f"the answer to {name} is lost")
        return answer

    async def _carried_out(self, attribute: str, request: m.WireMessage) -> m.WireMessage:
        """A call that has arrived is carried out, whatever becomes of its caller."""
        answer: m.WireMessage = await asyncio.shield(asyncio.ensure_future(getattr(self.driver, attribute)(request)))
        self._judge(_NAMES[attribute])
        return answer

    def _judge(self, name: str) -> None:
        """No owner ever has two machines."""
        owners = [each.owner.uid for each in self.inventory.machines.values() if each.owner is not None]
        if len(owners) != len(set(owners)):
            self.violations.append(f"after {name} an owner has two machines: {owners}")


class RigaudWeather:
    """The providers of a trial, wired to VirtRigaud's controllers. They share their staging storage."""

    def __init__(self, chance: random.Random | None) -> None:
        self._staging = tempfile.TemporaryDirectory(prefix="paddock-storm-")
        self._providers = {name: StormyProvider(chance, self._staging.name) for name in ("lab", "other")}

    def find(self, key: Key, type: str) -> ProviderConnection:
        """Return the connection to a Provider."""
        return ProviderConnection(self._providers[key.name])

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> None: ...

    async def release(self, key: Key) -> None: ...

    def listen(self, handler: Callable[[Key], None]) -> None: ...

    def wire(self, program: ControllerManager) -> Any:
        """Add the controllers to a program."""
        return controller.wire(program, self, VirtrigaudSettings(resync_seconds=SWEEP_SECONDS), _greeted)

    def clear_up(self) -> None:
        """Let every call succeed."""
        for each in self._providers.values():
            each.blows = False

    def close(self) -> None:
        """Remove the staging storage."""
        self._staging.cleanup()

    def happen(self, event: str) -> None:
        """Let somebody do something to a machine at the hypervisor: `vanish NAME`, `power NAME STATE` ."""
        what, name, *rest = event.split()
        inventory = self._providers["lab"].inventory
        found = inventory.named(name)
        if found is None:
            return
        if what == "vanish":
            del inventory.machines[found.id]
        else:
            found.power = rest[0]

    async def objects(self, server: Harness) -> Mapping[str, Any]:
        """Return the machines at the hypervisor. Each belongs to one that exists, which knows its id; so does each snapshot."""
        machines = {
            (each["spec"]["providerRef"]["name"], (each.get("status") or {}).get("id")): each["metadata"]
            for each in (await server.get(MACHINES)).data["items"]
        }
        snapshots = {(each.get("status") or {}).get("snapshotID") for each in (await server.get(SNAPSHOTS)).data["items"]}
        found = {}
        there = {(name, each.id): each for name, provider in self._providers.items() for each in provider.inventory.machines.values()}
        for place, each in there.items():
            assert place in machines, f"{each.name} is left over at {place}: the machines are {machines}"
            uid = each.owner.uid if each.owner is not None else ""
            assert uid in ("", machines[place]["uid"]), f"{place} is of another owner than {machines[place]}"
            for one in each.snapshots:
                assert one.id in snapshots, f"snapshot {one.id} of {each.name} is left over: the snapshots are {snapshots}"
            found[f"hypervisor {place[0]} {each.name}"] = _shown(each)
        for provider in self._providers.values():
            assert not provider.violations, provider.violations
        gone = {place for place in machines if place[1]} - there.keys()
        assert not gone, f"{gone} do not exist"
        return found


def _shown(machine: FakeMachine) -> Data:
    hardware = machine.hardware
    return {
        "power": machine.power,
        "cpu": hardware.cpu,
        "memory": hardware.memory_mib,
        "disks": sorted((each.name, each.size) for each in machine.disks),
        "nics": [each.name for each in machine.nics],
    }


async def _greeted(host: str, port: int, request: bytes, encrypted: bool) -> bytes:
    """Answer for every guest."""
    return b"HTTP/1.1 200 OK\r\n"
