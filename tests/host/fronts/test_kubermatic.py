"""Kubermatic's documents, unchanged, with real guests: the image is at the address that they name, as far as this host can tell."""

from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.fronts.life import Example, live, place
from tests.host.runs.conftest import VMS, Talk, condition

pytestmark = pytest.mark.needs("qemu", "netns", "tun", "nft")
MACHINE, POOL = "my-vm-with-http-data-volume", "my-vm-http-pool"


async def machine_waits_for_a_restart(talk: Talk) -> bool:
    """More memory than it began with takes a restart."""
    return condition(await talk.get(f"{VMS}/{MACHINE}"), "RestartRequired").get("status") == "True"


async def pool_has_two(talk: Talk) -> bool:
    """One went."""
    pool = await talk.get(place(POOL_OF_THREE.front))
    return pool["status"].get("replicas") == 2 and len((await talk.get(VMS))["items"]) == 2


VIRTUAL_MACHINE = Example(
    "kubermatic",
    "virtualmachine",
    (MACHINE,),
    {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "1Gi"}}}}}},
    machine_waits_for_a_restart,
)
POOL_OF_THREE = Example(
    "kubermatic",
    "pool",
    tuple(f"{POOL}-{number}" for number in range(3)),
    {"spec": {"replicas": 2}},
    pool_has_two,
    volumes=tuple(f"my-pool-vm-data-volume-{number}" for number in range(3)),
)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(VIRTUAL_MACHINE, id="virtualmachine", marks=pytest.mark.spec("kubermatic", 1)),
        pytest.param(POOL_OF_THREE, id="pool", marks=[pytest.mark.spec("kubermatic", 3), pytest.mark.spec("kubevirt", 4)]),
    ],
)
def test_the_life_of_an_example(example: Example, work: Path, tiny_guest: tiny.TinyImage) -> None:
    live(example, work, tiny_guest.disk)
