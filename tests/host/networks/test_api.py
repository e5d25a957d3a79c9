"""From a manifest to packets: Services and NetworkPolicies in an API server, their controllers, and the networks of a host."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.engine.networks.nics import NicSpec, Ports
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.networkpolicies import controller
from paddock.kubevirt.controllers.services import controller as services
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Child, Guest
from tests.host.networks.talking import tcp_ask, tcp_serve, udp_ask, udp_serve
from tests.kit.servers.apiharness import Harness

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
KIND = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
CORE = "/api/v1/namespaces/default"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


class Cluster:
    """An API server whose Services and policies are carried out on the host of a test."""

    def __init__(self, api: Harness, client: Client, world: World) -> None:
        self.api = api
        self.client = client
        self.world = world

    async def machine(self, name: str, ports: tuple[Ports, ...] = ()) -> Guest:
        """A machine: its object, and a guest behind its card. It is not ready yet."""
        listed = [{"port": port, "protocol": each.protocol.upper()} for each in ports for port in range(each.first, each.end + 1)]
        card: dict[str, Any] = {"name": "default", "masquerade": {}} | ({"ports": listed} if listed else {})
        spec = {
            "domain": {"resources": {"requests": {"memory": "64Mi"}}, "devices": {"interfaces": [card]}},
            "networks": [{"name": "default", "pod": {}}],
        }
        document = {"apiVersion": "kubevirt.io/v1", "kind": KIND.kind, "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}
        made = await self.client.create(KIND, document, "default")
        guest = await self.world.guest(NicSpec(made["metadata"]["uid"], "default", hostname=name, group="default", ports=ports))
        await self.state(name, guest, ready=False)
        return guest

    async def state(self, name: str, guest: Guest, *, ready: bool) -> None:
        """Write the state of a machine."""
        status = {
            "phase": "Running",
            "interfaces": [{"name": "default", "ipAddress": guest.plug.address}],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        }
        await self.client.patch(KIND, Key("default", name), merge_patch({"status": status}))

    async def service(self, name: str, **spec: Any) -> dict[str, Any]:
        """A Service."""
        made = await self.api.post(f"{CORE}/services", {"metadata": {"name": name}, "spec": spec})
        assert made.status == 201, made.data
        return dict(made.data["spec"])


@asynccontextmanager
async def cluster(world: World) -> AsyncIterator[Cluster]:
    """Server and controllers, until the end of the test."""
    async with Harness() as api, api.client() as client:
        program = ControllerManager(client, component="networks", instance="test", machinery=Machinery(chance=random.Random(1)))
        services.add(program, world.networks, "cluster.local")
        controller.add(program, world.networks)
        task = asyncio.create_task(program.run())
        try:
            yield Cluster(api, client, world)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def comes_to(wanted: set[str], namespace: str, address: str, port: int) -> None:
    """Six answers in a row are of this set, and all of it, within a while."""
    said: set[str] = set()
    for _ in range(30):
        said = {await Child(namespace, tcp_ask(address, port, 0.5, patience=0)).done() for _ in range(6)}
        if said == wanted:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{address}:{port} says {said}, not {wanted}")


@pytest.mark.spec("kubevirt", 94)
@played
async def test_ports_and_services_follow_what_the_api_says(world: World, /) -> None:
    async with cluster(world) as made:
        one, two = await made.machine("one", (Ports("tcp", 80), Ports("udp", 53))), await made.machine("two")
        client = await made.machine("client")
        servers = [guest.child(tcp_serve(port, said)) for guest, said in ((one, b"one"), (two, b"two")) for port in (80, 81)]
        servers += [guest.child(udp_serve(port, b"udp")) for guest in (one, two) for port in (53, 54)]
        # What the card lists is open, everything of a card that lists nothing; TCP and UDP.
        ports = [(one, 80, "one"), (one, 81, "refused"), (two, 80, "two"), (two, 81, "two")]
        for guest, port, said in ports:
            assert await client.child(tcp_ask(guest.plug.address, port, patience=1 if said != "refused" else 0)).done() == said
        for guest, port, said in ((one, 53, "udp?"), (one, 54, "silent"), (two, 54, "udp?")):
            assert await client.child(udp_ask(guest.plug.address, port, tries=2)).done() == said
        # A Service follows readiness, by its address, by its name, and at its node port.
        spec = await made.service("web", type="NodePort", selector={"kubevirt.io": "virt-launcher"}, ports=[{"port": 80}])
        udp = await made.service("dns", selector={"app": "one"}, ports=[{"port": 5353, "targetPort": 53, "protocol": "UDP"}])
        node = spec["ports"][0]["nodePort"]
        places = [
            (client.namespace, spec["clusterIP"], 80),
            (world.lab.outside, "198.51.100.2", node),
            (world.lab.host, "127.0.0.1", node),
        ]
        await made.state("one", one, ready=True)
        for place in places:
            await comes_to({"one"}, *place)
        assert await client.child(udp_ask(udp["clusterIP"], 5353)).done() == "udp?"
        await made.state("two", two, ready=True)
        for place in places:
            await comes_to({"one", "two"}, *place)
        await made.state("one", one, ready=False)
        for place in places:
            await comes_to({"two"}, *place)
        code, said = await client.calls("busybox", "nslookup", "web.default.svc.cluster.local", client.plug.dns[0])
        assert code == 0 and spec["clusterIP"] in said
        await made.state("two", two, ready=False)
        await comes_to({"refused"}, client.namespace, spec["clusterIP"], 80)
        for server in servers:
            server.end()


@played
async def test_a_policy_of_the_api_isolates_and_its_end_opens(world: World, /) -> None:
    async with cluster(world) as made:
        db, web, spy = await made.machine("db"), await made.machine("web"), await made.machine("spy")
        server = db.child(tcp_serve(5432, b"db"))
        for guest in (web, spy):
            assert await guest.child(tcp_ask(db.plug.address, 5432)).done() == "db"
        peer = {"podSelector": {"matchLabels": {"app": "web"}}}
        spec = {"podSelector": {"matchLabels": {"app": "db"}}, "ingress": [{"from": [peer], "ports": [{"port": 5432}]}]}
        answer = await made.api.post(POLICIES, {"metadata": {"name": "db"}, "spec": spec})
        assert answer.status == 201, answer.data
        await comes_to({"silent"}, spy.namespace, db.plug.address, 5432)
        await comes_to({"db"}, web.namespace, db.plug.address, 5432)
        await made.api.delete(f"{POLICIES}/db")
        await comes_to({"db"}, spy.namespace, db.plug.address, 5432)
        server.end()
