"""Copies of disks: never of one that is written, never out of a namespace that whoever asks may not copy from."""

from pathlib import Path
from typing import Any

import pytest

from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.servers.apiharness import GuardedHarness
from tests.unit.kubevirt.controllers.storage.conftest import Host, pvc, stage

CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
ROOT = {"authorization": "Bearer root"}
ADA = {"authorization": "Bearer ada"}


def cdi(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def permit(host: Host, namespace: str, resources: list[str]) -> None:
    role = {"metadata": {"name": "ada"}, "rules": [{"apiGroups": ["cdi.kubevirt.io"], "resources": resources, "verbs": ["*"]}]}
    binding = {
        "metadata": {"name": "ada"},
        "roleRef": {"kind": "Role", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    assert (await host.api.post(f"{RBAC}/{namespace}/roles", role, **ROOT)).status == 201
    assert (await host.api.post(f"{RBAC}/{namespace}/rolebindings", binding, **ROOT)).status == 201


@pytest.mark.spec("kubevirt", 71)
@run_by(virtualtime.run)
async def test_copies_are_consistent_and_permitted(tmp_path: Path) -> None:
    async def script(host: Host) -> None:
        async def see(name: str) -> dict[str, Any]:
            reply = await host.api.get(f"{CDI}/default/datavolumes/{name}", **ROOT)
            return dict(reply.data.get("status") or {})

        await host.api.namespace("golden")
        await permit(host, "default", ["datavolumes"])
        source = cdi("DataVolume", "disk", {"source": {"blank": {}}, "pvc": pvc()})
        assert (await host.api.post(f"{CDI}/golden/datavolumes", source, **ROOT)).status == 201
        await host.settle()
        claim = (await host.api.get("/api/v1/namespaces/golden/persistentvolumeclaims/disk", **ROOT)).data["metadata"]["uid"]
        copy = {"source": {"pvc": {"namespace": "golden", "name": "disk"}}, "storage": {}}
        # at the door
        path = f"{CDI}/default/datavolumes"
        assert (await host.api.post(path, cdi("DataVolume", "a", copy), **ADA)).status == 403
        # behind it: the DataSource comes later
        late = {"sourceRef": {"kind": "DataSource", "name": "late", "namespace": "golden"}, "pvc": pvc()}
        assert (await host.api.post(path, cdi("DataVolume", "late", late), **ADA)).status == 201
        named = cdi("DataSource", "late", {"source": copy["source"]})
        assert (await host.api.post(f"{CDI}/golden/datasources", named, **ROOT)).status == 201
        await host.settle(30)
        status = await see("late")
        assert status["phase"] == "Failed"
        assert "insufficient permissions in clone source namespace golden" in str(status["conditions"])
        assert set(host.volumes.volumes) == {claim}
        # with the right, and while a machine writes the disk
        await permit(host, "golden", ["datavolumes/source"])
        host.volumes.open.add(claim)
        assert (await host.api.post(path, cdi("DataVolume", "a", copy), **ADA)).status == 201
        await host.settle(30)
        status = await see("a")
        assert status["phase"] == "CloneScheduled" and "CloneSourceInUse" in str(status["conditions"])
        host.volumes.open.clear()
        await host.settle(30)
        assert (await see("a"))["phase"] == "Succeeded" and len(host.volumes.volumes) == 2

    async with GuardedHarness(tmp_path) as api:
        await stage(api, script)
