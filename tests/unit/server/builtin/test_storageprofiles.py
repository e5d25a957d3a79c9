"""StorageProfiles: the status is a subresource, as CDI's definition has it."""

import asyncio

import pytest

from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

PROFILES = "/apis/cdi.kubevirt.io/v1beta1/storageprofiles"


@pytest.mark.spec("kubevirt", 180)
@run_by(asyncio.run)
async def test_the_status_is_written_by_itself() -> None:
    async with Harness() as api:
        profile = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "StorageProfile", "metadata": {"name": "fast"}, "spec": {}}
        made = await api.post(PROFILES, {**profile, "status": {"storageClass": "lost"}})
        assert made.status == 201 and "status" not in made.data, made.data
        said = await api.merge(f"{PROFILES}/fast/status", {"spec": {"cloneStrategy": "copy"}, "status": {"storageClass": "fast"}})
        assert said.status == 200, said.data
        assert (said.data["status"], said.data["spec"]) == ({"storageClass": "fast"}, {})
        said = await api.merge(f"{PROFILES}/fast", {"status": {"storageClass": "other"}})
        assert said.data["status"] == {"storageClass": "fast"}
