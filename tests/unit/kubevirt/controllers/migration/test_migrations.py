"""A migration is accepted and fails: there is one host (docs/spec/kubevirt.md 2.10)."""

from paddock.base.jsondata import Data
from paddock.kubevirt.controllers.migration.controller import wire
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import living

PLURAL = "virtualmachineinstancemigrations"


def migration(of: str) -> Data:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": "move"},
        "spec": {"vmiName": of},
    }


HARDWARE = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}
INSTANCE = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": HARDWARE}


@timeless
async def test_there_is_no_other_host() -> None:
    async with living(wire) as life:
        await life.make(INSTANCE, "virtualmachineinstances")
        await life.rest(5)
        await life.make(migration("web"), PLURAL)
        await life.rest(5)
        moved = await life.get("move", PLURAL)
        assert moved is not None and moved["status"]["phase"] == "Failed"
        assert moved["status"]["migrationState"]["failureReason"].startswith("single host")
        (event,) = await life.events("web")
        assert event[:2] == ("Warning", "FailedMigration") and "single host" in event[2]
        vmi = await life.vmi()
        assert vmi is not None and vmi["status"]["phase"] == "Running"
