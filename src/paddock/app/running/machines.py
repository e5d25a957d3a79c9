"""The objects of new machines on a server: made, watched until the guests are usable, and deleted."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

import msgspec

from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError, Terminal
from paddock.base.jsondata import Data
from paddock.cli import explanations
from paddock.fleet.creation import readiness
from paddock.fleet.creation.newmachine import is_shared
from paddock.fleet.creation.readiness import GuestView, RunStage, Timings
from paddock.fleet.diagnosis.explain import explain
from paddock.fleet.diagnosis.scene import ObjectPlace, at, entries, texts
from paddock.fleet.machines import shares
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.http.websocket import connected
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.client.target import Key, Target, plain
from paddock.kubernetes.targets import kind_target

MACHINES = kind_target("kubevirt.io", "VirtualMachine")
INSTANCES = kind_target("kubevirt.io", "VirtualMachineInstance")
VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")
SERVICES = kind_target("", "Service")
_MANAGER = WriteOptions(manager="paddock-run")
_TAKING = WriteOptions(manager="paddock-run", force=True)
_SSH = "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}/portforward/22/tcp"
_LOOK_SECONDS = 0.05
_BALANCER_LOOKS = 40
# A guest without an agent is asked on its SSH port, which costs a connection each time.
_AGENT_SECONDS, _SSH_SECONDS, _SSH_PAUSE = 4.0, 2.0, 1.0
# A trouble that passes within this time is none.
_TROUBLE_SECONDS = 5.0
_DELETE_SECONDS = 120.0


class NotUsable(Terminal):
    """A machine that did not become usable. `place` is the object to explain."""

    def __init__(self, what: str, object_place: ObjectPlace) -> None:
        super().__init__(what)
        self.place = object_place


class CreatedObject(msgspec.Struct, frozen=True):
    """An object that was made, and its target."""

    target: Target[Data]
    data: Data

    @property
    def key(self) -> Key:
        metadata = self.data["metadata"]
        return Key(str(metadata.get("namespace") or ""), str(metadata["name"]))


def target_of(data: Data) -> Target[Data]:
    """Return the kind of an object as the API serves it."""
    group, version = admission.split_api_version(data["apiVersion"])
    if data["kind"] == shares.VOLUMES.kind:
        return shares.VOLUMES
    kind = catalog.get(group, data["kind"])
    return plain(group, version, kind.plural, kind.kind, namespaced=kind.namespaced)


async def create(client: Client, documents: Sequence[Data], made: list[CreatedObject]) -> None:
    """Make the objects and note each in `made`. What is shared may be there already; a machine must be new."""
    for data in documents:
        one = CreatedObject(target_of(data), data)
        if data["kind"] == "DataSource":
            # Of an image with the same name but another address.
            await client.apply(one.target, data, _TAKING)
            continue
        if is_shared(data):
            with contextlib.suppress(AlreadyExists):
                await client.create(one.target, data, one.key.namespace, _MANAGER)
            continue
        creating = asyncio.ensure_future(client.create(one.target, data, one.key.namespace, _MANAGER))
        try:
            await asyncio.shield(creating)
        except asyncio.CancelledError:
            # The request is on its way already: what it makes has to be known, so that it can be deleted.
            with contextlib.suppress(PaddockError):
                await creating
                made.append(one)
            raise
        except AlreadyExists as error:
            fix = f"choose another name with -n, or delete it: paddock rm {one.key.name}"
            raise Terminal(f"there is a {data['kind']} {one.key.name} already", fix=fix) from error
        made.append(one)


class Watch:
    """The wait for one machine."""

    def __init__(self, client: Client, access: Access, key: Key, timings: Timings) -> None:
        self._client = client
        self._access = access
        self.key = key
        self._answers = False
        self._asking: asyncio.Task[None] | None = None
        self._booting = 0.0
        self.timings = timings
        self.seen = GuestView()
        self.standing = RunStage("accepting", "sent to the server")

    async def until_usable(self, seconds: float, show: Callable[[RunStage], None]) -> None:
        """Wait. Raises `NotUsable` when it takes too long or cannot come to pass."""
        end, troubled = time.monotonic() + seconds, 0.0
        try:
            while True:
                await self.observe()
                now = time.monotonic()
                self.timings.enter(self.standing.phase, now)
                show(self.standing)
                if self.standing.phase == "usable":
                    return
                troubled = (troubled or now) if self.standing.phase == "trouble" else 0.0
                if self.standing.phase == "ended" or (troubled and now - troubled > _TROUBLE_SECONDS):
                    raise self._failure(f"{self.key.name} cannot run: {self.standing.text}")
                if now > end:
                    raise self._failure(f"{self.key.name} is not usable after {seconds:.0f} s: {self.standing.text}")
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            if self._asking is not None:
                self._asking.cancel()
                await asyncio.gather(self._asking, return_exceptions=True)

    async def until_over(self) -> None:
        """Wait until the guest ends."""
        uid = texts(self.seen.vmi, "metadata", "uid")
        while True:
            await self.observe()
            vmi = self.seen.vmi
            if vmi is None or texts(vmi, "metadata", "uid") != uid or texts(vmi, "status", "phase") in ("Succeeded", "Failed"):
                return
            await asyncio.sleep(_LOOK_SECONDS * 4)

    async def observe(self) -> None:
        """Read the machine's objects once."""
        vm, vmi = await asyncio.gather(self._client.find(MACHINES, self.key), self._client.find(INSTANCES, self.key))
        volumes: tuple[Data, ...] = ()
        # A running guest has its disks.
        if texts(vmi, "status", "phase") != "Running":
            wanted = [Key(self.key.namespace, name) for name in _volume_names(vm)]
            volumes = tuple(each for each in await asyncio.gather(*(self._client.find(VOLUMES, key) for key in wanted)) if each)
        self.seen = GuestView(vm=vm, vmi=vmi, volumes=volumes, answers=self._answers)
        self.standing = readiness.standing(self.seen)
        if self.standing.phase == "booting":
            self._booting = self._booting or time.monotonic()
            if time.monotonic() - self._booting > _AGENT_SECONDS and (self._asking is None or self._asking.done()):
                self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        """Ask the SSH server of the guest."""
        with contextlib.suppress(PaddockError, OSError, TimeoutError):
            async with asyncio.timeout(_SSH_SECONDS), connected(self._access, _SSH.format(*self.key)) as socket:
                self._answers = (await socket.receive()).startswith(b"SSH-")
        if not self._answers:
            await asyncio.sleep(_SSH_PAUSE)

    def _failure(self, text: str) -> NotUsable:
        return NotUsable(text, ObjectPlace("kubevirt.io", "VirtualMachine", self.key.namespace, self.key.name))


