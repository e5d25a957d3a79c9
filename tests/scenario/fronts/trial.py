"""One dialect's controllers in a storm: whatever is lost, late or restarted, the end is the one that good weather brings.

A trial plays some moves of a user against a server in memory: something is set up, then changed, then mended, since what a machine is
that nobody can make now depends on what came before. `calm` waits between them for everything to settle; `stormy` does not wait,
breaks requests, answers and watches, lets controllers miss what they are told, and restarts them, all by its seed. Then the weather
turns good, everything settles, and both servers have to hold the same.
"""

import asyncio
import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec
import orjson

from paddock.app.localtransport import door
from paddock.base import together
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.server.builtin.trust import CONTROLLER, CONTROLLER_GROUPS
from paddock.server.housekeeping.background import BackgroundControllers
from paddock.server.security.flow.control import Flow, FlowControl
from tests import virtualtime
from tests.kit.servers.apiharness import Harness
from tests.scenario.fronts.player import Player
from tests.scenario.fronts.storm import Storm

# In good weather it settles quickly.
_CALM_SECONDS = 20.0
# How long something may take to go while it storms: every attempt may fail, and the pauses between them grow.
_GOING_SECONDS = 7000
# How often a program looks at everything.
SWEEP_SECONDS = 200.0
_PAUSES = (0.0, 0.0, 0.05, 1.0, 30.0)
_RUNNING = "/apis/kubevirt.io/v1/virtualmachineinstances"
_VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/datavolumes"
_KINDS = (
    "/apis/kubevirt.io/v1/virtualmachines",
    _RUNNING,
    _VOLUMES,
    "/api/v1/persistentvolumeclaims",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
)
_FLEETING = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_TIMES = ("lastTransitionTime", "lastHeartbeatTime", "lastProbeTime", "lastUpdated", "resourceVersion", "observedGeneration")
_GENERATED_MAC = re.compile(r"02:12(:[0-9a-f]{2}){4}")


class Outside(Protocol):
    """Something outside the cluster that a dialect's controllers work on, and that outlives them."""

    def wire(self, program: ControllerManager) -> Any:
        """Add the dialect's controllers to a program."""

    def happen(self, event: str) -> None:
        """Change something behind the controllers' backs."""

    def clear_up(self) -> None:
        """From now on, everything works as it should."""

    def close(self) -> None:
        """Remove what the trial has left."""

    async def objects(self, server: Harness) -> Mapping[str, Any]:
        """Return what is there; raise `AssertionError` for what must never be."""


class Move(msgspec.Struct, frozen=True):
    """One thing that a user does: a method, a place and a document. What is answered does not matter.

    The method OUTSIDE lets something happen outside the cluster; the place names it.
    """

    method: str
    path: str
    body: str = ""
    # in the cluster, not in the front
    below: bool = False


class Dialect(msgspec.Struct, frozen=True):
    """The parts of a dialect that a trial needs."""

    # the program of the front, and that of the cluster: the same one, unless they are `apart`
    wire: Callable[[ControllerManager, ControllerManager, Any], Any]
    # what is there at the beginning
    setting: tuple[Move, ...]
    # what users may do
    moves: tuple[Move, ...]
    # what brings back whatever is missing or wrong after some moves
    mending: tuple[Move, ...]
    # the front kinds, beside those that every dialect makes
    kinds: tuple[str, ...]
    # what users write is in a server of its own
    apart: bool = False
    # what the controllers work on outside the cluster; without chance, everything works there
    outside: Callable[[random.Random | None], Outside] | None = None
    # moves in good weather, after which nothing may stay as the storm has left it
    epilogue: tuple[Move, ...] = ()
    # what of an object must not depend on the weather
    lasting: Callable[[Data], Any] = lambda found: found
    # how long everything takes at most to settle: the longest pause after failures, and a sweep
    settled_seconds: float = 700.0


def put(path: str, document: Data) -> Move:
    """Make an object."""
    return Move("POST", path, orjson.dumps(document).decode())


def merge(path: str, patch: Data) -> Move:
    """Change an object."""
    return Move("MERGE", path, orjson.dumps(patch).decode())


def remove(path: str) -> Move:
    """Delete an object."""
    return Move("DELETE", path)


