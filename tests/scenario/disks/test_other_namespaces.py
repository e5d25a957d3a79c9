"""A claim, or a DataVolume, that names a source of another namespace is never bound to a disk that nobody fills."""

import asyncio

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.why.disk_faults import claim, volume


def _source(kind: str) -> dict[str, str]:
    group = {"VolumeSnapshot": "snapshot.storage.k8s.io", "VolumeImportSource": "cdi.kubevirt.io"}.get(kind, "")
    return {"kind": kind, "name": "base", "namespace": "golden", **({"apiGroup": group} if group else {})}


@pytest.mark.spec("kubevirt", 145)
@pytest.mark.parametrize("kind", ["PersistentVolumeClaim", "VolumeSnapshot", "VolumeImportSource"])
@played
async def test_a_claim_from_another_namespace_stays_pending(host: FakeHost, /, kind: str) -> None:
    await host.make(claim("data", dataSourceRef=_source(kind)), claim("own", dataSourceRef={**_source(kind), "namespace": "default"}))
    await asyncio.sleep(60)
    found = await host.get("PersistentVolumeClaim", "v1", "data")
    assert found["status"] == {"phase": "Pending"} and "volumeName" not in found["spec"]
    assert await host.events("data") == ["CrossNamespaceReference"] and host.engine.volumes.ids() == set()
    own = await host.get("PersistentVolumeClaim", "v1", "own")
    assert own["status"]["phase"] == "Bound" and "CrossNamespaceReference" not in await host.events("own")


@pytest.mark.spec("kubevirt", 146)
@played
async def test_a_datavolume_from_a_datasource_of_another_namespace_says_so(host: FakeHost, /) -> None:
    about = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "debian"}}
    await host.make({**about, "spec": {"source": {"dataSource": {"name": "debian", "namespace": "golden"}}}})
    copy = volume("copy", {})
    del copy["spec"]["source"]
    copy["spec"]["sourceRef"] = {"kind": "DataSource", "name": "debian"}
    await host.make(copy)
    await asyncio.sleep(60)
    found = await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "copy")
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    assert ready["reason"] == "CrossNamespaceReference" and "golden/debian" in ready["message"]
    assert "CrossNamespaceReference" in await host.events("copy") and await host.get("PersistentVolumeClaim", "v1", "copy") == {}
