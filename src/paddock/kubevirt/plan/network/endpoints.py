"""The machines behind a Service, and their representation: endpoints, published ports, names. Pure."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from paddock.base.jsondata import Data
from paddock.engine.networks.nics import ForwardTarget, Protocol, PublishedPort, PublishedService
from paddock.kubernetes.core.service import Service, ServicePort, ServiceSpec
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.networks import Interface
from paddock.kubevirt.plan.instance.identity import owner_of

_DEFAULT_AFFINITY = 10800
# What upstream's pods carry, and what tools select by.
_NAME_LABELS = ("vm.kubevirt.io/name", "vmi.kubevirt.io/id")
_LONGEST_LABEL = 63
# (name, protocol, port) of a Service's port as it is at some machines
Resolved = tuple[tuple[str, str, int], ...]


class MachineBackend(msgspec.Struct, frozen=True):
    """A machine behind a Service."""

    owner: str
    interface: str
    # what others reach it by, IPv4 first
    addresses: tuple[str, ...]
    name: str
    uid: str
    node: str
    hostname: str
    ready: bool
    deleting: bool
    # (name of the port at the card, protocol) -> its number
    named: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)

    def address(self, family: str) -> str:
        """Its address of a family; "" without one."""
        return next((each for each in self.addresses if family_of(each) == family), "")


def family_of(address: str) -> str:
    """The family of an address, in the API's words."""
    return "IPv6" if ":" in address else "IPv4"


def families(spec: ServiceSpec) -> tuple[str, ...]:
    """The families of a Service, the first one first."""
    return tuple(spec.ipFamilies or (family_of(spec.clusterIP or ""),))


def labels_of(instance: VirtualMachineInstance) -> dict[str, str]:
    """Return the labels that select a machine: its own, and those that upstream gives to its pod whatever its own say."""
    meta = instance.metadata
    name = meta.name
    short = name if len(name) <= _LONGEST_LABEL else f"{name[:54]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    implied = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": meta.uid or "", **dict.fromkeys(_NAME_LABELS, short)}
    return {**(meta.labels or {}), **implied}


def is_selected(spec: ServiceSpec, labels: Mapping[str, str]) -> bool:
    """Return whether a Service selects something with these labels. One without a selector selects nothing by itself."""
    return bool(spec.selector) and all(labels.get(key) == value for key, value in (spec.selector or {}).items())


def backend_of(instance: VirtualMachineInstance) -> MachineBackend | None:
    """The machine as a backend; None as long as it has no address, and when it has ended."""
    interface = primary_card(instance)
    status = instance.status
    if interface is None or status is None or status.phase in ("Succeeded", "Failed"):
        return None
    seen = next((each for each in status.interfaces or () if each.name == interface.name), None)
    if seen is None or not seen.ipAddress:
        return None
    deleting = instance.metadata.deletionTimestamp is not None
    ready = any(each.type == "Ready" and each.status == "True" for each in status.conditions or ())
    named = {(port.name, (port.protocol or "TCP").upper()): port.port for port in interface.ports or () if port.name}
    return MachineBackend(
        owner=owner_of(instance),
        interface=interface.name,
        addresses=tuple(dict.fromkeys((seen.ipAddress, *(seen.ipAddresses or ())))),
        name=instance.metadata.name,
        uid=instance.metadata.uid or "",
        node=status.nodeName or "",
        hostname=(instance.spec.hostname or instance.metadata.name) if instance.spec.subdomain else "",
        ready=ready and not deleting,
        deleting=deleting,
        named=named,
    )


def primary_card(instance: VirtualMachineInstance) -> Interface | None:
    """The card on the pod network, or on what takes its place."""
    cards = {each.name: each for each in instance.spec.domain.devices.interfaces or ()}
    networks = instance.spec.networks or ()
    for network in networks:
        if (network.pod is not None or (network.multus is not None and network.multus.default)) and network.name in cards:
            return cards[network.name]
    return None


def published(service: Service, backends: Collection[MachineBackend], outside: Collection[str]) -> PublishedService:
    """Return the Service as the engine publishes it. `outside`: the host's addresses, for a load balancer."""
    spec = service.spec or ServiceSpec()
    kind = spec.type or "ClusterIP"
    usable = [each for each in backends if each.ready or (spec.publishNotReadyAddresses and not each.deleting)]
    ports = tuple(_published(port, usable, kind) for port in spec.ports or () if (port.protocol or "TCP") in ("TCP", "UDP"))
    own = tuple(dict.fromkeys(each for each in (spec.clusterIP or "", *(spec.clusterIPs or ())) if each and each != "None"))
    balanced = tuple(each for each in outside if family_of(each) in families(spec)) if is_balanced(spec) else ()
    return PublishedService(
        name=f"{service.metadata.namespace}/{service.metadata.name}",
        ports=ports,
        addresses=own,
        outside=tuple(dict.fromkeys((*balanced, *(spec.externalIPs or ())))),
        sources=tuple(spec.loadBalancerSourceRanges or ()) if kind == "LoadBalancer" else (),
        affinity_seconds=_affinity(spec),
        families=tuple(6 if family == "IPv6" else 4 for family in families(spec)),
    )


def is_balanced(spec: ServiceSpec) -> bool:
    """Return whether this host is the Service's load balancer. A class means another one."""
    return spec.type == "LoadBalancer" and not spec.loadBalancerClass


def _published(port: ServicePort, backends: Iterable[MachineBackend], kind: str) -> PublishedPort:
    protocol: Protocol = "udp" if port.protocol == "UDP" else "tcp"
    targets = [(each, number_at(port, each)) for each in backends]
    node = port.nodePort or 0 if kind in ("NodePort", "LoadBalancer") else 0
    return PublishedPort(
        protocol, port.port, tuple(ForwardTarget(each.owner, each.interface, number) for each, number in targets if number), node
    )


