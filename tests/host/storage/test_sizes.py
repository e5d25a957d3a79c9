"""Sizes that no disk has: refused, or told on the claim and on the machine, and nothing is left of them."""

import asyncio
from pathlib import Path

import pytest

from paddock.engine.storage.pools import MARKER
from paddock.kubernetes.client.errors import Invalid
from paddock.kubernetes.core.storageclass import PROVISIONER
from tests.coroutines import run_by
from tests.host.storage.conftest import CORE, pvc
from tests.host.storage.machines import machines

pytestmark = pytest.mark.needs("qemu")

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


@pytest.mark.spec("kubevirt", 124)
@run_by(asyncio.run)
async def test_a_size_that_no_disk_has_is_refused_or_told(work: Path) -> None:
    async with machines(work / "root") as host:
        here = host.here
        claims = f"{CORE}/persistentvolumeclaims"
        with pytest.raises(Invalid, match=r"storage: Invalid value: \"8Ei\": a disk has at most 2Pi"):
            await here.post(claims, {"metadata": {"name": "vast"}, "spec": pvc("8Ei")})
        for member in ("pvc", "storage"):
            with pytest.raises(Invalid, match=f"spec.{member}.resources.requests.storage: .*a disk has at most 2Pi"):
                await here.data_volume("vast", {"source": {"blank": {}}, member: pvc("8Ei")})
        await here.post(claims, {"metadata": {"name": "grown"}, "spec": pvc("1Mi")})
        with pytest.raises(Invalid, match="a disk has at most 2Pi"):
            await host.resize("grown", "8Ei")
        # Nobody knows what a class can do that is not there yet.
        await here.post(claims, {"metadata": {"name": "early"}, "spec": {**pvc("8Ei"), "storageClassName": "late"}})
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"}}
        await host.send("POST", CLASSES, {**kind, "provisioner": PROVISIONER})
        await host.make("web", [{"name": "data", "persistentVolumeClaim": {"claimName": "early"}}])
        await host.until_told("early", "a disk has at most 2Pi")
        await host.make("empty", [{"name": "data", "emptyDisk": {"capacity": "8Ei"}}])
        await host.until_told("empty", "a disk has at most 2Pi")
        found = {each["metadata"]["name"]: each["status"]["phase"] for each in (await here.get(claims))["items"]}
        assert found == {"grown": "Bound", "early": "Pending"}
        grown = (await here.get(f"{claims}/grown"))["metadata"]["uid"]
        assert {each.name for each in (work / "root" / "engine" / "volumes").iterdir()} == {MARKER, grown}
