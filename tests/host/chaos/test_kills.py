"""Paddock is killed at random moments while machines are made, started, stopped, cloned, snapshotted and deleted: no guest dies of it, none
runs twice, none is forgotten, no disk is damaged, and the state converges. `CHAOS=200` kills more often than the sample of every run."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.base.clock import SystemClock
from paddock.base.errors import PaddockError
from paddock.engine.networks import responderprocess
from paddock.engine.storage.paths import RECORD
from paddock.engine.storage.pools import MARKER
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, Invalid, NotFound
from paddock.kubernetes.client.http.https import Https
from tests.host import guests
from tests.host.machines import bootsector

KILLS = int(os.environ.get("CHAOS", "6"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
NAMES = [f"m{number}" for number in range(4)]
VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
SNAPSHOTS = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots"
CLONES = "/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones"
_OF_DISKS = (
    "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinerestores",
    "/api/v1/persistentvolumes",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes",
    "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots",
)
VERBS = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines"
Data = dict[str, Any]


class Host:
    """A Paddock in a process of its own, and the QEMUs below its directory."""

    network = "user"
    # whether a start waits until machines are looked after
    waits = True
    # further ones of `paddock up`
    options: tuple[str, ...] = ()
    # variables of its environment beside ours
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, root: Path, registry: str) -> None:
        self.root = root
        self._registry = registry
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0

    @property
    def is_up(self) -> bool:
        """Return True while the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, and wait until it looks after machines; with `waits` off, until it answers."""
        command = [sys.executable, "-m", "paddock.app", "up", f"--dir={self.root}", "--listen=127.0.0.1:0", f"--network={self.network}"]
        command += ["--image-from=127.0.0.0/8", f"--insecure-registry={self._registry}", *self.options]
        (self.root / "server.json").unlink(missing_ok=True)
        with (self.root / "said").open("ab") as said:
            environment = {**os.environ, **self.environment}
            self._process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, env=environment)
        deadline = time.monotonic() + 60
        while (found := process.find(DataPaths(self.root))) is None or (self.waits and not found.ready):
            assert self._process.poll() is None and time.monotonic() < deadline, (self.root / "said").read_text()[-2000:]
            time.sleep(0.02)

    def kill(self) -> None:
        """The sudden end."""
        assert self._process is not None
        self.kills += 1
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """The end of the test: Paddock, then what it left running."""
        if self.is_up:
            self.kill()
        for pids in self.qemus().values():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        responderprocess.end_all(self.root / "engine" / "networks")

    def qemus(self) -> dict[str, list[int]]:
        """The QEMUs by the machine in whose directory they run."""
        found: dict[str, list[int]] = {}
        machines = self.root / "engine" / "machines"
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                place = Path(os.readlink(entry / "cwd"))
                if place.is_relative_to(machines) and "qemu" in (entry / "comm").read_text():
                    found.setdefault(place.relative_to(machines).parts[0], []).append(int(entry.name))
        return found

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client of it."""
        access = kubeconfig.find({}, SystemClock(), explicit=self.root / "kubeconfig")
        async with Client(Https(access)) as client:
            yield client


class Players:
    """Does one thing after another to machines, as users do."""

    def __init__(self, client: Client, url: str, image: str, chance: random.Random) -> None:
        self._client = client
        self._url = url
        self._image = image
        self._chance = chance
        self.turns = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.turns += 1
            lives = (self.make, self.make, self.start, self.stop, self.restart, self.delete)
            act = self._chance.choice((*lives, self.snapshot, self.forget, self.clone, self.discard))
            with contextlib.suppress(PaddockError, OSError):
                await act(self._chance.choice(NAMES))
            await asyncio.sleep(self._chance.uniform(0, 0.4))

    async def make(self, name: str) -> None:
        await self._send("POST", VMS, machine(name, self._url, self._image))

    async def start(self, name: str) -> None:
        await self._send("PUT", f"{VERBS}/{name}/start")

    async def stop(self, name: str) -> None:
        await self._send("PUT", f"{VERBS}/{name}/stop")

    async def restart(self, name: str) -> None:
        await self._send("PUT", f"{VERBS}/{name}/restart")

    async def snapshot(self, name: str) -> None:
        body = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": f"s-{name}"}}
        await self._send("POST", SNAPSHOTS, {**body, "spec": {"source": _machine(name)}})

    async def forget(self, name: str) -> None:
        await self._send("DELETE", f"{SNAPSHOTS}/s-{name}")

    async def clone(self, name: str) -> None:
        body: Data = {"apiVersion": "clone.kubevirt.io/v1beta1", "kind": "VirtualMachineClone", "metadata": {"name": f"k-{name}"}}
        body["spec"] = {"source": _machine(name), "target": _machine(f"c-{name}")}
        await self._send("POST", CLONES, body)

    async def discard(self, name: str) -> None:
        await self._send("DELETE", f"{CLONES}/k-{name}")
        await self._send("DELETE", f"{VMS}/c-{name}")

    async def delete(self, name: str) -> None:
        await self._send("DELETE", f"{VMS}/{name}")

    async def _send(self, method: str, path: str, body: Data | None = None) -> None:
        with contextlib.suppress(NotFound, AlreadyExists, Conflict, Invalid):
            await self._client.request(method, path, body=msgspec.json.encode(body) if body is not None else b"")


