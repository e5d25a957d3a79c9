"""CDIConfig: what it says of storage classes, while they are there."""

import asyncio

from tests.coroutines import played
from tests.unit.kubevirt.controllers.storage.conftest import Host

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CONFIG = "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config"


@played
async def test_a_class_that_is_gone_has_no_overhead(host: Host, /) -> None:
    async def overheads(host: Host) -> set[str]:
        await asyncio.sleep(2)
        return set((await host.api.get(CONFIG)).data["status"]["filesystemOverhead"]["storageClass"])

    before = await overheads(host)
    await host.api.post(CLASSES, {"metadata": {"name": "late"}, "provisioner": "example.com/other"})
    assert await overheads(host) == before | {"late"}
    await host.api.delete(f"{CLASSES}/late")
    assert await overheads(host) == before