async def balancer(client: Client, key: Key) -> str:
    """Return the address of a machine's load balancer; empty while it has none. It follows the machine within a moment."""
    for _ in range(_BALANCER_LOOKS):
        service = await client.find(SERVICES, key)
        for each in entries(service, "status", "loadBalancer", "ingress"):
            if found := texts(each, "ip"):
                return found
        await asyncio.sleep(_LOOK_SECONDS)
    return ""


def _volume_names(vm: Data | None) -> list[str]:
    templates = entries(vm, "spec", "dataVolumeTemplates")
    volumes = entries(vm, "spec", "template", "spec", "volumes")
    named = [texts(each, "metadata", "name") for each in templates] + [str(at(each, "dataVolume", "name") or "") for each in volumes]
    return [each for each in dict.fromkeys(named) if each]


async def why(client: Client, object_place: ObjectPlace) -> list[str]:
    """Return what `paddock why` says of an object; nothing when the server does not have it."""
    reading = ServerReader(client, SystemClock())
    found = await reading.find([object_place])
    if not found:
        return []
    scene = await reading.gather(found[0])
    return list(explanations.lines(explain(scene, found[0]), scene.now))


async def delete(client: Client, made: Sequence[CreatedObject]) -> None:
    """Delete what was made, and wait until the machines and their disks are gone."""
    for one in reversed(made):
        with contextlib.suppress(NotFound):
            await client.delete(one.target, one.key)
    keys = [one.key for one in made]
    end = time.monotonic() + _DELETE_SECONDS
    while await _left(client, made, keys):
        if time.monotonic() > end:
            raise Terminal("the machine is not gone yet", fix=f"`paddock why {keys[-1].name}` says what holds it")
        await asyncio.sleep(_LOOK_SECONDS)


async def _left(client: Client, made: Sequence[CreatedObject], keys: Sequence[Key]) -> bool:
    disks = [Key(key.namespace, f"{key.name}-root") for key in keys]
    asked = [(one.target, one.key) for one in made]
    asked += [(target, key) for key in keys for target in (MACHINES, INSTANCES)] + [(VOLUMES, key) for key in disks]
    return any(await asyncio.gather(*(client.find(target, key) for target, key in asked)))