def _machine(name: str) -> Data:
    """A reference to one."""
    return {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}


def machine(name: str, url: str, image: str) -> Data:
    """A machine with a disk that lasts and one that does not."""
    disks = [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "other", "disk": {"bus": "virtio"}}]
    domain = {"memory": {"guest": "32Mi"}, "devices": {"disks": disks, "autoattachGraphicsDevice": False}}
    volumes = [{"name": "root", "dataVolume": {"name": f"{name}-root"}}, {"name": "other", "containerDisk": {"image": image}}]
    storage = {"storage": {"resources": {"requests": {"storage": "8Mi"}}}, "source": {"http": {"url": url}}}
    template = {"spec": {"domain": domain, "volumes": volumes, "terminationGracePeriodSeconds": 5}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {
            "runStrategy": "Always",
            "template": template,
            "dataVolumeTemplates": [{"metadata": {"name": f"{name}-root"}, "spec": storage}],
        },
    }


async def items(client: Client, path: str) -> list[Data]:
    """The objects of a list."""
    return list(json.loads(await client.request("GET", path))["items"])


async def converged(host: Host, client: Client) -> str:
    """Return the first difference from the goal; empty when there is none."""
    machines, instances = await items(client, VMS), await items(client, VMIS)
    live = {each["metadata"]["uid"] for each in instances if each.get("status", {}).get("phase") == "Running"}
    for each in machines:
        wanted = each["spec"].get("runStrategy") == "Always"
        status = each.get("status", {}).get("printableStatus")
        if status != ("Running" if wanted else "Stopped") or each["metadata"].get("deletionTimestamp"):
            return f"{each['metadata']['name']} is {status}"
    names = {each["metadata"]["name"] for each in machines}
    for each in await items(client, SNAPSHOTS) + await items(client, CLONES):
        status = each.get("status", {})
        # One without its source waits for it.
        if each["spec"]["source"]["name"] in names and status.get("phase") not in ("Succeeded", "Failed"):
            return f"{each['kind']} {each['metadata']['name']} is {status}"
    if set(host.qemus()) != live:
        return f"QEMUs {sorted(host.qemus())}, instances {sorted(live)}"
    directories = {each.name for each in (host.root / "engine" / "machines").iterdir()}
    scratch = {each.name for each in (host.root / "engine" / "scratch").iterdir() if not each.name.startswith(".")}
    return "" if directories == live and scratch <= live else f"directories {directories}, scratch {scratch}, instances {live}"


def check_records(root: Path) -> list[str]:
    """The layers that records of volumes and snapshots name, and that are not there."""
    read = {each.parent: json.loads(each.read_bytes()) for each in (root / "engine" / "volumes").glob(f"[!.]*/{RECORD}")}
    chains = [(directory, chain) for directory, record in read.items() for chain in (record, *record.get("former", ()))]
    over = [chain["base"] for _, chain in chains if (chain["base"] or {}).get("kind") == "volume"]
    over += [json.loads(each.read_bytes()) for each in (root / "engine" / "snapshots").glob("[!.]*.json")]
    layers = [(directory, layer) for directory, chain in chains for layer in chain["layers"]]
    names = {(directory.name, layer["name"]) for directory, layer in layers}
    missing = [f"nothing is below {each}" for each in over if (each["volume"], each["layer"]) not in names]
    files = [directory / (layer["file"] or layer["name"]) for directory, layer in layers]
    return missing + [f"there is no {each}" for each in files if not each.exists()]