class _TimelessTurns(FlowControl):
    """The turns of requests that take no time, as everything here: how long they took this computer does not decide who is next."""

    def __init__(self, server: Harness) -> None:
        super().__init__(server.store, now=lambda: asyncio.get_running_loop().time())

    def leave(self, flow: Flow, seconds: float = 0.0) -> None:
        """Give the seat back, whatever `seconds` says."""
        super().leave(flow)


class _World:
    """A server, KubeVirt's player and the controllers of one dialect."""

    def __init__(self, dialect: Dialect, chance: random.Random | None) -> None:
        self.api = Harness()
        self.back = Harness() if dialect.apart else self.api
        self._servers = tuple({id(each): each for each in (self.api, self.back)}.values())
        self._dialect = dialect
        self._chance = chance
        self._storms: list[Storm] = []
        self._task: asyncio.Task[None] | None = None
        self._outside = dialect.outside(chance) if dialect.outside is not None else None

    async def __aenter__(self) -> "_World":
        self._houses = []
        for server in self._servers:
            await server.__aenter__()
            server.api.flows = _TimelessTurns(server)
            house = BackgroundControllers(server.parts, "authority")
            house.collector.start()
            house.claims.start()
            self._houses.append(house)
        # Nobody else may say how a running machine is.
        self._player = Player(Client(LocalTransport(door(self.back.api, CONTROLLER, CONTROLLER_GROUPS)), chance=random.Random(1)))
        await self._player.start()
        await self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()
        await self._player.stop()
        if self._outside is not None:
            self._outside.close()
        for house in self._houses:
            await house.stop()
        for server in self._servers:
            await server.__aexit__(*_)

    async def begin(self) -> None:
        """Start the controllers."""
        storms = [self._carried(server) for server in self._servers]
        programs = [
            ControllerManager(
                Client(each, chance=random.Random(1)),
                component="fronts",
                instance="trial",
                machinery=Machinery(clock=virtualtime.Clock(), chance=random.Random(1)),
            )
            for each in storms
        ]
        self._dialect.wire(programs[0], programs[-1], self._outside)
        for program in programs:
            for controller in program.controllers:
                if self._storms:
                    self._storms[-1].deafen(controller)
        self._task = asyncio.create_task(together.run((each.run() for each in programs), until=asyncio.FIRST_COMPLETED))

    def _carried(self, server: Harness) -> Any:
        inside = LocalTransport(door(server.api, "controller", ("system:masters",)))
        if self._chance is None:
            return inside
        self._storms.append(Storm(inside, self._chance))
        return self._storms[-1]

    async def end(self) -> None:
        """Stop them, wherever they are."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def clear_up(self) -> None:
        """Good weather from now on."""
        for storm in self._storms:
            storm.blows = False
        if self._outside is not None:
            self._outside.clear_up()

    async def play(self, move: Move) -> None:
        """Do the user's move."""
        body: Data = orjson.loads(move.body or "{}")
        server = self.back if move.below else self.api
        match move.method:
            case "POST":
                await _put(server, move.path, body)
            case "MERGE":
                await server.merge(move.path, body)
            case "OUTSIDE" if self._outside is not None:
                self._outside.happen(move.path)
            case _:
                await server.delete(move.path)

    async def end_story(self) -> None:
        """Play the epilogue."""
        for move in self._dialect.epilogue:
            await self.play(move)
            await asyncio.sleep(_CALM_SECONDS)

    async def settled(self) -> Mapping[str, Any]:
        """Everything there is, when nothing moves any more."""
        await asyncio.sleep(self._dialect.settled_seconds)
        revisions = [server.store.revision for server in self._servers]
        await asyncio.sleep(SWEEP_SECONDS)
        assert [server.store.revision for server in self._servers] == revisions, "it never comes to rest"
        found = {}
        for number, server in enumerate(self._servers):
            found.update({f"{number} {where}": each for where, each in (await self._objects(server)).items()})
        if self._outside is not None:
            found.update(await self._outside.objects(self.api))
        return found

    async def _objects(self, server: Harness) -> Mapping[str, Any]:
        found = {}
        for path in (*_KINDS, *self._dialect.kinds):
            for each in (await server.get(path)).data["items"]:
                spoken = each
                if path == _RUNNING:
                    # A machine runs as it was when it began, which depends on when that was.
                    spoken = {"phase": each["status"]["phase"]}
                elif path == _VOLUMES:
                    # How large a disk was when it was made cannot be changed; how large it is stands in its claim.
                    each["spec"].get("storage", {}).pop("resources", None)
                found[f"{path} {each['metadata']['namespace']}/{each['metadata']['name']}"] = _lasting(self._dialect.lasting(spoken))
        return found


