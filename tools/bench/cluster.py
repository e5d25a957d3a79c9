"""The same guest on `paddock up` and on a Kubernetes node with KubeVirt, one after the other on this machine.

Both run one machine at a time, with the same manifest and the same container disk, in one control group, so that what others do on this
machine weighs alike on both. Some machines are stopped at their first instruction, so that no guest takes a part. The others boot until
the guest's agent answers. CPU and memory are those of all processes of a side but QEMU.
"""

import asyncio
import json
import os
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from paddock.base.clock import SystemClock
from paddock.base.images.build import places, tiny
from paddock.fleet.diagnosis.scene import holds, texts
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import EVERYTHING, WatchOptions
from tests.host.guests import registry_in
from tests.reference.cluster import control, images, kubevirt, namespace
from tests.reference.cluster.__main__ import Wanted, missing, up
from tools.bench import comparison, hosting, userland
from tools.bench.client import LoadFailed
from tools.bench.hosting import INSTANCES, VMIS, VMS
from tools.bench.offline import Figure
from tools.bench.programs import cpu_seconds, pss

Say = Callable[[str], None]
_SECONDS = 900
# What follows a start or a deletion has happened by then.
_CALM_SECONDS = 10.0
_IDLE_SECONDS = 60.0
_QEMU = "qemu-system"
_SHARES = 512
_GROUP = Path("/sys/fs/cgroup/cpu/paddock-bench")
_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_NODE = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "pause")
_KUBEVIRT = ("virt-operator", "virt-api", "virt-controller", "virt-handler", "virt-exportproxy")
_LEASE_WRITES = re.compile(
    r'^apiserver_request_total\{[^}]*resource="leases"[^}]*verb="(?:POST|PUT|PATCH|APPLY|DELETE)"[^}]*\} (\S+)$', re.M
)
_MIB = 1 << 20


class Side(Protocol):
    """One of the two, as it runs."""

    @property
    def access(self) -> Path:
        """Its kubeconfig."""

    @property
    def image(self) -> str:
        """Its name for the container disk."""

    def processes(self) -> dict[int, str]:
        """Return the program of each of its processes."""

    def cpu(self) -> float:
        """Seconds of CPU of all its processes so far, those that have ended included."""

    async def lease_writes(self, client: Client) -> int:
        """Return the number of writes that only renew a lease."""


@dataclass(frozen=True)
class _Paddock:
    """`paddock up`; its machines are processes that it does not count as children."""

    host: hosting.Host
    image: str

    @property
    def access(self) -> Path:
        return self.host.root / "kubeconfig"

    def processes(self) -> dict[int, str]:
        return {self.host.pid: "paddock", **dict.fromkeys(self.host.qemus(), _QEMU)}

    def cpu(self) -> float:
        return self.host.cpu() + sum(cpu_seconds(pid) for pid in self.host.qemus())

    async def lease_writes(self, client: Client) -> int:
        return 0


@dataclass(frozen=True)
class _Cluster:
    """The reference cluster."""

    machine: namespace.Machine
    image: str

    @property
    def access(self) -> Path:
        return control.access(self.machine).kubeconfig

    def processes(self) -> dict[int, str]:
        found = {}
        for pid in namespace.processes(self.machine.directory):
            try:
                word = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            except OSError:
                continue
            # What opens the API to the host and the storage are parts of the measurement.
            if word and "python" not in word:
                found[pid] = Path(word).name
        return found

    def cpu(self) -> float:
        return namespace.cpu_seconds(self.machine.directory)

    async def lease_writes(self, client: Client) -> int:
        return sum(int(float(each)) for each in _LEASE_WRITES.findall((await client.request("GET", "/metrics")).decode()))


@dataclass(frozen=True)
class Rounds:
    """The numbers of machines."""

    # beside the first one, which warms caches
    stopped: int
    booted: int


@dataclass
class Measured:
    """The figures of a side: the middle of several rounds, by name."""

    rounds: dict[str, list[float]] = field(default_factory=dict)
    load: float = 0.0

    def add(self, name: str, value: float) -> None:
        """One more."""
        self.rounds.setdefault(name, []).append(value)

    def values(self) -> dict[str, float]:
        """The middle ones."""
        return {name: statistics.median(each) for name, each in self.rounds.items()}


