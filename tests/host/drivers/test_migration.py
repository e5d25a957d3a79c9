"""A machine moves to another Provider with both of its disks, on the real engine, and its guest finds what it had written."""

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.runs.conftest import PROMPT, Data, Talk, condition, phase

pytestmark = pytest.mark.needs("qemu")
API = "infra.virtrigaud.io/v1beta1"
BASE = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default"
# A sector behind everything that the image has.
PLACE = 2_000_000


def document(kind: str, name: str, **spec: object) -> Data:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def provider(name: str) -> Data:
    return document(
        "Provider", name, type="qemu", endpoint="qemu:///system", credentialSecretRef={"name": "none"}, runtime={"image": "none:1"}
    )


def runs(found: Data) -> bool:
    return phase(found) == "Running" and condition(found, "Ready").get("status") == "True"


async def marked(talk: Talk, name: str, command: str) -> str:
    """What a command in the guest says."""
    async with talk.console(name) as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        return await console.shell(command)


def read(disk: str) -> str:
    return f"dd if=/dev/{disk} bs=512 skip={PLACE} count=1 2>/dev/null | head -c 9"


def write(mark: str, disk: str) -> str:
    return f"echo {mark} | dd of=/dev/{disk} bs=512 seek={PLACE} conv=notrunc"


async def moves(talk: Talk, image: str, **spec: object) -> Data:
    """Make a machine that writes to both of its disks, and move it; its successor reads what it wrote. Returns the migration."""
    for kind, body in (
        ("providers", provider("here")),
        ("providers", provider("there")),
        ("vmclasses", document("VMClass", "small", cpu=1, memory="512Mi", diskDefaults={"size": "1Gi"})),
        ("vmimages", document("VMImage", "tiny", source={"http": {"url": image}})),
    ):
        await talk.make(f"{BASE}/{kind}", body)
    refs = {"providerRef": {"name": "here"}, "classRef": {"name": "small"}}
    machine = document("VirtualMachine", "web", **refs, imageRef={"name": "tiny"}, disks=[{"name": "data", "sizeGiB": 1}])
    await talk.make(f"{BASE}/virtualmachines", machine)
    await talk.until(f"{BASE}/virtualmachines/web", runs, "the source runs", 120)
    await marked(talk, "web", f"{write('rootmark1', 'vda')}; {write('datamark1', 'vdb')}; sync")
    source = {"vmRef": {"name": "web"}, "deleteAfterMigration": True}
    target = {"name": "moved", "providerRef": {"name": "there"}, "classRef": {"name": "small"}, "powerOn": True}
    await talk.make(f"{BASE}/vmmigrations", document("VMMigration", "move", source=source, target=target, **spec))
    moved = await talk.until(f"{BASE}/vmmigrations/move", lambda found: phase(found) in ("Ready", "Failed"), "it has moved", 200)
    assert phase(moved) == "Ready", moved["status"]
    status = moved["status"]
    assert status["validationResults"] == {"diskSizeMatch": True, "checksumMatch": True}
    assert all(len(each["checksum"]) == 64 and each["checksum"] == each["targetChecksum"] for each in status["disks"])
    assert await marked(talk, "moved", read("vda")) == "rootmark1"
    assert await marked(talk, "moved", read("vdb")) == "datamark1"
    await talk.until(f"{BASE}/virtualmachines/web", lambda found: not found, "the source is deleted")
    exports = await talk.get("/apis/export.kubevirt.io/v1/namespaces/default/virtualmachineexports")
    assert not exports["items"]
    return moved


@pytest.mark.spec("virtrigaud", 87, 88, 89, 90)
@played
async def test_a_machine_moves_with_its_disks(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    await moves(talk, web.put(tiny_guest.disk))
    await talk.until("/api/v1/namespaces/default/persistentvolumeclaims/move-storage", lambda found: not found, "its claim is deleted")
    assert not [each for each in (talk.host.root).rglob("export*") if each.is_file() and "staging" in str(each)]
