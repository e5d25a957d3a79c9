"""A whole host: what it costs from the manifest to the running machine, in one process tree, over TLS, with durable commits.

Machines are stopped at their first instruction, so that the CPU measured is that of starting them and not of their guests.
"""

import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock.base.clock import SystemClock
from paddock.engine.machine.process import holders
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import EVERYTHING, WatchOptions
from paddock.kubernetes.client.target import plain
from tools.bench.byhand import Started
from tools.bench.offline import Figure, environment
from tools.bench.programs import cpu_seconds, pss, resident

INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
_ADOPTED = "running machines adopted"
MANY, APART_SECONDS = 100, 0.1
# machines that run when Paddock is started anew
ADOPTED = 50
# machines that are deleted by one request, and what most of their guests get to shut down, which they do not
DELETED, QUICK, _GRACE_SECONDS = 150, 20, 5
# from one start to the next: what is written after a machine runs must not delay the next
_CALM_SECONDS = 0.5
# long enough for a few heartbeats of everything
_QUIET_SECONDS = 45.0


@dataclass
class Seen:
    """The times of things by name, in seconds of a steady clock, and the number of writes of each."""

    made: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def latencies(self) -> list[float]:
        """From the creation to Running, sorted."""
        return sorted(self.running[name] - self.made[name] for name in self.running)


class Host:
    """`paddock up` in a directory of its own."""

    def __init__(self, root: Path, *options: str) -> None:
        self.root = root
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Seconds until it answers."""
        began = time.monotonic()
        (self.root / "server.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "paddock.app", "up", f"--dir={self.root}", "--listen=127.0.0.1:0", "--network=user"]
        with (self.root / "said").open("ab") as said:
            self._process = subprocess.Popen(
                [*command, "--memory-overcommit=4", *self._options],
                env=environment(self.root.with_name("bytecode")),
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        while not (self.root / "server.json").exists():
            time.sleep(0.005)
        return time.monotonic() - began

    def stop(self) -> None:
        """Paddock goes, machines stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def end(self) -> None:
        """Everything goes."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pid in self.qemus():
            os.kill(pid, signal.SIGKILL)

    @property
    def pid(self) -> int:
        """The process of Paddock."""
        assert self._process is not None
        return self._process.pid

    def qemus(self) -> list[int]:
        """The processes of machines."""
        return [pid for lock in self.root.glob("engine/machines/*/lock") for pid in holders(lock)]

    def cpu(self) -> float:
        """Seconds of CPU that Paddock has used, with children that ended."""
        return cpu_seconds(self.pid, children=True)

    def memory(self) -> int:
        """Bytes that are Paddock's own."""
        return pss(self.pid)

    def resident(self) -> int:
        """Resident bytes of Paddock."""
        return resident(self.pid)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client of it."""
        access = kubeconfig.find({}, SystemClock(), explicit=self.root / "kubeconfig")
        async with Client(Https(access)) as client:
            yield client


def instance(name: str) -> dict[str, Any]:
    """A running machine that is stopped at its first instruction."""
    devices = {"autoattachGraphicsDevice": False, "interfaces": [{"name": "default", "masquerade": {}}]}
    domain = {"memory": {"guest": "64Mi"}, "devices": devices}
    spec = {"domain": domain, "networks": [{"name": "default", "pod": {}}], "startStrategy": "Paused", "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}, "spec": spec}


def machine(name: str) -> dict[str, Any]:
    """A machine around it."""
    spec = {"runStrategy": "Always", "template": {"spec": instance(name)["spec"]}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


async def watch(client: Client, seen: Seen) -> None:
    """Note when machines run, and how often anything about them is written."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_watch(client, INSTANCES, seen))
        group.create_task(_watch(client, MACHINES, seen))


@asynccontextmanager
async def _watched(client: Client, seen: Seen) -> AsyncIterator[None]:
    """Watch for as long as something is measured."""
    watching = asyncio.create_task(watch(client, seen))
    await asyncio.sleep(0.5)
    try:
        yield
    finally:
        watching.cancel()


