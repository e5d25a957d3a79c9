"""VirtRigaud's kinds on the server: where they are, what they are called, and that spec and status are written apart."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness
from tests.unit.dialects.virtrigaud.kinds.objects import KINDS, thing
from tests.unit.dialects.virtrigaud.kinds.test_surface import TABLE

GROUP = "infra.virtrigaud.io/v1beta1"
Data = dict[str, Any]
# On a server they mean KubeVirt's kinds.
KUBEVIRTS = {"vm", "vmsnapshot", "vmclone"}


@pytest.mark.spec("virtrigaud", 1)
@scripted
async def test_all_kinds_are_served() -> None:
    async with Harness() as api:
        found = {each["name"]: each for each in (await api.get(f"/apis/{GROUP}")).data["resources"]}
        for kind, (plural, short, _) in TABLE.items():
            resource = found[plural]
            assert (resource["kind"], resource["namespaced"]) == (kind, True)
            assert f"{plural}/status" in found
            assert set(resource.get("shortNames") or ()) - KUBEVIRTS == {short} - KUBEVIRTS, kind
    assert len(TABLE) == 10


@pytest.mark.spec("virtrigaud", 1)
@pytest.mark.parametrize("kind", KINDS)
@scripted
async def test_spec_and_status_are_written_apart(kind: str) -> None:
    path = f"/apis/{GROUP}/namespaces/default/{TABLE[kind][0]}"
    conditions = [
        {"type": "Ready", "status": "True", "reason": "Tested", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    async with Harness() as api:
        raw = thing(kind)
        raw["metadata"] = {"name": "one"}
        made = await api.post(path, raw | {"status": {"conditions": conditions}})
        assert made.status == 201 and "conditions" not in (made.data.get("status") or {}), made.data
        status = await api.put(f"{path}/one/status", made.data | {"status": {"conditions": conditions}, "spec": {}})
        assert status.status == 200, status.data
        assert status.data["spec"] == made.data["spec"] and status.data["status"]["conditions"] == conditions
        changed = await api.merge(f"{path}/one", {"status": {"conditions": []}})
        assert changed.status == 200 and changed.data["status"]["conditions"] == conditions
        ours = await api.put(f"{path}/one", changed.data | {"status": {}})
        assert ours.status == 200 and ours.data["status"]["conditions"] == conditions