def number_at(port: ServicePort, backend: MachineBackend) -> int:
    """The number of a Service's port at a machine; 0 when its name is not known there."""
    wanted = port.targetPort if port.targetPort not in (None, "", 0) else port.port
    if isinstance(wanted, int):
        return wanted
    text = str(wanted)
    return int(text) if text.isdecimal() else backend.named.get((text, port.protocol or "TCP"), 0)


def _affinity(spec: ServiceSpec) -> int:
    if spec.sessionAffinity != "ClientIP":
        return 0
    config = spec.sessionAffinityConfig
    said = (config.get("clientIP") or {}).get("timeoutSeconds") if isinstance(config, dict) else None
    return int(said) if said else _DEFAULT_AFFINITY


def _resolved(spec: ServiceSpec, backend: MachineBackend) -> Resolved:
    numbers = ((port, number_at(port, backend)) for port in spec.ports or ())
    return tuple((port.name or "", port.protocol or "TCP", number) for port, number in numbers if number)


def _grouped(spec: ServiceSpec, backends: Iterable[MachineBackend]) -> dict[Resolved, list[MachineBackend]]:
    groups: dict[Resolved, list[MachineBackend]] = {}
    for each in sorted(backends, key=lambda each: each.name):
        groups.setdefault(_resolved(spec, each), []).append(each)
    return groups


def slices(service: Service, backends: Collection[MachineBackend]) -> Iterator[Data]:
    """EndpointSlices: one for each family and set of ports; an empty one where there is no machine."""
    spec = service.spec or ServiceSpec()
    for family in families(spec):
        yield from _slices(service, spec, family, [each for each in backends if each.address(family)])


def _slices(service: Service, spec: ServiceSpec, family: str, backends: Collection[MachineBackend]) -> Iterator[Data]:
    meta = service.metadata
    nobody: dict[Resolved, list[MachineBackend]] = {(): []}
    for resolved, group in (_grouped(spec, backends) or nobody).items():
        mark = hashlib.sha256(repr((family, resolved)).encode()).hexdigest()[:5]
        yield {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": meta.namespace,
                "name": f"{meta.name}-{mark}",
                "labels": {
                    "kubernetes.io/service-name": meta.name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
            },
            "addressType": family,
            "endpoints": [_endpoint(each, family, meta.namespace or "", spec) for each in group],
            "ports": [{"name": name, "protocol": protocol, "port": number} for name, protocol, number in resolved],
        }


def _endpoint(backend: MachineBackend, family: str, namespace: str, spec: ServiceSpec) -> Data:
    ready = backend.ready or bool(spec.publishNotReadyAddresses)
    found: Data = {
        "addresses": [backend.address(family)],
        "conditions": {"ready": ready, "serving": backend.ready, "terminating": backend.deleting},
        "targetRef": _reference(backend, namespace),
    }
    if backend.node:
        found["nodeName"] = backend.node
    if backend.hostname:
        found["hostname"] = backend.hostname
    return found


def _reference(backend: MachineBackend, namespace: str) -> Data:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "namespace": namespace,
        "name": backend.name,
        "uid": backend.uid,
    }


def endpoints(service: Service, backends: Collection[MachineBackend]) -> Data:
    """The Endpoints object, which has the Service's name, and addresses of its first family."""
    spec = service.spec or ServiceSpec()
    subsets = []
    family = families(spec)[0]
    backends = [each for each in backends if each.address(family)]
    for resolved, group in _grouped(spec, backends).items():
        ready = [each for each in group if each.ready or (spec.publishNotReadyAddresses and not each.deleting)]
        rest = [each for each in group if each not in ready]
        subset: Data = {}
        for key, listed in (("addresses", ready), ("notReadyAddresses", rest)):
            if listed:
                subset[key] = [_address(each, family, service.metadata.namespace or "") for each in listed]
        ports = [{"name": name, "protocol": protocol, "port": number} for name, protocol, number in resolved]
        # A name is needed only where there are several.
        subset["ports"] = [{key: value for key, value in port.items() if value != ""} for port in ports]
        subsets.append(subset)
    meta = service.metadata
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"namespace": meta.namespace, "name": meta.name}, "subsets": subsets}


def _address(backend: MachineBackend, family: str, namespace: str) -> Data:
    found: Data = {"ip": backend.address(family), "targetRef": _reference(backend, namespace)}
    if backend.node:
        found["nodeName"] = backend.node
    if backend.hostname:
        found["hostname"] = backend.hostname
    return found


def names(service: Service, backends: Collection[MachineBackend], domain: str) -> dict[str, tuple[str, ...]]:
    """Under which names the Service is found, and where they lead."""
    spec = service.spec or ServiceSpec()
    own = f"{service.metadata.name}.{service.metadata.namespace}.svc.{domain}"
    if spec.type == "ExternalName":
        return {}
    if spec.clusterIP != "None":
        addresses = tuple(dict.fromkeys(each for each in (spec.clusterIP or "", *(spec.clusterIPs or ())) if each))
        return {own: addresses} if addresses else {}
    usable = [each for each in backends if each.ready or (spec.publishNotReadyAddresses and not each.deleting)]
    of = {each.name: tuple(address for family in families(spec) if (address := each.address(family))) for each in usable}
    found = {own: tuple(address for each in usable for address in of[each.name])}
    for each in usable:
        if each.hostname:
            found[f"{each.hostname}.{own}"] = of[each.name]
    return found
