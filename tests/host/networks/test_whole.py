"""Whole servers with real machines: networks from the manifest to the guest, without root."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.client.client import Client
from paddock.client.errors import NotFound
from paddock.engine.networks.usermode import NO_MEETING
from tests.host.chaos.test_kills import VMIS, Host
from tests.host.guests import Registry

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
    """Whether an echo answers at a port of loopback."""
    with socket.create_connection(("127.0.0.1", port), 5) as talk:
        talk.sendall(b"over a node port")
        return talk.recv(100) == b"over a node port"


@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 96)
def test_without_root_the_api_says_the_same_and_what_does_not_work(host: Host, tiny_disk_image: str) -> None:
    async def script() -> None:
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
            for _ in range(50):
                try:
                    assert await asyncio.to_thread(echoes, node)
                    break
                except OSError:
                    await asyncio.sleep(0.1)
            else:
                pytest.fail("the node port does not answer")
            await client.request("DELETE", f"{VMIS}/web")

    asyncio.run(script())