def check_disks(root: Path) -> list[str]:
    """Layers that records name and that are gone, and what `qemu-img check` says of those that nobody writes now."""
    # Paddock may be merging layers between two of the files that are read.
    found = check_records(root) and check_records(root)
    for layer in (root / "engine" / "volumes").glob("*/*"):
        with layer.open("rb") as file:
            head = file.read(80)
        # A QEMU that was ended leaves the mark of an image whose counts it mends when it opens the image again.
        if head[:4] != b"QFI\xfb" or int.from_bytes(head[72:80], "big") & 1:
            continue
        done = subprocess.run(["qemu-img", "check", "-U", "-f", "qcow2", str(layer)], capture_output=True, text=True, check=False)
        # 2: corrupt; 3: clusters that nobody uses, which a sudden end of QEMU leaves, and which do no harm.
        if done.returncode not in (0, 3):
            found.append(f"{layer}: {done.stdout}{done.stderr}")
    return found


@pytest.mark.needs("qemu")
def test_kills(work: Path, registry: guests.Registry, web: guests.Shelf) -> None:
    disk = bootsector.write(work / "disk.img")
    image, url = registry.push("disks/boot:1", {"disk/disk.img": disk}), web.put(disk)
    (work / "d").mkdir()
    host, chance = Host(work / "d", registry.address), random.Random(SEED)
    asyncio.run(_play(host, chance, url, image))


async def _play(host: Host, chance: random.Random, url: str, image: str) -> None:
    host.start()
    outlived = 0
    try:
        # Something to outlive the first of them.
        async with host.client() as client:
            players = Players(client, url, image, chance)
            for name in NAMES:
                await players.make(name)
            await wait(lambda: converged(host, client))
        for _ in range(KILLS):
            async with host.client() as client:
                playing = [asyncio.create_task(Players(client, url, image, chance).run()) for _ in range(3)]
                await asyncio.sleep(chance.uniform(0.1, 3.0))
                before = host.qemus()
                host.kill()
                for player in playing:
                    player.cancel()
                await asyncio.gather(*playing, return_exceptions=True)
            await asyncio.sleep(0.2)
            survivors = host.qemus()
            assert all(len(pids) == 1 for pids in survivors.values()), survivors
            outlived += len(before.keys() & survivors.keys())
            assert check_records(host.root) == []
            host.start()
            assert all(len(pids) == 1 for pids in host.qemus().values())
        async with host.client() as client:
            await wait(lambda: converged(host, client))
            assert check_disks(host.root) == []
            # Else this test shows nothing.
            assert outlived >= KILLS // 4, outlived
            for path in (CLONES, SNAPSHOTS, VMS):
                for each in await items(client, path):
                    with contextlib.suppress(NotFound):
                        await client.request("DELETE", f"{path}/{each['metadata']['name']}")
            await wait(lambda: nothing_left(host, client))
    finally:
        host.end()


async def nothing_left(host: Host, client: Client) -> str:
    """Return the first leftover when everything was deleted; empty when there is none."""
    if left := await items(client, VMS) + await items(client, VMIS):
        return f"objects {[each['metadata']['name'] for each in left]}"
    places = [each for name in ("machines", "scratch", "volumes", "snapshots") for each in (host.root / "engine" / name).iterdir()]
    places = [each for each in places if each.name != MARKER]
    if not places:
        return ""
    # Who they belonged to tells why they are still there.
    said = {each.name: record.read_text() for each in places if (record := each / RECORD).exists()}
    return f"files {places}: {said}; of {[_told(each) for path in _OF_DISKS for each in await items(client, path)]}"


def _told(found: Data) -> Data:
    """Return the metadata that decide whether an object stays."""
    told = ("name", "uid", "creationTimestamp", "deletionTimestamp", "finalizers", "labels", "ownerReferences")
    return {name: value for name, value in found["metadata"].items() if name in told}


async def wait(look: Callable[[], Any], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while said := await look():
        assert time.monotonic() < deadline, said
        await asyncio.sleep(0.25)
