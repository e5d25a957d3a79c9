"""CDIConfig: what it says of storage classes, while they are there."""

import asyncio

from tests.unit.kubevirt.controllers.storage.conftest import Host, Play

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CONFIG = "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config"


def test_a_class_that_is_gone_has_no_overhead(play: Play) -> None:
    async def overheads(host: Host) -> set[str]:
        await asyncio.sleep(2)
        return set((await host.api.get(CONFIG)).data["status"]["filesystemOverhead"]["storageClass"])

    async def script(host: Host) -> None:
        before = await overheads(host)
        await host.api.post(CLASSES, {"metadata": {"name": "late"}, "provisioner": "example.com/other"})
        assert await overheads(host) == before | {"late"}
        await host.api.delete(f"{CLASSES}/late")
        assert await overheads(host) == before

    play(script)
