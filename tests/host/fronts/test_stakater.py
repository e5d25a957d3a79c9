"""Stakater's documents, unchanged, with real guests: the catalogue of images has an entry rhel9, and the storage class is another name
for this host's. The larger one starts under Secure Boot with eight processors; where fewer emulate them, its guest is not waited for."""

import os
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.fronts.life import Example, live
from tests.host.machine import lacks
from tests.host.runs.conftest import VMIS, VMS, Talk

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft", "ovmf")
CLASSES = ("ocs-storagecluster-ceph-rbd",)


async def minimal_grew(talk: Talk) -> bool:
    """The guest sees what was asked for, whatever more its claim has; and the label is on the machine."""
    sizes = {each["name"]: each.get("size") for each in (await talk.get(f"{VMIS}/basic-vm"))["status"].get("volumeStatus") or ()}
    labels = (await talk.get(f"{VMS}/basic-vm"))["metadata"]["labels"]
    return sizes.get("rootdisk") == 31 << 30 and labels.get("tier") == "gold"


async def full_has_another_port(talk: Talk) -> bool:
    """The Service follows."""
    service = await talk.get("/api/v1/namespaces/default/services/advanced-vm-lb")
    return [each["port"] for each in service["spec"]["ports"]] == [22001]


MINIMAL = Example(
    "stakater",
    "minimal",
    ("basic-vm",),
    {"spec": {"parameters": {"storage": {"size": "31Gi"}, "additionalLabels": {"tier": "gold"}}}},
    minimal_grew,
    classes=CLASSES,
)
FULL = Example(
    "stakater",
    "full",
    ("advanced-vm",),
    {"spec": {"parameters": {"service": {"port": 22001}}}},
    full_has_another_port,
    # For every variable that it reads under Secure Boot the firmware waits for all eight processors; emulated by fewer, they hardly meet.
    has_guest=(os.cpu_count() or 1) >= 8 or not lacks("kvm"),
    classes=CLASSES,
)


@pytest.mark.parametrize("example", [MINIMAL, FULL], ids=lambda example: example.name)
def test_the_life_of_an_example(example: Example, work: Path, tiny_signed: tiny.TinyImage) -> None:
    live(example, work, tiny_signed.disk)
