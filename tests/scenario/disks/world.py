"""A pool and its machines, whose controllers can be interrupted anywhere: at any request, in any order of the news, by a sudden end."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.transport import Transport
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.pool import controller as pools
from paddock.kubevirt.controllers.virtualmachine import controller as virtualmachines
from paddock.server.housekeeping.background import BackgroundControllers
from paddock.server.store.contract import CommittedWrite
from tests import virtualtime
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.interruption import Interruption
from tests.scenario.fronts.player import INSTANCES, Surroundings
from tests.scenario.fronts.storm import Storm
from tests.unit.kubevirt.controllers import lifeharness

POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
DATA_VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
UNCONFIRMED = "paddock.dev/unconfirmed-owner"
MARK = "paddock.dev/state-preservation"
_LABELS = {"app": "web"}
# The longest pause of a controller after failures, and some.
SETTLED_SECONDS = 700.0


class World:
    """A server in memory with its garbage collector, the controllers of pools and machines, and players for the rest."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self.api = Harness()
        self._chance = chance
        # DataVolumes that were deleted: names by UID
        self.deleted: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "World":
        await self.api.__aenter__()
        self.wire = self._connected()
        self.storm: Storm | None = None if self._chance is None else Storm(self.wire, self._chance)
        self._house = BackgroundControllers(self.api.parts, "authority")
        self._house.collector.start()
        self._house.claims.start()
        self.api.store.follow(self._note)
        self._surroundings = Surroundings(self._client(self._connected()))
        client = self._client(self._connected())
        self._player = lifeharness.Player(client, virtualtime.Clock())
        machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
        program = ControllerManager(client, component="player", instance="player", machinery=machinery)
        program.add(Controller("player", program.informers.of(INSTANCES), self._player.reconcile, machinery=machinery))
        self._playing = asyncio.create_task(program.run())
        await self._surroundings.start()
        self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()
        await self._surroundings.stop()
        self._playing.cancel()
        await asyncio.gather(self._playing, return_exceptions=True)
        await self._house.stop()
        await self.api.__aexit__(*_)

    def _connected(self) -> Interruption:
        return Interruption.of(self.api)

    @staticmethod
    def _client(carried: Transport) -> Client:
        return Client(carried)

    def _note(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.deleted and change.key.collection.startswith("datavolumes"):
                self.deleted[orjson.loads(change.value)["metadata"]["uid"]] = change.key.name

    # --- the controllers --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the controllers."""
        machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
        program = ControllerManager(self._client(self.storm or self.wire), component="controllers", instance="one", machinery=machinery)
        virtualmachines.wire(program)
        pools.wire(program)
        if self.storm is not None:
            for controller in program.controllers:
                self.storm.deafen(controller)
        self._task = asyncio.create_task(program.run())

    async def end(self) -> None:
        """End them, wherever they are."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def again(self) -> None:
        """End them and start them anew; whatever was to interrupt them is over."""
        await self.end()
        self.wire.ends_at = self.wire.at = -1
        self.begin()

    # --- users ------------------------------------------------------------------------------------------------------------

    async def make(self, replicas: int, strategy: str = "Halted", **scale_in: Any) -> None:
        """Make the pool, each of whose machines has a disk."""
        reply = await self.api.post(POOLS, pool(replicas, strategy, scale_in or {"proactive": {"statePreservation": "Offline"}}))
        assert reply.status == 201, reply.data

    async def scale(self, replicas: int) -> None:
        """Ask for another number of machines."""
        assert (await self.api.merge(f"{POOLS}/web", {"spec": {"replicas": replicas}})).status == 200

    async def delete(self, path: str, propagation: str = "Background") -> None:
        """Delete an object, if it is there."""
        reply = await self.api.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation})
        assert reply.status in (200, 202, 404), reply.data

    async def all(self, path: str) -> dict[str, Data]:
        """The metadata of all objects of a kind, by name."""
        return {each["metadata"]["name"]: each["metadata"] for each in (await self.api.get(path)).data["items"]}

    async def uids(self) -> dict[str, str]:
        """The UIDs of the disks, by name."""
        return {name: meta["uid"] for name, meta in (await self.all(DATA_VOLUMES)).items()}

    async def check_settled(self, replicas: int) -> None:
        """Fail unless each machine owns its disk for good, and nobody the others."""
        machines, disks = await self.all(MACHINES), await self.all(DATA_VOLUMES)
        assert len(machines) == replicas, sorted(machines)
        assert not [name for name, meta in machines.items() if MARK in (meta.get("annotations") or {})]
        for name, meta in disks.items():
            machine = machines.get(name.replace("disk-", "web-"))
            wanted = [machine["uid"]] if machine is not None else []
            assert [each["uid"] for each in meta.get("ownerReferences") or ()] == wanted, name
            assert UNCONFIRMED not in (meta.get("labels") or {}), name


def pool(replicas: int, strategy: str, scale_in: Data) -> Data:
    """A pool whose machines have one disk each."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, "volumes": [{"name": "root", "dataVolume": {"name": "disk"}}]}
    machine = {
        "runStrategy": strategy,
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": claim}}],
        "template": {"metadata": {"labels": _LABELS}, "spec": spec},
    }
    template = {"metadata": {"labels": _LABELS}, "spec": machine}
    return {
        "apiVersion": "pool.kubevirt.io/v1beta1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _LABELS},
            "virtualMachineTemplate": template,
            "scaleInStrategy": scale_in,
        },
    }


def play(script: Callable[[World], Awaitable[Any]], chance: random.Random | None = None) -> Any:
    """Run a script in virtual time; what it returns."""
    found: list[Any] = []

    async def inside() -> None:
        async with World(chance) as world:
            found.append(await script(world))

    virtualtime.run(inside())
    return found[0]
