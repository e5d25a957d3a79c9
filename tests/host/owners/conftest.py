"""A Paddock that is killed at seeded moments while disks change owners, and what the disks hold, by bytes.

`OWNERS_SEED=7` kills at other moments than every run.
"""

import asyncio
import itertools
import os
import random
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import qemuimg
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.errors import NotFound
from tests.host.chaos.test_kills import check_disks, check_records, nothing_left, wait
from tests.host.guests import Shelf
from tests.host.machines import bootsector
from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, host, machine, phase

__all__ = ["host"]

MB = 1 << 20
SIZE = 8 * MB
DATA_VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PERSISTENT_VOLUMES = "/api/v1/persistentvolumes"
ALL_CLAIMS = "/api/v1/persistentvolumeclaims"
GUEST = bootsector.marker().ljust(MB, b"\0")
_MARK = 64 << 10
_numbers = itertools.count(1000000)
# A step writes about as much: its objects, their statuses, and the events about them.
_MOST_WRITES = 24
# A step that writes less is killed here.
_MOST_SECONDS = 2.0
Act = Callable[[Talk], Awaitable[Any]]


class KilledPaddock:
    """A host whose Paddock is killed once in every step."""

    def __init__(self, host: Host, url: str) -> None:
        self.host = host
        # what the disks of its machines are made from
        self.url = url
        self._chance = random.Random(int(os.environ.get("OWNERS_SEED", "1")))

    @asynccontextmanager
    async def talk(self) -> AsyncIterator[Talk]:
        """One at work with the Paddock that is up now."""
        async with self.host.client() as client:
            yield Talk(self.host, client)

    async def step(self, act: Act, done: Act, stands: Callable[[], None] = lambda: None) -> None:
        """Begin something, kill Paddock at a random write, start it again, begin the same once more, and wait for its end.

        The machines that run live on, and none of them runs twice. `stands` looks at what is there while no Paddock runs.
        """
        writes = self._chance.randrange(_MOST_WRITES)
        async with self.talk() as talk:
            working = asyncio.ensure_future(act(talk))
            await _wait_for_writes(talk, writes)
            self.host.kill()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        assert check_records(self.host.root) == [], f"killed after {writes} writes"
        stands()
        self.host.start()
        async with self.talk() as talk:
            await act(talk)
            await done(talk)
            await self.check(talk)

    async def check(self, talk: Talk) -> None:
        """Fail unless each claim has one volume, each instance one QEMU, and all that is on the disk is in order."""
        await wait(lambda: _leftover(self.host, talk), 30)
        assert check_disks(self.host.root) == []

    async def check_empty(self) -> None:
        """Fail unless machines, claims and volumes are gone, and their files."""
        async with self.talk() as talk:
            await wait(lambda: nothing_left(self.host, talk.client), 60)
            await self.check(talk)
            assert (await talk.get(ALL_CLAIMS))["items"] == (await talk.get(PERSISTENT_VOLUMES))["items"] == []

    def marks(self, uid: str) -> int:
        """Return how often the guest wrote on the disk of a claim; anything else that is on it is an error."""
        volume = Volumes(self.host.root / "engine").get(uid)
        assert volume is not None, uid
        assert volume.size == SIZE
        return marks(volume.layer)

    def frozen_marks(self, uid: str) -> int:
        """Return how often the guest had written on a disk when its VolumeSnapshot was taken."""
        snapshot = Volumes(self.host.root / "engine").get_snapshot(uid)
        assert snapshot is not None, uid
        return marks(snapshot.layer)


async def _wait_for_writes(talk: Talk, count: int) -> None:
    async def revision() -> int:
        return int((await talk.get("/api/v1/namespaces"))["metadata"]["resourceVersion"])

    goal = await revision() + count
    loop = asyncio.get_running_loop()
    end = loop.time() + _MOST_SECONDS
    while await revision() < goal and loop.time() < end:
        await asyncio.sleep(0.002)


async def _leftover(host: Host, talk: Talk) -> str:
    """Return the first difference between the objects and what is on the host; empty when there is none."""
    claims = {each["metadata"]["uid"] for each in (await talk.get(ALL_CLAIMS))["items"]}
    volumes = Volumes(host.root / "engine").ids()
    persistent = {each["metadata"]["name"].removeprefix("pvc-") for each in (await talk.get(PERSISTENT_VOLUMES))["items"]}
    if not claims == volumes == persistent:
        return f"claims {sorted(claims)}, volumes {sorted(volumes)}, PersistentVolumes {sorted(persistent)}"
    running = {each["metadata"]["uid"] for each in (await talk.get(VMIS))["items"]}
    qemus = host.qemus()
    if qemus.keys() != running or any(len(pids) != 1 for pids in qemus.values()):
        return f"instances {sorted(running)}, QEMUs {qemus}"
    return ""


