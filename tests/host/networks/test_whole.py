"""Whole servers with real machines: networks from the manifest to the guest, with root and without."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.base.images.build import tiny
from paddock.engine.networks.usermode import NO_MEETING
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from tests.coroutines import played_by, run_by
from tests.host.chaos.test_kills import VMIS, VMS, Host
from tests.host.guests import Registry, _RegistryHandler, serving
from tests.host.networks.namespaces import Child, Lab, in_host, run
from tests.host.networks.talking import web_ask

DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
Data = dict[str, Any]


@pytest.fixture
def host(work: Path, registry: Registry) -> Iterator[Host]:
    """A server in user mode."""
    made = Host(work, registry.address)
    made.start()
    yield made
    made.end()


@asynccontextmanager
async def watching(host: Host) -> AsyncIterator[Client]:
    """A client, within a time."""
    async with asyncio.timeout(240), host.client() as client:
        yield client


async def get(client: Client, path: str) -> Data:
    """An object as it is now."""
    return dict(orjson.loads(await client.request("GET", path)))


async def make(client: Client, path: str, body: Data) -> Data:
    """A new object."""
    return dict(orjson.loads(await client.request("POST", path, body=orjson.dumps(body))))


async def until(client: Client, path: str, holds: Callable[[Data], object]) -> Data:
    """The object, as soon as something holds of it."""
    while True:
        try:
            found = await get(client, path)
            if holds(found):
                return found
        except NotFound:
            found = {}
        await asyncio.sleep(0.1)


def condition(found: Data, kind: str) -> Data:
    """A condition of an object."""
    return next((dict(each) for each in found.get("status", {}).get("conditions") or () if each["type"] == kind), {})


def instance(name: str, image: str, card: Data, **network: Any) -> Data:
    """A machine that boots the tiny guest from a containerDisk."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "domain": {
                "memory": {"guest": "192Mi"},
                "devices": {"interfaces": [{"name": "default", **card}], "disks": [{"name": "root", "disk": {"bus": "virtio"}}]},
            },
            "networks": [{"name": "default", "pod": network}],
            "volumes": [{"name": "root", "containerDisk": {"image": image}}],
            "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
        },
    }


def echoes(port: int) -> bool:
    """Return whether an echo answers at a port of loopback."""
    with socket.create_connection(("127.0.0.1", port), 5) as talk:
        talk.sendall(b"over a node port")
        return talk.recv(100) == b"over a node port"


