"""Machines and the networks that they name: definitions that are shared, made and taken away."""

import asyncio

import orjson
import pytest

from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Data, Vitistack, machine, network

CARD = [{"name": "eth0", "networkName": "prod"}]


async def plugin(host: Vitistack, name: str = "prod") -> Data:
    """Return the plugin in the definition of a network."""
    return dict(orjson.loads((await host.seen("NetworkAttachmentDefinition", name))["spec"]["config"])["plugins"][0])


@pytest.mark.spec("vitistack", 32)
@played
async def test_machines_share_a_definition_that_goes_with_the_last(host: Vitistack, /) -> None:
    await host.make(network(vlan=100), machine("a", networks=CARD), machine("b", networks=CARD))
    await host.up("b")
    assert await host.names("NetworkAttachmentDefinition") == ["prod"]
    made = (await host.seen("NetworkAttachmentDefinition", "prod"))["metadata"]["uid"]
    status = (await host.seen("NetworkConfiguration", "prod"))["status"]
    assert (status["ready"], status["connectedMachines"]) == (True, ["default/a", "default/b"])
    addresses = {(await host.machine(name))["status"]["ipAddresses"][0] for name in "ab"}
    assert set(status["allocatedIPs"]) == addresses
    await host.drop("Machine", "a")
    await asyncio.sleep(60)
    assert (await host.seen("NetworkAttachmentDefinition", "prod"))["metadata"]["uid"] == made
    assert (await host.seen("NetworkConfiguration", "prod"))["status"]["connectedMachines"] == ["default/b"]
    await host.drop("Machine", "b")
    await asyncio.sleep(60)
    assert await host.names("NetworkAttachmentDefinition") == []
    status = (await host.seen("NetworkConfiguration", "prod"))["status"]
    assert status == {"ready": False}


@played
async def test_a_definition_stays_while_another_virtual_machine_uses_it(host: Vitistack, /) -> None:
    await host.make(network(), machine(networks=CARD))
    await host.up()
    networks = [{"name": "x", "multus": {"networkName": "prod"}}]
    devices = {"interfaces": [{"name": "x", "bridge": {}}]}
    template = {"spec": {"domain": {"devices": devices, "memory": {"guest": "64Mi"}}, "networks": networks}}
    spec = {"runStrategy": "Halted", "template": template}
    await host.make({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "other"}, "spec": spec})
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.machine() == {}
    assert await host.names("NetworkAttachmentDefinition") == ["prod"]
    await host.drop("VirtualMachine", "other")
    await asyncio.sleep(120)
    assert await host.names("NetworkAttachmentDefinition") == []


@pytest.mark.spec("vitistack", 33)
@played
async def test_a_definition_of_somebody_else_is_used_as_it_is(host: Vitistack, /) -> None:
    config = '{"cniVersion":"0.3.1","name":"mine","type":"bridge","bridge":"br9"}'
    body = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "prod"}}
    await host.make({**body, "spec": {"config": config}}, network(vlan=7), machine(networks=CARD))
    await host.up()
    revision = (await host.seen("NetworkAttachmentDefinition", "prod"))["metadata"]["resourceVersion"]
    assert (await host.condition("NetworkReady"))[0] == "True"
    await host.merge("NetworkConfiguration", "prod", {"spec": {"vlan": 8}})
    await asyncio.sleep(60)
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.machine() == {}
    found = await host.seen("NetworkAttachmentDefinition", "prod")
    assert (found["metadata"]["resourceVersion"], found["spec"]["config"]) == (revision, config)


@played
async def test_a_network_that_changes_is_written_anew_and_its_machines_are_told(host: Vitistack, /) -> None:
    await host.make(network(vlan=100), machine(networks=CARD))
    await host.up()
    await host.merge("NetworkConfiguration", "prod", {"spec": {"vlan": 200, "mtu": 9000}})
    await asyncio.sleep(60)
    found = await plugin(host)
    assert (found["vlan"], found["mtu"]) == (200, 9000)
    assert (await host.events("web", "Machine")).count("RestartRequired") == 1
    # what others write into it is set right, too
    await host.merge("NetworkAttachmentDefinition", "prod", {"spec": {"config": "{}"}})
    await asyncio.sleep(60)
    assert (await plugin(host))["vlan"] == 200


@played
async def test_networks_come_and_go_with_the_cards(host: Vitistack, /) -> None:
    await host.make(network("one"), network("two"), machine(networks=[{"name": "eth0", "networkName": "one"}]))
    await host.up()
    assert await host.names("NetworkAttachmentDefinition") == ["one"]
    await host.merge("Machine", "web", {"spec": {"networks": [{"name": "eth0", "networkName": "two"}]}})
    await asyncio.sleep(60)
    assert await host.names("NetworkAttachmentDefinition") == ["two"]
    assert "connectedMachines" not in (await host.seen("NetworkConfiguration", "one"))["status"]
    assert (await host.seen("NetworkConfiguration", "two"))["status"]["connectedMachines"] == ["default/web"]


@played
async def test_many_machines_of_a_network_are_few_writes_of_it(host: Vitistack, /) -> None:
    await host.make(network())
    path = host.place("NetworkConfiguration", "vitistack.io/v1alpha1")
    async with host.api.watch(f"{path}?watch=true") as events:
        for number in range(30):
            await host.make(machine(f"m{number}", networks=CARD))
        await asyncio.sleep(60)
        count = 0
        while not await events.quiet():
            await events.next()
            count += 1
    assert count <= 8
    assert len((await host.seen("NetworkConfiguration", "prod"))["status"]["connectedMachines"]) == 30
