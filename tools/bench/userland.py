"""From the manifest to a guest that can be used: the tiny guest through the API, and the same QEMU started by a script, in turns.

Both have a new layer over the same image, and both end when the guest's agent answers. Ours is counted from the request that makes the
VirtualMachine until a watcher sees `AgentConnected`.
"""

import asyncio
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from paddock.base.images.build import places, tiny
from paddock.fleet.diagnosis.scene import holds
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import EVERYTHING, WatchOptions
from tools.bench.byhand import Started
from tools.bench.hosting import INSTANCES, VMIS, VMS, Host, machine
from tools.bench.imports import server
from tools.bench.offline import Figure

_VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
_SECONDS = 300
ROUNDS = 7
# until what is written after a guest answers has been written
_CALM_SECONDS = 1.0


def booting(name: str, url: str) -> dict[str, Any]:
    """The tiny guest on a disk of its own."""
    made = machine(name)
    spec = made["spec"]["template"]["spec"]
    del spec["startStrategy"]
    spec["domain"]["memory"]["guest"] = "128Mi"
    spec["domain"]["devices"]["disks"] = [{"name": "root", "disk": {"bus": "virtio"}}]
    spec["volumes"] = [{"name": "root", "dataVolume": {"name": name}}]
    storage = {"resources": {"requests": {"storage": "1Gi"}}}
    made["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": name}, "spec": {"source": {"http": {"url": url}}, "storage": storage}}]
    return made


async def _answers(client: Client, name: str) -> None:
    """Returns when a watcher hears that the agent is connected."""
    async for event in client.watch(INSTANCES, EVERYTHING, WatchOptions(initial=True, seconds=_SECONDS)):
        if event.type == "BOOKMARK" or event.object["metadata"]["name"] != name:
            continue
        if holds(event.object, "AgentConnected"):
            return


async def gone(client: Client, path: str) -> None:
    """Return when an object is gone."""
    while True:
        try:
            await client.request("GET", path)
        except NotFound:
            return
        await asyncio.sleep(0.1)


def _qemu_img(*words: str | Path) -> bytes:
    return subprocess.run(["qemu-img", *words], check=True, capture_output=True).stdout


class Twin:
    """The QEMU of a machine, to be started once more by hand."""

    def __init__(self, pid: int, name: str) -> None:
        directory = Path(f"/proc/{pid}/cwd").readlink()
        # As deep as its own: the command line says where disks are from there.
        self._folder = directory.parents[1] / "twins" / name
        self._folder.mkdir(parents=True)
        self._argv = [self._own(word, directory) for word in Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]]

    def _own(self, word: str, directory: Path) -> str:
        """A word of the command line, with a new layer in the place of the machine's."""
        if not word.startswith("{") or "file" not in (disk := json.loads(word)):
            return word
        kept, layer = directory / disk["file"]["filename"], self._folder / "disk.qcow2"
        size = json.loads(_qemu_img("info", "-U", "--output=json", kept))["virtual-size"]
        below = (directory / disk["backing"]["file"]["filename"]).resolve()
        _qemu_img("create", "-q", "-f", "qcow2", "-F", disk["backing"]["driver"], "-b", below, layer, str(size))
        disk["file"]["filename"] = layer.name
        return json.dumps(disk)

    def answer(self) -> float:
        """Seconds until the agent answers."""
        began = time.monotonic()
        twin = Started(self._argv, self._folder)
        try:
            twin.go_on()
            twin.answer()
            return time.monotonic() - began
        finally:
            twin.end()


async def _round(client: Client, host: Host, url: str, name: str) -> tuple[float, float]:
    """Ours, then theirs, each alone."""
    telling = asyncio.create_task(_answers(client, name))
    await asyncio.sleep(_CALM_SECONDS)
    began = time.monotonic()
    await client.request("POST", VMS, body=json.dumps(booting(name, url)).encode())
    await asyncio.wait_for(telling, _SECONDS)
    ours = time.monotonic() - began
    uid = json.loads(await client.request("GET", f"{VMIS}/{name}"))["metadata"]["uid"]
    process = json.loads((host.root / "engine" / "machines" / uid / "process.json").read_bytes())
    twin = Twin(process["pid"], name)
    await client.request("DELETE", f"{VMS}/{name}")
    await gone(client, f"{VMIS}/{name}")
    await gone(client, f"{_VOLUMES}/{name}")
    await asyncio.sleep(_CALM_SECONDS)
    return ours, await asyncio.to_thread(twin.answer)


async def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """One figure; the first round brings the image and is not counted."""
    image = tiny.build(places.cache())
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=folder))
    host = Host(root, "--image-from=127.0.0.1")
    host.start()
    try:
        with server(image.disk.parent) as address:
            async with host.client() as client:
                url = f"{address}/{image.disk.name}"
                found = [await _round(client, host, url, f"tiny-{number}") for number in range((3 if quick else ROUNDS) + 1)][1:]
    finally:
        host.end()
        shutil.rmtree(root, ignore_errors=True)
    ours, theirs = (statistics.median(each) for each in zip(*found, strict=True))
    return [Figure("from the request until the agent is connected", ours, peer=theirs)]