def measure(folder: Path, say: Say, *, quick: bool) -> list[Figure] | str:
    """Return the figures, and tell all that was measured; or the reason why there are none."""
    if reason := missing() or ("" if shutil.which("qemu-system-x86_64") else "no QEMU"):
        return f"the cluster is left out: {reason}"
    disk, rounds = tiny.build(places.cache()).disk, Rounds(3, 3) if quick else Rounds(7, 5)
    with _alike(), _explained():
        ours = asyncio.run(_measure_paddock(folder, disk, rounds))
        theirs = asyncio.run(_measure_kubevirt(folder, disk, rounds, say))
    say(text(ours, theirs))
    own, other = ours.values(), theirs.values()
    return [Figure(name, own[name], peer=other[name]) for name in own if name in other and not name.startswith("idle: ")]


def text(ours: Measured, theirs: Measured) -> str:
    """Return the table of what was measured."""
    own, other = ours.values(), theirs.values()
    rows: list[tuple[str, ...]] = [("figure", "paddock up", "KubeVirt", "ratio")]
    for name in [*own, *(each for each in other if each not in own)]:
        cells = [f"{side[name]:.4g}" if name in side else "" for side in (own, other)]
        # What is lost in the noise of a measurement has no ratio.
        ratio = f"1/{other[name] / own[name]:.1f}" if own.get(name, 0) > 0 and other.get(name, 0) > 0 else ""
        rows.append((name, *cells, ratio))
    return f"load {ours.load:.1f} and {theirs.load:.1f}\n{comparison.text(rows)}"


@contextmanager
def _explained() -> Iterator[None]:
    """A node that does not come up ends the measurement with its reason."""
    try:
        yield
    except namespace.NodeFailed as problem:
        raise LoadFailed(str(problem)) from problem


@contextmanager
def _alike() -> Iterator[None]:
    """Both sides run in a control group of one weight, and at the lowest priority in it."""
    _GROUP.mkdir(exist_ok=True)
    (_GROUP / "cpu.shares").write_text(str(_SHARES))
    (_GROUP / "cgroup.procs").write_text(str(os.getpid()))
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
        for pid in (_GROUP / "cgroup.procs").read_text().split():
            (_GROUP.parent / "cgroup.procs").write_text(pid)
        _GROUP.rmdir()


async def _measure_paddock(folder: Path, disk: Path, rounds: Rounds) -> Measured:
    root = folder / "paddock"
    root.mkdir()
    (folder / "registry").mkdir()
    with registry_in(folder / "registry") as registry, ExitStack() as ends:
        host = hosting.Host(root, f"--image-from={registry.address.partition(':')[0]}", f"--insecure-registry={registry.address}")
        ends.callback(host.end)
        host.start()
        return await _measure(_Paddock(host, registry.push("disks/tiny:1", {"disk/tiny.qcow2": disk})), rounds)


async def _measure_kubevirt(folder: Path, disk: Path, rounds: Rounds, say: Say) -> Measured:
    directory, image = folder / "cluster", f"{images.REGISTRY}/tiny:1"
    try:
        machine = up(directory, say, Wanted(kubevirt=True))
        file = machine.directory / "files" / "tiny.tar"
        images.disk(file, image, disk)
        kubevirt.load_archive(machine, file)
        return await _measure(_Cluster(machine, image), rounds)
    finally:
        namespace.end(directory)


async def _measure(side: Side, rounds: Rounds) -> Measured:
    """Idle, then machines one after the other; the first one warms caches and is not counted."""
    measured = Measured()
    access = kubeconfig.find({}, SystemClock(), explicit=side.access)
    async with Client(Https(access)) as client:
        await asyncio.sleep(_CALM_SECONDS)
        await _idle(side, measured)
        for number in range(rounds.stopped + 1):
            await _stopped(client, side, f"stopped-{number}", measured if number else Measured())
        for number in range(rounds.booted):
            await _booted(client, side, f"booted-{number}", measured)
    measured.load = os.getloadavg()[0]
    return measured


async def _idle(side: Side, measured: Measured) -> None:
    there = side.processes()
    before = {pid: cpu_seconds(pid) for pid in there}
    whole, began = side.cpu(), time.monotonic()
    await asyncio.sleep(_IDLE_SECONDS)
    seconds = time.monotonic() - began
    measured.add("idle, CPU of everything", (side.cpu() - whole) / seconds * 100)
    measured.add("idle, memory of everything", _memory(side, there) / _MIB)
    for name, programs in (("Kubernetes' control plane", _CONTROL_PLANE), ("the node's programs", _NODE), ("KubeVirt", _KUBEVIRT)):
        part = {pid: program for pid, program in there.items() if program in programs}
        if part:
            used = sum(cpu_seconds(pid) - before[pid] for pid in part if Path(f"/proc/{pid}").exists())
            measured.add(f"idle: CPU of {name}, % of a core", used / seconds * 100)
            measured.add(f"idle: memory of {name}, MiB", _memory(side, part) / _MIB)


