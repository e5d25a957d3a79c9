"""Faults of the host, of networks, and of what a namespace allows."""

import asyncio
from typing import Any

from paddock.base import reasons
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.why.faults import Fault, Inject

_GUEST, _MACHINE = "VirtualMachineInstance web", "VirtualMachine web"
_NODE = "/api/v1/nodes/host"


def made(*documents: dict[str, Any]) -> Inject:
    """Objects that are made one after the other."""

    async def inject(host: FakeHost) -> None:
        await host.make(*documents)

    return inject


def patched_node(document: dict[str, Any], then: dict[str, Any]) -> Inject:
    """A host that says something else, then a machine."""

    async def inject(host: FakeHost) -> None:
        reply = await host.api.merge(_NODE, document)
        assert reply.status == 200, reply.data
        await asyncio.sleep(1)
        await host.make(then)

    return inject


def on_network(config: str | None) -> Inject:
    """A machine on a network with this definition; None: there is none."""
    networks = [{"name": "lan", "multus": {"networkName": "lan"}}]
    guest = machine(networks=networks, domain={"devices": {"disks": [], "interfaces": [{"name": "lan", "bridge": {}}]}})

    async def inject(host: FakeHost) -> None:
        if config is not None:
            definition = {
                "apiVersion": "k8s.cni.cncf.io/v1",
                "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": "lan"},
                "spec": {"config": config},
            }
            path = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
            reply = await host.api.post(path, definition)
            assert reply.status == 201, reply.data
            await asyncio.sleep(1)
        await host.make(guest)

    return inject


async def _card(host: FakeHost) -> None:
    host.engine.networks.refused["default"] = "there is no bridge br9 on this host"
    await host.make(
        machine(networks=[{"name": "default", "pod": {}}], domain={"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}})
    )


async def _vlan(host: FakeHost) -> None:
    host.engine.networks.refused["default"] = "the host's bridge br1 does not keep VLANs apart"
    host.engine.networks.reasons["default"] = reasons.NETWORK_VLAN
    await host.make(
        machine(networks=[{"name": "default", "pod": {}}], domain={"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}})
    )


async def _quota(host: FakeHost) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"count/virtualmachineinstances.kubevirt.io": "0"}}}
    reply = await host.api.post("/api/v1/namespaces/default/resourcequotas", quota)
    assert reply.status == 201, reply.data
    await asyncio.sleep(2)
    await host.make(machine())


async def _storage_quota(host: FakeHost) -> None:
    quota = {"metadata": {"name": "disks"}, "spec": {"hard": {"count/datavolumes.cdi.kubevirt.io": "0"}}}
    reply = await host.api.post("/api/v1/namespaces/default/resourcequotas", quota)
    assert reply.status == 201, reply.data
    await asyncio.sleep(2)
    template = {
        "metadata": {"name": "web-root"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
    await host.make(machine(volumes=[{"name": "root", "dataVolume": {"name": "web-root"}}], templates=[template]))


def _memory(amount: str) -> dict[str, Any]:
    return machine(domain={"memory": {"guest": amount}, "devices": {}})


_AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


async def _neighbours(host: FakeHost) -> None:
    other = machine("db")
    other["spec"]["template"]["metadata"] = {"labels": {"app": "db"}}
    await host.make(other)
    await host.running("db")
    await host.make(machine(affinity=_AFFINITY))


async def _no_backend(host: FakeHost) -> None:
    await host.make(machine())
    await host.running()
    spec = {"selector": {"app": "shop"}, "ports": [{"port": 80}]}
    reply = await host.api.post("/api/v1/namespaces/default/services", {"metadata": {"name": "shop"}, "spec": spec})
    assert reply.status == 201, reply.data


async def _port(host: FakeHost) -> None:
    guest = machine()
    guest["spec"]["template"]["metadata"] = {"labels": {"app": "shop"}}
    await host.make(guest)
    await host.running()
    host.engine.networks.problems["default/shop"] = ("192.0.2.10:80: Address already in use",)
    spec = {"type": "LoadBalancer", "selector": {"app": "shop"}, "ports": [{"port": 80}]}
    reply = await host.api.post("/api/v1/namespaces/default/services", {"metadata": {"name": "shop"}, "spec": spec})
    assert reply.status == 201, reply.data


HOST_FAULTS: tuple[Fault, ...] = (
    Fault("no memory on the host", made(_memory("500Gi")), "no-memory", _GUEST),
    Fault(
        "no huge pages",
        made(machine(domain={"memory": {"guest": "64Mi", "hugepages": {"pageSize": "2Mi"}}, "devices": {}})),
        "no-hugepages",
        _GUEST,
    ),
    Fault(
        "no CPUs to give away",
        made(machine(domain={"cpu": {"cores": 8, "dedicatedCpuPlacement": True}, "memory": {"guest": "64Mi"}, "devices": {}})),
        "no-cpus",
        _GUEST,
    ),
    Fault("a node selector that no host has", made(machine(nodeSelector={"disk": "fast"})), "node-selector", _GUEST),
    Fault(
        "a tainted host",
        patched_node({"spec": {"taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]}}, machine()),
        "host-tainted",
        _GUEST,
    ),
    Fault("a cordoned host", patched_node({"spec": {"unschedulable": True}}, machine()), "host-cordoned", _GUEST),
    Fault("an unwanted neighbour", _neighbours, "affinity", _GUEST),
    Fault("the wrong architecture", made(machine(architecture="arm64")), "architecture-missing", _GUEST),
    Fault(
        "an unknown machine type",
        made(machine(domain={"machine": {"type": "pc-q35-99.0"}, "memory": {"guest": "64Mi"}, "devices": {}})),
        "hardware-unknown",
        _GUEST,
    ),
    Fault("no such priority class", made(machine(priorityClassName="gold")), "priorityclass-missing", "PriorityClass gold"),
    Fault("no such network", on_network(None), "network-missing", "NetworkAttachmentDefinition lan"),
    Fault("a network definition that is no JSON", on_network("{type: bridge"), "network-malformed", _GUEST),
    Fault("a network of an unknown type", on_network('{"type": "ovs", "cniVersion": "0.3.1"}'), "network-type", _GUEST),
    Fault("a VLAN that there is not", on_network('{"type": "bridge", "bridge": "br1", "vlan": 5000}'), "network-vlan", _GUEST),
    Fault("a bridge without VLANs", _vlan, "network-vlan", _GUEST),
    Fault("no bridge on the host", _card, "network-card-failed", _GUEST),
    Fault("no quota for machines", _quota, "quota-exceeded", _MACHINE),
    Fault("no quota for disks", _storage_quota, "quota-exceeded", _MACHINE),
    Fault("a Service that leads nowhere", _no_backend, "service-without-machine", "Service shop", ask="svc/shop", state="notice"),
    Fault("the port is taken", _port, "port-taken", "Service shop", ask="svc/shop"),
)
