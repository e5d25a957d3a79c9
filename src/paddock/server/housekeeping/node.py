"""The objects that represent this server and its host: a Node, and the Service `kubernetes` with its endpoints.

Every start brings them up to date. Labels, taints and `unschedulable` belong to users and stay.
"""

import ipaddress
import os
import platform
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server import health
from paddock.server.builtin import servicenetworks, services
from paddock.server.context import ServerParts
from paddock.server.objects.requests import Options, Proposal
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import StoreKey

_WHO = Options(user="system:apiserver", manager="paddock", unasked=True)
_SERVICE = "kubernetes"
# As KubeVirt tells it of nodes, in hertz.
FREQUENCY = "cpu-timer.node.kubevirt.io/tsc-frequency"
_PODS = "110"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class NodeProblem(msgspec.Struct, frozen=True):
    """The reason why a host is not ready: a constant word, and a sentence for people."""

    reason: str
    message: str


class NodeLimit(msgspec.Struct, frozen=True):
    """A condition that is true while something limits what the host can do for machines."""

    type: str
    reason: str
    message: str


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a host."""

    name: str
    addresses: tuple[str, ...]
    cpus: int
    memory_kib: int
    version: str
    architecture: str = "amd64"
    kernel: str = ""
    system: str = "linux"
    image: str = ""
    machine_id: str = ""
    boot_id: str = ""
    accelerated: bool = False
    # of a processor; 0: not known
    hertz: int = 0
    # why it cannot run machines now; None: it can
    problem: NodeProblem | None = None
    # its guests are
    simulated: bool = False
    limits: tuple[NodeLimit, ...] = ()


def this_host(listening: str) -> NodeFacts:
    """The facts of the host that this process runs on. `listening` is the address or the name it is reached at."""
    machine = platform.machine()
    name = socket.gethostname().lower() or "localhost"
    return NodeFacts(
        name=name,
        addresses=(_address(listening, name),),
        cpus=os.cpu_count() or 1,
        memory_kib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024,
        version=health.version()["gitVersion"],
        architecture=_ARCHITECTURES.get(machine, machine),
        kernel=platform.release(),
        image=_image(),
        machine_id=_line("/etc/machine-id"),
        boot_id=_line("/proc/sys/kernel/random/boot_id"),
        accelerated=Path("/dev/kvm").exists(),
        hertz=_hertz(),
    )


def simulated(host: NodeFacts, number: int, cpus: int, memory_kib: int) -> NodeFacts:
    """The facts of a node of simulated guests on a host."""
    return msgspec.structs.replace(
        host,
        name=f"simulated-{number}",
        cpus=cpus,
        memory_kib=memory_kib,
        architecture="amd64",
        kernel="simulated",
        image="Paddock with simulated guests",
        accelerated=True,
        hertz=0,
        simulated=True,
    )


def _address(listening: str, name: str) -> str:
    """The address behind what a server listens on; any address means that of the host's own name."""
    for candidate in (listening if listening not in ("", "0.0.0.0", "::") else name, "127.0.0.1"):
        try:
            return str(socket.getaddrinfo(candidate, None, type=socket.SOCK_STREAM)[0][4][0])
        except OSError:
            continue
    return "127.0.0.1"


def _line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _hertz() -> int:
    """The frequency that a processor has for good: the kernel's word for it, or the one in the processor's name."""
    kilohertz = _line("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency")
    if kilohertz.isdecimal():
        return int(kilohertz) * 1000
    text = _line("/proc/cpuinfo")
    named = re.search(r"^model name\s*:.*@ (\d+(?:\.\d+)?)GHz", text, re.MULTILINE)
    if named is not None:
        return round(float(named[1]) * 1000) * 1_000_000
    now = re.search(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)
    return round(float(now[1])) * 1_000_000 if now is not None else 0


def _image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


_READY = NodeProblem("ServerReady", "the server is up")


async def ensure(
    parts: ServerParts, host: NodeFacts, port: int, networks: Sequence[services.Network] = (services.NETWORK,), *, bare: bool = False
) -> None:
    """Make or renew the Node, the networks of Services and the Service of this server; `port` is where it answers.

    `bare`: there is no Node.
    """
    address = host.addresses[0]
    if not bare:
        await ensure_node(parts, host)
    await ensure_network(parts, *map(str, networks))
    await _ensure(parts, "", "services", "default", service(port, services.own_address(networks[0])))
    await _ensure(parts, "", "endpoints", "default", endpoints(address, port))
    await _ensure(parts, "discovery.k8s.io", "endpointslices", "default", endpoint_slice(address, port))


