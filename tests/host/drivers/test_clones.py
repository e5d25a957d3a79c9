"""VirtRigaud's machines on this host, with real guests: from a disk that is there, cloned while it runs, and adopted."""

from typing import Any

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.runs.conftest import PROMPT, Console, Data, Talk, machine, phase

pytestmark = pytest.mark.needs("qemu")
GROUP = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default"
PLURALS = {"Provider": "providers", "VMClass": "vmclasses", "VirtualMachine": "virtualmachines", "VMClone": "vmclones"}
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/default"
DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
RUNTIME = {"image": "none:1"}
DOCUMENT = {"cloudInit": {"inline": "#cloud-config\nhostname: source\n"}}


async def make(talk: Talk, kind: str, name: str, spec: Data) -> None:
    body = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    await talk.make(f"{GROUP}/{PLURALS[kind]}", body)


def path(kind: str, name: str) -> str:
    return f"{GROUP}/{PLURALS[kind]}/{name}"


def ready(found: Data) -> Any:
    """Return whether an object is as its spec says."""
    conditions = found.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def prompt(console: Console) -> None:
    await console.write(b"\r")
    await console.until(PROMPT, 120)


async def imported(talk: Talk, url: str) -> None:
    """A machine whose disk was there before."""
    await make(
        talk, "Provider", "here", {"type": "qemu", "endpoint": "qemu:///system", "credentialSecretRef": {"name": "n"}, "runtime": RUNTIME}
    )
    await make(talk, "VMClass", "small", {"cpu": 1, "memory": "128Mi"})
    source = {"source": {"http": {"url": url}}, "storage": {"resources": {"requests": {"storage": "192Mi"}}}}
    await talk.make(DISKS, {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "old"}, "spec": source})
    await talk.until(f"{DISKS}/old", lambda found: phase(found) == "Succeeded", "the disk is filled")
    disk = {"diskID": "old", "source": "migration", "migrationRef": {"name": "past"}}
    spec = {"providerRef": {"name": "here"}, "classRef": {"name": "small"}, "importedDisk": disk, "userData": DOCUMENT}
    await make(talk, "VirtualMachine", "web", spec)
    found = await talk.until(path("VirtualMachine", "web"), ready, "the machine runs")
    assert found["spec"]["importedDisk"] == {**disk, "format": "qcow2"} and found["status"]["phase"] == "Running"


async def adopted(talk: Talk) -> None:
    """A machine that was made by hand on the server is one of the Provider's, and changes its power for it."""
    await talk.make(f"{KUBEVIRT}/virtualmachines", machine("alien", strategy="Halted"))
    annotations = {"virtrigaud.io/adopt-vms": "true", "virtrigaud.io/adopt-filter": '{"namePattern": "^(alien|twin|web)$"}'}
    await talk.change(path("Provider", "here"), {"metadata": {"annotations": annotations}})
    found = await talk.until(path("VirtualMachine", "alien"), ready, "it is adopted")
    assert found["spec"]["powerState"] == "Off" and found["metadata"]["labels"] == {"virtrigaud.io/adopted": "true"}
    status = (await talk.until(path("Provider", "here"), lambda found: found.get("status", {}).get("adoption")))["status"]["adoption"]
    assert (status["discoveredVMs"], status["adoptedVMs"]) == (1, 1)
    await talk.change(path("VirtualMachine", "alien"), {"spec": {"powerState": "On"}})
    await talk.running("alien")
    await talk.until(path("VirtualMachine", "alien"), lambda found: ready(found) and found["status"]["powerState"] == "On", "it is on")


@pytest.mark.spec("virtrigaud", 51, 73, 80, 82)
@played
async def test_a_disk_that_is_there_boots_and_is_cloned_while_it_runs(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    await imported(talk, web.put(tiny_guest.disk))
    async with talk.console("web") as console:
        await prompt(console)
        before = (await console.shell("cat /sys/class/net/eth0/address")).strip()
        clone = {"source": {"vmRef": {"name": "web"}}, "target": {"name": "twin"}}
        await make(talk, "VMClone", "copy", {**clone, "options": {"powerOn": True}, "customization": {"hostname": "other"}})
        await talk.until(path("VMClone", "copy"), lambda found: phase(found) == "Ready", "it is cloned", 120)
        async with talk.console("twin") as twin:
            await prompt(twin)
            assert (await twin.shell("hostname")).strip() == "other"
            assert (await twin.shell("cat /sys/class/net/eth0/address")).strip() != before
        # The source ran all the time.
        assert (await console.shell("hostname")).strip() == "source"
    await adopted(talk)
    for kind, name in (("VMClone", "copy"), ("VirtualMachine", "web")):
        await talk.client.request("DELETE", path(kind, name))
        await talk.until(path(kind, name), lambda found: not found, "it goes")
    assert ready(await talk.get(path("VirtualMachine", "twin"))) and len(talk.host.qemus()) == 2
