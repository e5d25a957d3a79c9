"""Migrations to and from other servers at admission."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness
from tests.unit.kubevirt.admission.test_gated import KUBEVIRTS, VIRT, kubevirt

GATE = "DecentralizedLiveMigration"
SENDS = {"sendTo": {"migrationID": "m", "connectURL": "192.0.2.1:9185"}}


def migration(name: str, **sides: Any) -> dict[str, Any]:
    spec = {"vmiName": "web", **sides}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": name}, "spec": spec}


@pytest.mark.spec("kubevirt", 290)
@scripted
async def test_the_gate_and_one_id() -> None:
    path = f"{VIRT}/virtualmachineinstancemigrations"
    instance = {"domain": {"devices": {}, "memory": {"guest": "128Mi"}}}
    made = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": instance}
    async with Harness() as api:
        await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubevirt"}})
        assert (await api.post(f"{VIRT}/virtualmachineinstances", made)).status == 201
        for side in (SENDS, {"receive": {"migrationID": "m"}}):
            refused = await api.post(path, migration("one", **side))
            assert refused.status == 422 and f"{GATE} feature gate is not enabled in kubevirt resource" in str(refused.data)
        assert (await api.post(path, migration("plain"))).status == 201
        assert (await api.post(KUBEVIRTS, kubevirt(featureGates=[GATE]))).status == 201
        taken = await api.post(path, migration("one", **SENDS))
        assert taken.status == 201, taken.data
        other = await api.post(path, migration("two", **SENDS, receive={"migrationID": "other"}))
        assert other.status == 422 and "sendTo migrationID m does not match receive migrationID other" in str(other.data)
