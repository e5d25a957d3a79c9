"""Machines in Vitistack's own form: their class, their documents and their status."""

import asyncio
import base64
from typing import Any

import pytest

from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import GROUP, Data, Vitistack, network

CLASSES = f"/apis/{GROUP}/machineclasses"


def own(**spec: Any) -> Data:
    """A Machine of 64Mi in Vitistack's own form."""
    spec = {"provider": "kubevirt", "memory": 64 << 20, "cpu": {"cores": 1}, **spec}
    return {"apiVersion": GROUP, "kind": "Machine", "metadata": {"name": "web"}, "spec": spec}


def machine_class(name: str = "tall", **more: Any) -> Data:
    spec = {"cpu": {"cores": 1, "sockets": 1}, "memory": {"quantity": "128Mi"}, **more}
    return {"apiVersion": GROUP, "kind": "MachineClass", "metadata": {"name": name}, "spec": spec}


@pytest.mark.spec("vitistack", 87)
@played
async def test_a_machine_waits_for_its_class(host: Vitistack, /) -> None:
    await host.make(own(machineClass="tall", memory=0))
    await asyncio.sleep(30)
    assert await host.phase() == "Pending"
    status, reason, message = await host.condition("Ready")
    assert (status, reason) == ("False", "MachineClassNotFound") and 'MachineClass "tall" not found' in message
    assert (await host.events("web", "Machine")).count("MachineClassNotFound") == 1
    for body, why in (
        (machine_class(enabled=False), "is not enabled"),
        (machine_class(machineProviders=["proxmox"]), "is for the providers proxmox"),
    ):
        assert (await host.api.post(CLASSES, body)).status == 201
        await asyncio.sleep(10)
        assert why in (await host.condition("Ready"))[2]
        assert (await host.api.delete(f"{CLASSES}/tall")).status == 200
    assert (await host.api.post(CLASSES, machine_class())).status == 201
    await host.up()
    assert (await host.vm())["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "128Mi"}
    # A class is no template: a change of it reaches the machines that have it.
    assert (await host.api.merge(f"{CLASSES}/tall", {"spec": {"memory": {"quantity": "192Mi"}}})).status == 200
    await asyncio.sleep(10)
    assert (await host.vm())["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "192Mi"}


@pytest.mark.spec("vitistack", 90)
@played
async def test_documents_follow_their_secrets_and_config_maps(host: Vitistack, /) -> None:
    texts = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts"}, "data": {"networkdata": "version: 2"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"mine": "#cloud-config\n# one"}}
    given = {"userDataSecretRef": {"name": "login", "key": "mine"}, "networkDataConfigMapRef": {"name": "texts"}}
    await host.make(own(cloudInit=given))
    await asyncio.sleep(20)
    assert (await host.condition("Ready"))[1] == "SecretNotFound"
    await host.make(secret)
    await asyncio.sleep(10)
    assert (await host.condition("Ready"))[1] == "ConfigMapNotFound"
    await host.make(texts)
    await host.up()

    async def copied() -> dict[str, str]:
        data = (await host.seen("Secret", "web-cloudinit"))["data"]
        return {key: base64.b64decode(text).decode() for key, text in data.items()}

    assert await copied() == {"userdata": "#cloud-config\n# one", "networkdata": "version: 2"}
    await host.merge("Secret", "login", {"stringData": {"mine": "#cloud-config\n# two"}})
    await host.merge("ConfigMap", "texts", {"data": {"networkdata": "version: 1"}})
    await asyncio.sleep(5)
    assert await copied() == {"userdata": "#cloud-config\n# two", "networkdata": "version: 1"}


@pytest.mark.spec("vitistack", 89)
@played
async def test_the_status_is_that_of_the_own_form(host: Vitistack, /) -> None:
    await host.make(network("lan"), own(network={"networkNamespaceName": "lan"}, disks=[{"name": "sys", "sizeGB": 1, "boot": True}]))
    status = (await host.up(seconds=60))["status"]
    assert (status["state"], status["provider"], status["message"]) == ("Running", "kubevirt", "the machine runs")
    (disk,) = status["disks"]
    assert (disk["name"], disk["pvcName"]) == ("sys", "web-sys") and disk["size"] >= 1 << 30 and disk["device"].startswith("/dev/")
    (card,) = status["networkInterfaces"]
    assert card["name"] == "eth0" and card["macAddress"].startswith("02:12:")
    assert (await host.seen("NetworkConfiguration", "lan"))["status"]["connectedMachines"] == ["default/web"]
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/power-state": "stopped"}}})
    await asyncio.sleep(90)
    status = (await host.machine())["status"]
    assert (status["phase"], status["state"]) == ("Stopped", "Stopped") and not {"disks", "networkInterfaces"} & status.keys()
    await host.drop("Machine", "web")
    await asyncio.sleep(60)
    assert await host.machine() == {} and await host.names("PersistentVolumeClaim") == []
    assert "connectedMachines" not in (await host.seen("NetworkConfiguration", "lan"))["status"]
