"""Vitistack's documents, unchanged, with real machines. They name no image, so what runs is a machine with blank disks."""

from pathlib import Path

import pytest

from paddock.engine.images.build import tiny
from tests.host.fronts.life import Example, live
from tests.host.runs.conftest import Talk

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