def marks(layer: DiskLayer) -> int:
    """Return how often the guest wrote on a disk; anything else that is on it is an error."""
    with tempfile.TemporaryDirectory(prefix="pdk-", dir="/tmp") as directory:
        flat = Path(directory) / "flat"
        subprocess.run(["qemu-img", "convert", "-U", "-O", "raw", qemuimg._json(layer), flat], check=True)
        data = flat.read_bytes()
    assert data[:512] == GUEST[:512]
    count = 0
    while data[(count + 1) * _MARK :].startswith(GUEST[:16]):
        count += 1
    rest = data[512:_MARK] + data[(count + 1) * _MARK :]
    assert rest.count(0) == len(rest), f"something else is on {layer.path}"
    return count


def installed(name: str, disk: str, url: str, strategy: str = "Always") -> Data:
    """A machine with a disk of its own, which is downloaded."""
    document = machine(name, strategy=strategy, volumes=[{"name": "root", "dataVolume": {"name": disk}}])
    spec = {"source": {"http": {"url": url}}, "pvc": claim_spec()}
    document["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": disk}, "spec": spec}]
    document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    document["spec"]["template"]["spec"]["domain"]["devices"]["autoattachPodInterface"] = False
    return document


def claim_spec() -> Data:
    """A small claim."""
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": str(SIZE)}}}


async def ensure(talk: Talk, path: str, body: Data) -> None:
    """Make an object, unless it is there."""
    if not await talk.get(f"{path}/{body['metadata']['name']}"):
        await talk.make(path, body)


async def drop(talk: Talk, path: str, propagation: str = "") -> None:
    """Delete an object, if it is there."""
    options = (("propagationPolicy", propagation),) if propagation else ()
    try:
        await talk.client.request("DELETE", path, options)
    except NotFound:
        return


async def gone(talk: Talk, path: str) -> None:
    """Wait until an object is not there any more."""
    await talk.until(path, lambda found: not found, f"{path} is gone", 30)


async def uid_of(talk: Talk, path: str) -> str:
    """The UID of an object."""
    return str((await talk.get(path))["metadata"]["uid"])


async def owners(talk: Talk, path: str) -> list[str]:
    """Return the names of an object's owners."""
    return [each["name"] for each in (await talk.get(path))["metadata"].get("ownerReferences") or ()]


async def claim_of(talk: Talk, name: str) -> str:
    """Return the name of the claim that a machine's disk is on."""
    (volume,) = (await talk.get(f"{VMS}/{name}"))["spec"]["template"]["spec"]["volumes"]
    return str(volume["persistentVolumeClaim"]["claimName"] if "persistentVolumeClaim" in volume else volume["dataVolume"]["name"])


async def power(talk: Talk, name: str, strategy: str) -> None:
    """Start a machine, or stop it."""
    await talk.change(f"{VMS}/{name}", {"spec": {"runStrategy": strategy}})


async def write(talk: Talk, name: str, times: int = 1) -> None:
    """Have the guest of a machine write so often, when it runs."""
    await talk.running(name, 30)
    async with talk.console(name) as console:
        await console.until(b"R")
        # A console begins with earlier output; only text after a number that nobody has typed yet is new.
        number = b"%d" % next(_numbers)
        await console.write(number)
        await console.until(number)
        for _ in range(times):
            await console.write(b"w")
            await console.until(b"w")


async def filled(talk: Talk, name: str) -> Data:
    """A DataVolume, when its claim holds what it should."""
    return await talk.until(f"{DATA_VOLUMES}/{name}", lambda found: phase(found) == "Succeeded", "it is filled", 30)


@pytest.fixture
def killed(host: Host, web: Shelf, work: Path) -> KilledPaddock:
    """A host that was not started yet."""
    path = work / "guest.img"
    path.write_bytes(GUEST)
    return KilledPaddock(host, web.put(path))


def play(killed: KilledPaddock, script: Callable[[], Awaitable[None]], seconds: float = 120) -> None:
    """Start the host, and run a script with it."""

    async def inside() -> None:
        async with asyncio.timeout(seconds):
            await script()

    killed.host.start()
    asyncio.run(inside())