@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 96)
@run_by(asyncio.run)
async def test_without_root_the_api_says_the_same_and_what_does_not_work(host: Host, tiny_disk_image: str) -> None:
    async with watching(host) as client:
        await make(client, VMIS, instance("web", tiny_disk_image, {"masquerade": {}}))
        ports = [{"port": 7007, "targetPort": 7}]
        spec = {"type": "NodePort", "selector": {"app": "web"}, "ports": ports}
        made = await make(client, SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
        found = await until(client, f"{VMIS}/web", lambda seen: condition(seen, "Ready").get("status") == "True")
        (card,) = found["status"]["interfaces"]
        assert card["ipAddress"].startswith("127.64.") and card["ipAddresses"] == [card["ipAddress"]]
        assert card["mac"].startswith("02:") and (card["name"], card["linkState"]) == ("default", "up")
        said = condition(found, "NetworkLimited")
        assert said["status"] == "True" and NO_MEETING in said["message"]
        slices = await until(client, SLICES, lambda seen: any(each["metadata"]["name"].startswith("web-") for each in seen["items"]))
        (own,) = [each for each in slices["items"] if each["metadata"]["name"].startswith("web-")]
        assert own["endpoints"][0]["addresses"] == [card["ipAddress"]] and own["ports"][0]["port"] == 7
        node = made["spec"]["ports"][0]["nodePort"]
        for _ in range(600):
            # QEMU takes connections before the guest does.
            with contextlib.suppress(OSError):
                if await asyncio.to_thread(echoes, node):
                    break
            await asyncio.sleep(0.1)
        else:
            pytest.fail("the node port does not answer")
        await client.request("DELETE", f"{VMIS}/web")


class RoutedHost(Host):
    """A server with a pod network, in the namespace that this process is in."""

    network = "routed"


async def answers(lab: Lab, address: str) -> bool:
    """Return whether a guest's web server answers the host."""
    return "HTTP" in await Child(lab.host, web_ask(address)).done()


async def play(client: Client, lab: Lab, image: str) -> None:
    """Machines on three kinds of networks; then one cable is pulled, and put back."""
    config = {"cniVersion": "0.3.1", "name": "lan", "type": "bridge", "bridge": "br1", "isGateway": True}
    ipam = {"type": "host-local", "ranges": [[{"subnet": "172.20.0.0/24"}], [{"subnet": "fd00:20::/64"}]]}
    spec = {"config": orjson.dumps({**config, "ipam": ipam}).decode()}
    definition = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "lan"}, "spec": spec}
    await make(client, DEFINITIONS, definition)
    # Its guests cannot be told of a router that is neither this host nor on their link.
    far = {**config, "isGateway": False, "ipam": {**ipam, "ranges": [[{"subnet": "fd00:30::/64", "gateway": "fd00:30::1"}]]}}
    await make(client, DEFINITIONS, {**definition, "metadata": {"name": "far"}, "spec": {"config": orjson.dumps(far).decode()}})
    template = instance("web", image, {"masquerade": {}}, vmNetworkCIDR="192.168.55.0/24")
    template["spec"]["domain"]["devices"]["interfaces"].append({"name": "lan", "bridge": {}})
    template["spec"]["networks"].append({"name": "lan", "multus": {"networkName": "lan"}})
    machine = {"runStrategy": "Always", "template": {"metadata": template["metadata"], "spec": template["spec"]}}
    await make(client, VMS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": machine})
    await make(client, VMIS, instance("bound", image, {"binding": {"name": "l2bridge"}}))
    # It may stand in a list of bindings that the host does not have.
    await make(client, VMIS, instance("wrong", image, {"binding": {"name": "telepathy"}}))
    wrong = await until(client, f"{VMIS}/wrong", lambda found: condition(found, "PodScheduled").get("status") == "False")
    assert "the network binding telepathy is not known here" in condition(wrong, "PodScheduled")["message"]
    lost = instance("lost", image, {"masquerade": {}})
    lost["spec"]["domain"]["devices"]["interfaces"].append({"name": "far", "bridge": {}})
    lost["spec"]["networks"].append({"name": "far", "multus": {"networkName": "far"}})
    await make(client, VMIS, lost)
    refused = await until(client, f"{VMIS}/lost", lambda found: condition(found, "PodScheduled").get("status") == "False")
    assert "default/far cannot be used: guests cannot learn the gateway fd00:30::1" in condition(refused, "PodScheduled")["message"]
    seen = await until(client, f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True")
    cards = {each["name"]: each for each in seen["status"]["interfaces"]}
    assert cards["lan"]["ipAddress"].startswith("172.20.0.") and cards["lan"]["linkState"] == "up"
    assert cards["lan"]["ipAddresses"][0] == cards["lan"]["ipAddress"] and cards["lan"]["ipAddresses"][1].startswith("fd00:20::")
    assert "192.168.55.2" in run("nft", "list", "ruleset"), "packets of another address would be dropped"
    assert await answers(lab, cards["default"]["ipAddress"]) and await answers(lab, cards["lan"]["ipAddress"])
    bound = await until(client, f"{VMIS}/bound", lambda found: condition(found, "Ready").get("status") == "True")
    assert await answers(lab, bound["status"]["interfaces"][0]["ipAddress"])
    for state, reached in (("down", False), ("up", True)):
        body = orjson.dumps([{"op": "add", "path": "/spec/template/spec/domain/devices/interfaces/1/state", "value": state}])
        await client.request("PATCH", f"{VMS}/web", body=body, media="application/json-patch+json")
        await until(client, f"{VMIS}/web", lambda found, state=state: linked(found, "lan") == state)  # type: ignore[misc]
        while await answers(lab, cards["lan"]["ipAddress"]) != reached:
            await asyncio.sleep(0.2)
    assert (await get(client, f"{VMIS}/web"))["metadata"]["uid"] == seen["metadata"]["uid"], "it was not started anew"


@pytest.fixture
def lab(work: Path) -> Iterator[Lab]:
    """A host with networks of its own."""
    made = Lab(work / "lab")
    yield made
    made.close()


@pytest.mark.needs("qemu", "netns", "tun", "nft", "ipv6")
@pytest.mark.spec("kubevirt", 95)
@pytest.mark.spec("kubevirt", 250)
@pytest.mark.spec("kubevirt", 253)
@played_by(in_host, "lab")
async def test_networks_of_every_kind_and_a_cable_that_is_pulled(lab: Lab, work: Path, tiny_guest: tiny.TinyImage) -> None:
    folder = work / "registry"
    folder.mkdir()

    shelf = Registry(folder)
    with serving(type("Handler", (_RegistryHandler,), {"registry": shelf})) as address:
        shelf.address = address
        image = shelf.push("disks/tiny:1", {"disk/tiny.qcow2": tiny_guest.disk})
        host = RoutedHost(work, address)
        host.start()
        try:
            async with watching(host) as client:
                await play(client, lab, image)
        finally:
            host.end()


def linked(found: Data, name: str) -> str:
    """The link of a card."""
    return next((str(each.get("linkState")) for each in found["status"].get("interfaces") or () if each["name"] == name), "")
