"""`GET host`: the nodes with what they have, use and promised to machines, and what a check of this host found."""

import asyncio
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

import orjson

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, conditions, entries, texts
from paddock.fleet.machines import facts, waiting
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound, Unavailable
from paddock.kubernetes.targets import kind_target
from paddock.web.answers.rows import State, WebHostCheck, WebHostInfo, WebNodeInfo, WebPressure
from paddock.web.routes import WebRequest, WebRoute
from paddock.web.session import WebSession

_NODES = kind_target("", "Node")
_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
_UNKNOWN = WebPressure(cpu=-1.0, memory=-1.0, io=-1.0)
# The check of the host that knows whether /dev/kvm is of use: KubeVirt's nodes promise the device to guests that are emulated, too.
_ACCELERATOR = "accelerator"
_PRESSURE = Path("/proc/pressure")
Used = Mapping[str, tuple[float, int]]


async def host(request: WebRequest) -> WebHostInfo:
    """Return the nodes. A user who may not list them gets nothing, also of the host."""
    session = request.session
    try:
        nodes = (await session.client.list(_NODES)).items
    except (Forbidden, NotFound):
        return WebHostInfo(nodes=[], checks=[])
    used, machines, checks = await asyncio.gather(_used(session.client), session.live.machines(), _checks(session))
    here = socket.gethostname().lower() if session.host.local else ""
    local = await asyncio.to_thread(LocalFacts.read, session.host.directory) if here else None
    if local is not None:
        local.emulates = any(each.name == _ACCELERATOR and each.state != "good" for each in checks)
    rows = [node_info(each, used, machines, local if texts(each, "metadata", "name") == here else None) for each in nodes]
    return WebHostInfo(nodes=rows, checks=list(checks))


async def _checks(session: WebSession) -> list[WebHostCheck]:
    """Check the host of Paddock's own server. A cluster on this host, such as one of kind, needs other things of it."""
    return await session.host.checks() if await session.client.is_paddock() else []


class LocalFacts:
    """Figures that only a program on the host of a node knows: pressure, and room on its disk in bytes, -1 for unknown."""

    def __init__(self, pressure: WebPressure, disk: int, used_disk: int) -> None:
        self.pressure = pressure
        self.disk = disk
        self.used_disk = used_disk
        self.emulates = False

    @classmethod
    def read(cls, directory: Path | None, proc: Path = _PRESSURE) -> "LocalFacts":
        """Read them. Blocking."""
        disk = used = -1
        if directory is not None:
            try:
                found = os.statvfs(directory)
                disk, used = found.f_blocks * found.f_frsize, (found.f_blocks - found.f_bfree) * found.f_frsize
            except OSError:
                pass
        return cls(WebPressure(cpu=_some(proc / "cpu"), memory=_some(proc / "memory"), io=_some(proc / "io")), disk, used)


def _some(file: Path) -> float:
    """Return the percent of the last ten seconds in which some task waited; -1 for a kernel without the figure."""
    try:
        return some_of(file.read_text())
    except OSError:
        return -1.0


def some_of(text: str) -> float:
    """Return `avg10` of the line `some` of a file of /proc/pressure."""
    for line in text.splitlines():
        words = dict(word.partition("=")[::2] for word in line.split())
        if line.startswith("some "):
            try:
                return float(words["avg10"])
            except (KeyError, ValueError):
                return -1.0
    return -1.0


async def _used(client: Client) -> Used:
    """Return processors and memory in use by node."""
    try:
        found = orjson.loads(await client.request("GET", _METRICS))
    except (Forbidden, NotFound, Unavailable):
        return {}
    return {
        texts(each, "metadata", "name"): (_amount(at(each, "usage", "cpu")), int(_amount(at(each, "usage", "memory"))))
        for each in entries(found, "items")
    }


def _amount(text: object) -> float:
    return quantity.parse(text) / quantity.UNIT if isinstance(text, int | str) and quantity.is_quantity(text) else 0.0


def node_info(node: Data, used: Used, machines: Iterable[MachineView], local: LocalFacts | None) -> WebNodeInfo:
    """Return a node with what its running machines were promised."""
    name, info = texts(node, "metadata", "name"), at(node, "status", "nodeInfo") or {}
    capacity = at(node, "status", "capacity") or {}
    there = [facts.of(each) for each in machines if texts(each.vmi, "status", "nodeName") == name and waiting.is_live(each)]
    cpus, memory = used.get(name, (-1.0, -1))
    state, status = _state(node)
    return WebNodeInfo(
        name=name,
        state=state,
        status=status,
        os=texts(info, "osImage"),
        kernel=texts(info, "kernelVersion"),
        arch=texts(info, "architecture"),
        accelerator="KVM" if _amount(capacity.get("devices.kubevirt.io/kvm")) > 0 and not (local and local.emulates) else "TCG",
        cpus=_amount(capacity.get("cpu")),
        memory=int(_amount(capacity.get("memory"))),
        disk=local.disk if local is not None else int(_amount(capacity.get("ephemeral-storage"))) or -1,
        used_cpus=cpus,
        used_memory=memory,
        used_disk=local.used_disk if local is not None else -1,
        promised_cpus=float(sum(each.cpus for each in there)),
        promised_memory=sum(each.memory for each in there),
        machines=len(there),
        pressure=local.pressure if local is not None else _UNKNOWN,
    )


def _state(node: Data) -> tuple[State, str]:
    ready = conditions(node).get("Ready")
    if texts(ready, "status") != "True":
        return "bad", texts(ready, "message") or "is not ready"
    if at(node, "spec", "unschedulable"):
        return "waits", "takes no new machines"
    return "good", "is ready"


ROUTES = (WebRoute("GET", "host", host),)