async def _stopped(client: Client, side: Side, name: str, measured: Measured) -> None:
    """One machine that is stopped at its first instruction, and its end."""
    memory, cpu = _memory(side, side.processes()), side.cpu()
    leases, revision = await side.lease_writes(client), await _revision(client)
    running, seconds = await _made(client, side, manifest(name, side.image, startStrategy="Paused"), _runs)
    measured.add("apply to Running", seconds)
    measured.add("CPU until Running", side.cpu() - cpu - cpu_seconds(_qemu(side)))
    await asyncio.sleep(_CALM_SECONDS - (time.monotonic() - running))
    measured.add("CPU until 10 s later", side.cpu() - cpu - cpu_seconds(_qemu(side)))
    writes = await _revision(client) - revision - (await side.lease_writes(client) - leases)
    measured.add("writes to the store until 10 s later, without renewed Leases", writes)
    measured.add("memory of a machine beside QEMU's", (_memory(side, side.processes()) - memory) / _MIB)
    measured.add("memory of QEMU, whose guest has not begun", pss(_qemu(side)) / _MIB)
    await _removed(client, name)


async def _booted(client: Client, side: Side, name: str, measured: Measured) -> None:
    """One machine until its guest answers, and its end."""
    cpu = side.cpu()
    _, seconds = await _made(client, side, manifest(name, side.image), _answers)
    measured.add("apply to the answer of the guest's agent", seconds)
    measured.add("CPU until the agent answers", side.cpu() - cpu - cpu_seconds(_qemu(side)))
    measured.add("CPU of the guest's QEMU until then", cpu_seconds(_qemu(side)))
    await _removed(client, name)


async def _made(client: Client, side: Side, thing: dict[str, Any], is_so: Callable[[dict[str, Any]], bool]) -> tuple[float, float]:
    """Make a machine; return when a watcher hears of its instance what it waits for, and how long that took."""
    hearing = asyncio.create_task(_heard(client, thing["metadata"]["name"], is_so))
    await asyncio.sleep(1)
    began = time.monotonic()
    await client.request("POST", VMS, body=json.dumps(thing).encode())
    heard = await asyncio.wait_for(hearing, _SECONDS)
    return heard, heard - began


async def _removed(client: Client, name: str) -> None:
    await client.request("DELETE", f"{VMS}/{name}")
    await userland.gone(client, f"{VMIS}/{name}")
    await asyncio.sleep(_CALM_SECONDS)


def _qemu(side: Side) -> int:
    (pid,) = [pid for pid, program in side.processes().items() if program.startswith(_QEMU)]
    return pid


def _runs(instance: dict[str, Any]) -> bool:
    return texts(instance, "status", "phase") == "Running"


def _answers(instance: dict[str, Any]) -> bool:
    return holds(instance, "AgentConnected")


def manifest(name: str, image: str, **more: Any) -> dict[str, Any]:
    """The tiny guest on a container disk."""
    made = hosting.machine(name)
    spec = made["spec"]["template"]["spec"]
    del spec["startStrategy"]
    spec |= more
    spec["domain"]["memory"]["guest"] = "192Mi"
    spec["domain"]["devices"]["disks"] = [{"name": "root", "disk": {"bus": "virtio"}}]
    spec["volumes"] = [{"name": "root", "containerDisk": {"image": image, "imagePullPolicy": "IfNotPresent"}}]
    return made


async def _heard(client: Client, name: str, is_so: Callable[[dict[str, Any]], bool]) -> float:
    """Return when a watcher hears it of an instance."""
    async for event in client.watch(INSTANCES, EVERYTHING, WatchOptions(initial=True, seconds=_SECONDS)):
        if event.type != "BOOKMARK" and event.object["metadata"]["name"] == name and is_so(event.object):
            return time.monotonic()
    raise LoadFailed(f"the watch of {name} ended too early")


async def _revision(client: Client) -> int:
    """Return the revision of the store, which every write raises by one."""
    found = json.loads(await client.request("GET", "/api/v1/namespaces"))
    return int(found["metadata"]["resourceVersion"])


def _memory(side: Side, processes: dict[int, str]) -> int:
    """Return the memory of those processes that are not QEMU and still there."""
    found = 0
    for pid, program in processes.items():
        if not program.startswith(_QEMU):
            try:
                found += pss(pid)
            except (OSError, StopIteration):
                continue
    return found