async def _put(server: Harness, path: str, body: Data) -> None:
    """Make an object; one that is going is waited for, as everybody does."""
    for _ in range(_GOING_SECONDS):
        there = await server.get(f"{path}/{body['metadata']['name']}")
        if there.status == 404 or "deletionTimestamp" not in there.data["metadata"]:
            break
        await asyncio.sleep(1)
    else:
        raise AssertionError(f"it does not go: {there.data}")
    reply = await server.post(path, body)
    assert reply.status in (201, 409), reply.data


def outside(event: str) -> Move:
    """Let something happen outside the cluster."""
    return Move("OUTSIDE", event)


def below(move: Move) -> Move:
    """The same in the cluster behind the front."""
    return msgspec.structs.replace(move, below=True)


def calm(dialect: Dialect, moves: Sequence[Move]) -> Mapping[str, Any]:
    """Return the result of good weather."""
    return _calm(dialect, tuple(moves))


# Storms over the same moves follow each other.
@lru_cache(maxsize=4)
def _calm(dialect: Dialect, moves: tuple[Move, ...]) -> Mapping[str, Any]:
    async def script() -> Mapping[str, Any]:
        async with _World(dialect, None) as world:
            for move in (*dialect.setting, *moves, *dialect.mending):
                await world.play(move)
                await asyncio.sleep(_CALM_SECONDS)
            await world.end_story()
            return await world.settled()

    return _run(script)


class WitnessedChance(random.Random):
    """The chance of a storm, with a digest of every decision and its time: storms of one seed have one digest."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.digest = hashlib.sha256()

    def getrandbits(self, count: int, /) -> int:
        found = super().getrandbits(count)
        self._note(found)
        return found

    def random(self) -> float:
        found = super().random()
        self._note(found)
        return found

    def _note(self, found: float) -> None:
        self.digest.update(f"{asyncio.get_running_loop().time()} {found}\n".encode())


def stormy(dialect: Dialect, moves: Sequence[Move], seed: int, chance: random.Random | None = None) -> Mapping[str, Any]:
    """Return the result of a storm."""
    chance = chance or random.Random(seed)

    async def script() -> Mapping[str, Any]:
        async with _World(dialect, chance) as world:
            for move in dialect.setting:
                await world.play(move)
            await asyncio.sleep(dialect.settled_seconds)
            for move in (*moves, *dialect.mending):
                await world.play(move)
                await asyncio.sleep(chance.choice(_PAUSES))
                if chance.randrange(3) == 0:
                    await world.end()
                    await world.begin()
            world.clear_up()
            await world.end_story()
            return await world.settled()

    return _run(script)


def _run(script: Callable[[], Any]) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = []

    async def inside() -> None:
        found.append(await script())

    virtualtime.run(inside())
    return found[0]


def _lasting(value: Any, *, meta: bool = False) -> Any:
    """An object without what is another in every run: identities, revisions, times."""
    if isinstance(value, dict):
        left_out = _FLEETING if meta else _TIMES
        found = {key: _lasting(each, meta=key in ("metadata", "ownerReferences")) for key, each in value.items() if key not in left_out}
        # It follows from the UID.
        found.pop("firmware", None)
        return found
    if isinstance(value, list):
        return [_lasting(each, meta=meta) for each in value]
    return _GENERATED_MAC.sub("02:12:generated", value) if isinstance(value, str) else value


def moves_of(dialect: Dialect, seed: int) -> tuple[Move, ...]:
    """Some moves, by a seed."""
    chance = random.Random(seed)
    return tuple(chance.choice(dialect.moves) for _ in range(chance.randint(1, 4)))
