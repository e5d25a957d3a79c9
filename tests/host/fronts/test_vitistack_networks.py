"""Networks of Vitistack's Machines with real bridges: definitions that are shared, made, left alone and taken away."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.coroutines import played_by
from tests.host.fronts.life import FrontHost
from tests.host.fronts.test_orders import Watch, removed
from tests.host.fronts.test_sources import CLAIMS
from tests.host.fronts.test_vitistack_changes import MACHINES, ROOT
from tests.host.networks.namespaces import Lab, there
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, condition

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")

GROUP = "/apis/vitistack.io/v1alpha1/namespaces/default"
NETWORKS = f"{GROUP}/networkconfigurations"
DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions"


def on_a_host(work: Path, script: Callable[[Talk], Awaitable[None]]) -> None:
    """Run a script with a host that has a network namespace of its own."""
    lab = Lab(work / "lab")

    async def inside() -> None:
        host = FrontHost(work / "host", "127.0.0.1:1")
        host.root.mkdir()
        host.start()
        try:
            async with asyncio.timeout(200), host.client() as client:
                await script(Talk(host, client))
        finally:
            host.end()

    try:
        there(lab.host, inside)
    finally:
        lab.close()


async def network(talk: Talk, name: str = "prod", **spec: object) -> None:
    """A NetworkConfiguration."""
    document = {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": name}}
    await talk.make(NETWORKS, {**document, "spec": {"bridge": "br0", **spec}})


async def machine(talk: Talk, name: str, *networks: str) -> Data:
    """A Machine with a card on each network; its run."""
    cards = [{"name": f"eth{number}", "networkName": each} for number, each in enumerate(networks)]
    spec = {"resources": {"memory": {"size": "64Mi"}}, "disks": [ROOT], "networks": cards}
    await talk.make(MACHINES, {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": name}, "spec": spec})
    return await talk.running(name)


async def drop(talk: Talk, name: str) -> None:
    """Delete a Machine, and wait until it is gone."""
    await talk.client.request("DELETE", f"{MACHINES}/{name}")
    await talk.until(f"{MACHINES}/{name}", lambda found: not found, "it is gone")


async def plugin(talk: Talk, name: str) -> Data:
    """Return the plugin in the definition of a network."""
    config = json.loads((await talk.get(f"{DEFINITIONS}/{name}"))["spec"]["config"])
    assert config["cniVersion"] == "1.0.0"
    return dict(config["plugins"][0])


def connected(*names: str) -> Callable[[Data], bool]:
    """Tell whether a network has these machines."""
    return lambda found: found.get("status", {}).get("connectedMachines", []) == [f"default/{name}" for name in names]


@pytest.mark.spec("vitistack", 31, 32, 37, 69)
@played_by(on_a_host, "work")
async def test_machines_share_a_definition_that_goes_with_the_last(talk: Talk, /) -> None:
    await network(talk, vlan=100, mtu=1400)
    await network(talk, "plain", bridge="br1")
    first = await machine(talk, "a", "prod", "plain")
    await machine(talk, "b", "prod")
    tagged, plain = await plugin(talk, "prod"), await plugin(talk, "plain")
    assert (tagged["bridge"], tagged["vlan"], tagged["mtu"]) == ("br0", 100, 1400)
    assert plain["bridge"] == "br1" and not {"vlan", "mtu"} & plain.keys()
    addresses = [each["mac"] for each in first["status"]["interfaces"]]
    assert all(each.startswith("02:12:") for each in addresses) and len(set(addresses)) == 2
    await talk.until(f"{NETWORKS}/prod", connected("a", "b"), "both are connected")
    made = (await talk.get(f"{DEFINITIONS}/prod"))["metadata"]["uid"]
    await drop(talk, "a")
    await talk.until(f"{NETWORKS}/prod", connected("b"), "one is connected")
    assert (await talk.get(f"{DEFINITIONS}/prod"))["metadata"]["uid"] == made
    await talk.until(f"{DEFINITIONS}/plain", lambda found: not found, "nobody has a card on the other one")
    kinds = {"front": MACHINES, "machine": VMS, "claim": CLAIMS, "definition": DEFINITIONS}
    watches = {kind: Watch(talk, path) for kind, path in kinds.items()}
    await asyncio.sleep(0.5)
    assert (await talk.get(f"{MACHINES}/b"))["metadata"]["finalizers"] == ["machine.vitistack.io/cleanup"]
    await drop(talk, "b")
    assert await removed(watches) == ["machine b", "claim b-root", "definition prod", "front b"]
    assert connected()(await talk.get(f"{NETWORKS}/prod")) and talk.host.qemus() == {}


@pytest.mark.spec("vitistack", 33)
@played_by(on_a_host, "work")
async def test_a_definition_of_somebody_else_is_used_as_it_is(talk: Talk, /) -> None:
    config = '{"cniVersion":"0.3.1","name":"mine","type":"bridge","bridge":"br9"}'
    body = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "prod"}}
    made = await talk.make(DEFINITIONS, {**body, "spec": {"config": config}})
    await network(talk, vlan=7)
    await machine(talk, "web", "prod")
    await talk.until(f"{MACHINES}/web", lambda found: condition(found, "NetworkReady").get("status") == "True", "it is connected")
    await talk.change(f"{NETWORKS}/prod", {"spec": {"vlan": 8}})
    await asyncio.sleep(3)
    assert await talk.get(f"{VMIS}/web")
    await drop(talk, "web")
    await asyncio.sleep(3)
    found = await talk.get(f"{DEFINITIONS}/prod")
    assert (found["metadata"]["resourceVersion"], found["spec"]["config"]) == (made["metadata"]["resourceVersion"], config)