async def _watch(client: Client, target: Any, seen: Seen) -> None:
    async for event in client.watch(target, EVERYTHING, WatchOptions(initial=True, seconds=600)):
        if event.type == "BOOKMARK":
            continue
        name = event.object["metadata"]["name"]
        if name not in seen.running:
            key = f"{target.plural}/{name}"
            seen.writes[key] = seen.writes.get(key, 0) + 1
        if target is INSTANCES and event.object.get("status", {}).get("phase") == "Running" and name not in seen.running:
            seen.running[name] = time.monotonic()
            seen.came.set()


async def _until(seen: Seen, count: int) -> None:
    while len(seen.running) < count:
        seen.came.clear()
        await asyncio.wait_for(seen.came.wait(), 300)


@dataclass
class _Starts:
    """One start after the other, each beside one of QEMU alone: CPU of Paddock, seconds."""

    cpu: float = 0.0
    answered: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)


async def _one_by_one(client: Client, seen: Seen, host: Host, folder: Path, count: int) -> _Starts:
    starts = _Starts()
    for number in range(count):
        name = f"one-{number}"
        before, now = host.cpu(), time.time()
        seen.made[name] = time.monotonic()
        await client.request("POST", VMS, body=json.dumps(machine(name)).encode())
        await _until(seen, number + 1)
        await asyncio.sleep(_CALM_SECONDS)
        starts.cpu += (host.cpu() - before) / count
        uid = json.loads(await client.request("GET", f"{VMIS}/{name}"))["metadata"]["uid"]
        process = json.loads((host.root / "engine" / "machines" / uid / "process.json").read_bytes())
        starts.answered.append(process["times"]["running"] - now)
        argv = Path(f"/proc/{process['pid']}/cmdline").read_bytes().decode().split("\0")[:-1]
        starts.bare.append(await asyncio.to_thread(_bare, argv, folder / f"bare-{number}"))
        await asyncio.sleep(_CALM_SECONDS)
    return starts


async def _many(client: Client, seen: Seen, count: int) -> None:
    start = time.monotonic()
    tasks = []
    for number in range(count):
        name = f"many-{number}"

        async def make(name: str = name) -> None:
            seen.made[name] = time.monotonic()
            await client.request("POST", VMIS, body=json.dumps(instance(name)).encode())

        await asyncio.sleep(max(0.0, start + number * APART_SECONDS - time.monotonic()))
        tasks.append(asyncio.create_task(make()))
    await asyncio.gather(*tasks)
    await _until(seen, count)


def _bare(argv: list[str], folder: Path) -> float:
    """Seconds from the start of the same QEMU by hand until its monitor accepts the command to go on."""
    folder.mkdir()
    began = time.monotonic()
    bare = Started(argv, folder)
    bare.go_on()
    seconds = time.monotonic() - began
    bare.end()
    return seconds


async def _starts(client: Client, host: Host, folder: Path, rounds: int) -> list[Figure]:
    seen = Seen()
    async with _watched(client, seen):
        starts = await _one_by_one(client, seen, host, folder, rounds)
    answered, bare, told = (statistics.median(each) for each in (starts.answered, starts.bare, seen.latencies()))
    vms, vmis = ([seen.writes[f"{plural}/{name}"] for name in seen.running] for plural in (MACHINES.plural, INSTANCES.plural))
    walls = f"{answered * 1000:.0f} ms over {bare * 1000:.0f} ms; told as Running after {told * 1000:.0f} ms"
    return [
        Figure("apply to running, CPU of Paddock", starts.cpu * 1000),
        Figure("apply to running, wall over bare QEMU", answered / bare, walls),
        Figure("writes of a VM until it runs", max(vms)),
        Figure("writes of a VMI until it runs", max(vmis)),
    ]


