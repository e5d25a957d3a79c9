"""What running machines use, by the server's own series, else by metrics.k8s.io."""

import re
import time
from collections.abc import Iterator, Mapping

import msgspec
import orjson

from paddock.base import quantity
from paddock.base.errors import Terminal
from paddock.fleet.diagnosis.scene import entries, texts
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound, Unavailable
from paddock.kubernetes.client.target import Key

_LAUNCHER = "virt-launcher-"
_PREFIX = "kubevirt_vmi_"
# series -> the member that it adds to; counters become rates
_COUNTERS = {
    "cpu_usage_seconds_total": "cpu",
    "storage_read_traffic_bytes_total": "read",
    "storage_write_traffic_bytes_total": "write",
    "network_receive_bytes_total": "received",
    "network_transmit_bytes_total": "sent",
}
_GAUGES = {"memory_resident_bytes": "memory", "memory_used_bytes": "guest"}
_MEMBERS = {**_COUNTERS, **_GAUGES}
_LINE = re.compile(rf"{_PREFIX}(\w+)\{{(.*)\}} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SPACE = "kubelet_volume_stats_used_bytes"
_SPACE_LINE = re.compile(rf"{_SPACE}\{{(.*)\}} (\S+)")


class NoUsage(Terminal):
    """The server has no figures."""


class MachineUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one machine: cores, bytes, and bytes a second."""

    cpu: float = 0.0
    memory: float = 0.0
    guest: float = 0.0
    read: float = 0.0
    write: float = 0.0
    received: float = 0.0
    sent: float = 0.0

    def as_data(self) -> dict[str, float]:
        """Return the use for programs."""
        return {
            "cpuCores": round(self.cpu, 4),
            "memoryBytes": self.memory,
            "guestMemoryBytes": self.guest,
            "readBytesPerSecond": self.read,
            "writeBytesPerSecond": self.write,
            "receivedBytesPerSecond": self.received,
            "sentBytesPerSecond": self.sent,
        }


class UsageSample(msgspec.Struct, frozen=True):
    """Counters and gauges at one moment. `rated` figures are rates already."""

    seconds: float
    machines: Mapping[Key, Mapping[str, float]]
    rated: bool = False


async def read(client: Client, namespace: str = "") -> UsageSample:
    """Return a sample; of one namespace, if one is given and the user may see no other. Raises `NoUsage`."""
    # kube-apiserver's page of series has megabytes, and no machines.
    text = await _series(client) if await client.is_paddock() else ""
    if _PREFIX in text:
        return UsageSample(time.monotonic(), parse(text))
    try:
        found = orjson.loads(await _pods(client, namespace))
    except (Forbidden, NotFound, Unavailable) as error:
        fix = "ask for the right to get /metrics, or install metrics-server in the cluster"
        raise NoUsage("the server shows no use of machines", why=str(error), fix=fix) from error
    return UsageSample(time.monotonic(), dict(_of_pods(found)), rated=True)


async def _series(client: Client) -> str:
    names = tuple(("name[]", _PREFIX + each) for each in _MEMBERS)
    try:
        return (await client.request("GET", "/metrics", names)).decode()
    except (Forbidden, NotFound):
        return ""


async def claim_bytes(client: Client, namespace: str) -> dict[str, int]:
    """Return the bytes that the claims of a namespace take on their host, as far as the server tells this user."""
    if not await client.is_paddock():
        return {}
    try:
        text = (await client.request("GET", "/metrics", (("name[]", _SPACE),))).decode()
    except (Forbidden, NotFound):
        return {}
    found = ((dict(_LABEL.findall(match[1])), match[2]) for match in _SPACE_LINE.finditer(text))
    return {about["persistentvolumeclaim"]: int(float(value)) for about, value in found if about.get("namespace") == namespace}


async def _pods(client: Client, namespace: str) -> bytes:
    base = "/apis/metrics.k8s.io/v1beta1"
    try:
        return await client.request("GET", f"{base}/pods")
    except Forbidden:
        if not namespace:
            raise
    return await client.request("GET", f"{base}/namespaces/{namespace}/pods")


def parse(text: str) -> dict[Key, dict[str, float]]:
    """Return the figures in a page of series; disks and interfaces are added up."""
    found: dict[Key, dict[str, float]] = {}
    for match in _LINE.finditer(text):
        member = _MEMBERS.get(match[1])
        labels = dict(_LABEL.findall(match[2]))
        if member is None or "name" not in labels:
            continue
        figures = found.setdefault(Key(labels.get("namespace", ""), labels["name"]), {})
        figures[member] = figures.get(member, 0.0) + float(match[3])
    return found


def _of_pods(answer: object) -> Iterator[tuple[Key, dict[str, float]]]:
    for each in entries(answer, "items"):
        name = texts(each, "metadata", "name")
        if not name.startswith(_LAUNCHER):
            continue
        # A cluster's pods have five more characters behind the machine's name.
        machine = texts(each, "metadata", "labels", "vm.kubevirt.io/name") or name.removeprefix(_LAUNCHER)
        figures = {"cpu": 0.0, "memory": 0.0}
        for container in entries(each, "containers"):
            figures["cpu"] += quantity.parse(texts(container, "usage", "cpu") or "0") / quantity.UNIT
            figures["memory"] += quantity.parse(texts(container, "usage", "memory") or "0") / quantity.UNIT
        yield Key(texts(each, "metadata", "namespace"), machine), figures


def rates(before: UsageSample, after: UsageSample) -> dict[Key, MachineUsage]:
    """Return the use between two samples. A machine that is new, or began anew, has no rates yet."""
    found = {}
    passed = max(after.seconds - before.seconds, 0.001)
    for key, figures in after.machines.items():
        old = before.machines.get(key, figures)
        values = dict(figures)
        if not after.rated:
            values |= {name: max(figures.get(name, 0.0) - old.get(name, 0.0), 0.0) / passed for name in _COUNTERS.values()}
        found[key] = MachineUsage(**values)
    return found
