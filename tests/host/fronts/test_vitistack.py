"""Vitistack's documents, unchanged, with real machines. They name no image, so what runs is a machine with blank disks; the example in
Vitistack's own form names one, and its guest boots by UEFI.
"""

from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.fronts.life import Example, live
from tests.host.runs.conftest import VMIS, Talk

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")


def example(name: str, machine: str, disk: str, size: str) -> Example:
    """An example whose disk grows."""

    async def grew(talk: Talk) -> bool:
        claim = await talk.get(f"/api/v1/namespaces/default/persistentvolumeclaims/{machine}-{disk}")
        return bool(claim["spec"]["resources"]["requests"]["storage"] == claim["status"]["capacity"]["storage"] == size)

    change = {"spec": {"disks": [{"name": disk, "size": size, **({"storageClass": "fast-ssd"} if disk == "data" else {})}]}}
    return Example("vitistack", name, (machine,), change, grew, has_guest=False, classes=("fast-ssd",))


EXAMPLES = (
    example("basic", "basic-vm", "root", "41Gi"),
    example("overrides", "custom-vm", "data", "101Gi"),
    example("networked", "networked-vm", "root", "41Gi"),
    example("cloud-init", "cloud-init-vm", "root", "81Gi"),
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_life_of_an_example(example: Example, work: Path, tiny_guest: tiny.TinyImage) -> None:
    live(example, work, tiny_guest.disk)


async def is_told(talk: Talk) -> bool:
    """The disk has grown, and the status says in the own form what runs."""
    status = (await talk.get("/apis/vitistack.io/v1alpha1/namespaces/default/machines/own-form")).get("status", {})
    disks = {each["name"]: each for each in status.get("disks") or ()}
    if disks.get("root", {}).get("size") != 21 << 30 or not status.get("ipAddresses"):
        return False
    assert (disks["root"]["pvcName"], disks["data"]["pvcName"]) == ("own-form-root", "own-form-data")
    (card,) = status["networkInterfaces"]
    assert card["ipAddresses"][0] == status["ipAddresses"][0] == status["privateIPAddresses"][0] and card["macAddress"].startswith("02:12:")
    assert (status["state"], status["provider"], status["message"]) == ("Running", "kubevirt", "the machine runs")
    guest = (await talk.get(f"{VMIS}/own-form"))["spec"]
    assert guest["hostname"] == "web" and guest["domain"]["firmware"]["bootloader"]["efi"]["secureBoot"] is False
    assert [each["disk"]["bus"] for each in guest["domain"]["devices"]["disks"]] == ["virtio", "sata", "virtio"]
    return True


OWN_DISKS = [{"name": "root", "sizeGB": 21, "boot": True, "type": "virtio"}, {"name": "data", "sizeGB": 10, "type": "sata"}]
OWN_FORM = Example("vitistack", "own-form", ("own-form",), {"spec": {"disks": OWN_DISKS}}, is_told)


@pytest.mark.spec("vitistack", 84, 89)
@pytest.mark.needs("ovmf")
def test_the_life_of_a_machine_in_the_own_form(work: Path, tiny_guest: tiny.TinyImage) -> None:
    live(OWN_FORM, work, tiny_guest.disk)