async def _load(client: Client, host: Host, many: int) -> list[Figure]:
    seen, before = Seen(), host.memory()
    async with _watched(client, seen):
        seen.running.clear()
        await _many(client, seen, many)
    found = sorted(seen.running[name] - seen.made[name] for name in seen.made)
    return [
        Figure("100 VMIs, creation to Running, p50", found[len(found) // 2], f"{many} VMIs; KubeVirt publishes 17-19 s"),
        Figure("100 VMIs, creation to Running, p95", found[len(found) * 95 // 100], "KubeVirt publishes 27-28 s"),
        Figure("Paddock's own memory for a running VM", (host.memory() - before) / many / (1 << 20)),
    ]


async def _idle(host: Host, seconds: float) -> list[Figure]:
    """What Paddock takes while machines run and nobody asks for anything."""
    count, before, began = len(host.qemus()), host.cpu(), time.monotonic()
    await asyncio.sleep(seconds)
    share = (host.cpu() - before) / (time.monotonic() - began)
    return [
        Figure("idle beside 20 machines, share of a core", share * 100, f"{count} machines, over {seconds:.0f} s"),
        Figure("idle beside 20 machines, memory (PSS)", host.memory() / (1 << 20)),
    ]


async def _names(client: Client, path: str) -> list[str]:
    return [each["metadata"]["name"] for each in json.loads(await client.request("GET", path))["items"]]


async def _crowd(client: Client, count: int) -> None:
    """So many more VirtualMachines that run. Their guests do not heed a shutdown."""
    before = len(await _names(client, VMS))
    for number in range(count):
        made = machine(f"crowd-{number}")
        made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = _GRACE_SECONDS
        await client.request("POST", VMS, body=json.dumps(made).encode())
    while True:
        found = json.loads(await client.request("GET", VMS))["items"]
        if sum(each.get("status", {}).get("printableStatus") in ("Running", "Paused") for each in found) == before + count:
            return
        await asyncio.sleep(0.5)


async def _ask(client: Client, waits: list[float]) -> None:
    """Ask for a list again and again, and note how long each answer took."""
    while True:
        began = time.monotonic()
        await client.request("GET", VMS)
        waits.append(time.monotonic() - began)
        await asyncio.sleep(0.1)


async def _delete_together(client: Client, host: Host) -> list[Figure]:
    """Delete all VirtualMachines by one request. The CPU of their QEMUs, which are children, does not count."""
    waits = list[float]()
    async with host.client() as other:
        asking = asyncio.create_task(_ask(other, waits))
        count, before, began = len(await _names(client, VMS)), cpu_seconds(host.pid), time.monotonic()
        await client.request("DELETE", VMS)
        answered = time.monotonic() - began
        while await _names(client, VMS):
            if asking.done():
                asking.result()
            await asyncio.sleep(0.2)
        seconds = time.monotonic() - began
        asking.cancel()
    used, name = (cpu_seconds(host.pid) - before) / count, "150 VMs deleted at once"
    return [
        Figure(f"{name}: CPU of each", used * 1000, f"{count} VMs, answered after {answered:.2f} s"),
        Figure(f"{name}: all are gone after the grace of their guests and", max(seconds - _GRACE_SECONDS, 0.0)),
        Figure(f"{name}: slowest answer to a client that asks meanwhile", max(waits)),
    ]


async def _leave(client: Client, count: int) -> None:
    """Delete instances until so many run."""
    for name in (await _names(client, VMIS))[count:]:
        await client.request("DELETE", f"{VMIS}/{name}")
    while len(await _names(client, VMIS)) > count:
        await asyncio.sleep(0.1)
    await asyncio.sleep(_CALM_SECONDS)


async def _return(host: Host, root: Path) -> Figure:
    """Stop, start, and wait until what runs is known again."""
    host.stop()
    ready = host.start()
    async with host.client() as client:
        began = time.monotonic()
        while _ADOPTED not in (root / "said").read_text().rpartition("paddock: ready")[2]:
            await asyncio.sleep(0.01)
        seconds = ready + time.monotonic() - began
        count = len(json.loads(await client.request("GET", VMIS))["items"])
    return Figure("restart with 50 machines until all are adopted", seconds, f"{count} machines")


async def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """All figures."""
    rounds, many = (5, 20) if quick else (20, MANY)
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=folder))
    host = Host(root)
    host.start()
    try:
        async with host.client() as client:
            await asyncio.sleep(3)
            figures = await _starts(client, host, folder, rounds)
            figures += [*await _idle(host, _QUIET_SECONDS), *await _load(client, host, many)]
            await _crowd(client, (QUICK if quick else DELETED) - rounds)
            figures += await _delete_together(client, host)
            await _leave(client, min(many, ADOPTED))
        return [*figures, await _return(host, root)]
    finally:
        host.end()
        shutil.rmtree(root, ignore_errors=True)