def node(host: NodeFacts, now: str, before: Data | None) -> Data:
    """The Node of a host; `before` is the stored one, from which its users' part is kept."""
    old_meta = (before or {}).get("metadata") or {}
    labels = {
        "kubernetes.io/hostname": host.name,
        "kubernetes.io/os": host.system,
        "kubernetes.io/arch": host.architecture,
        "kubevirt.io/schedulable": "true",
        # Machines that ask for a worker run here: there is no other node.
        "node-role.kubernetes.io/worker": "",
        **({FREQUENCY: str(host.hertz)} if host.hertz else {}),
        **({ownnames.GUESTS.name: "simulated"} if host.simulated else {}),
    }
    meta = {**old_meta, "name": host.name, "labels": {**(old_meta.get("labels") or {}), **labels}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": (before or {}).get("spec") or {},
        "status": _status(host, now, before),
    }


def _status(host: NodeFacts, now: str, before: Data | None) -> Data:
    amounts = {"cpu": str(host.cpus), "memory": f"{host.memory_kib}Ki", "pods": _PODS}
    if host.accelerated:
        amounts["devices.kubevirt.io/kvm"] = "1k"
    info = {
        "architecture": host.architecture,
        "operatingSystem": host.system,
        "kernelVersion": host.kernel,
        "osImage": host.image,
        "kubeletVersion": host.version,
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "simulated://guests" if host.simulated else "",
        "machineID": host.machine_id,
        "systemUUID": "",
        "bootID": host.boot_id,
    }
    addresses = [{"type": "InternalIP", "address": each} for each in host.addresses]
    return {
        "capacity": amounts,
        "allocatable": dict(amounts),
        "conditions": _conditions(host, now, ((before or {}).get("status") or {}).get("conditions") or ()),
        "addresses": [*addresses, {"type": "Hostname", "address": host.name}],
        "nodeInfo": info,
    }


def _conditions(host: NodeFacts, now: str, known: Sequence[Data]) -> list[Data]:
    """The readiness of the host, and its limits."""
    problem = host.problem or _READY
    found = [("Ready", "True" if host.problem is None else "False", problem.reason, problem.message)]
    found += [(each.type, "True", each.reason, each.message) for each in host.limits]
    since = {(each["type"], each["status"]): each.get("lastTransitionTime") for each in known}
    return [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": now,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since.get((kind, status)) or now,
        }
        for kind, status, reason, message in found
    ]


def service(port: int, inside: str) -> Data:
    """The Service of the API server."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    spec = {"clusterIP": inside, "clusterIPs": [inside], "ports": ports, "type": "ClusterIP"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": _SERVICE, "labels": labels}, "spec": spec}


def endpoints(address: str, port: int) -> Data:
    """Return the Endpoints of the Service."""
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subset = {"addresses": [{"ip": address}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": _SERVICE, "labels": labels}, "subsets": [subset]}


def endpoint_slice(address: str, port: int) -> Data:
    """Return the EndpointSlice of the Service."""
    kind = f"IPv{ipaddress.ip_address(address).version}"
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": _SERVICE, "labels": {"kubernetes.io/service-name": _SERVICE}},
        "addressType": kind,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


async def ensure_node(parts: ServerParts, host: NodeFacts) -> None:
    """Make or renew the Node; its users' part stays."""
    resource = parts.registry.find("", "v1", "nodes")
    if resource is None:
        return
    now = parts.clock.now()
    if parts.store.decided(StoreKey(resource.collection, "", host.name)) is None:
        await parts.writer.create(resource, "", node(host, now, None), _WHO)
    await parts.writer.replace(resource, "", host.name, lambda old: Proposal(node(host, now, old)), _WHO)
    status = msgspec.structs.replace(_WHO, subresource="status")
    await parts.writer.replace(resource, "", host.name, lambda old: Proposal(node(host, now, old)), status)


async def ensure_network(parts: ServerParts, *cidrs: str) -> None:
    """Make or renew the networks of Services, and say that they are in use."""
    await _ensure(parts, servicenetworks.GROUP, "servicecidrs", "", servicenetworks.own_network(*cidrs))
    resource = parts.registry.find(servicenetworks.GROUP, "v1", "servicecidrs")
    if resource is not None:
        now = parts.clock.now()
        status = msgspec.structs.replace(_WHO, subresource="status")
        await parts.writer.replace(resource, "", servicenetworks.OWN, lambda old: Proposal(servicenetworks.ready(old, now)), status)


async def _ensure(parts: ServerParts, group: str, plural: str, namespace: str, wanted: Data) -> None:
    resource = parts.registry.find(group, "v1", plural)
    if resource is None:
        return
    try:
        await parts.writer.create(resource, namespace, wanted, _WHO)
    except failure.Failure as said:
        if said.reason != "AlreadyExists":
            raise
        await _renew(parts, resource, namespace, wanted)


async def _renew(parts: ServerParts, resource: ServedResource, namespace: str, wanted: Data) -> None:
    name = wanted["metadata"]["name"]

    def renewed(old: Data) -> Proposal:
        meta = {**old["metadata"]}
        if labels := wanted["metadata"].get("labels"):
            meta["labels"] = {**(meta.get("labels") or {}), **labels}
        return Proposal({**old, **wanted, "metadata": meta})

    await parts.writer.replace(resource, namespace, name, renewed, _WHO)
