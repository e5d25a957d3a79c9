"""Sizes that no disk has: told on the claim and on the machine, and nothing is left of them."""

import asyncio
from pathlib import Path

import pytest

from tests.host.storage.conftest import CORE, pvc
from tests.host.storage.machines import machines

pytestmark = pytest.mark.needs("qemu")


@pytest.mark.spec("kubevirt", 124)
def test_a_size_that_no_disk_has_is_told(work: Path) -> None:
    async def script() -> None:
        async with machines(work / "root") as host:
            here = host.here
            await here.post(f"{CORE}/persistentvolumeclaims", {"metadata": {"name": "vast"}, "spec": pvc("8Ei")})
            await host.make("web", [{"name": "data", "persistentVolumeClaim": {"claimName": "vast"}}])
            await host.until_told("vast", "a disk has at most 2Pi")
            await host.make("empty", [{"name": "data", "emptyDisk": {"capacity": "8Ei"}}])
            await here.data_volume("blank", {"source": {"blank": {}}, "pvc": pvc("8Ei")})
            await host.until_told("blank", "a disk has at most 2Pi")
            phases = [each["status"]["phase"] for each in (await here.get(f"{CORE}/persistentvolumeclaims"))["items"]]
            assert phases == ["Pending", "Pending"]
            await host.until_told("empty", "a disk has at most 2Pi")
            assert [each.name for each in (work / "root" / "engine" / "volumes").iterdir()] == []

    asyncio.run(script())
