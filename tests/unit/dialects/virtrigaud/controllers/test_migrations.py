"""Migrations: phases in their order, what arrives, who runs, and what is left (docs/spec/virtrigaud.md 2.7)."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.dialects.virtrigaud.controllers.migrations.reconciler import NetworkChecks
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock_drivers.fake.settings import RpcFault
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.moving import DATA, KIND, ORDER, ROOT, MovingWorld, migration, moving
from tests.unit.kubevirt.controllers.rigaudharness import machine, provider


@pytest.mark.spec("virtrigaud", 84)
@timeless
async def test_phases_come_in_their_order_each_with_its_condition(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration())
        status = await world.until("Ready")
        await world.clean()
        assert world.phases == ORDER
        # Events of one moment have one name here, so some are lost.
        assert {"MigrationStarted", "TargetCreated", "MigrationComplete"} <= set(await world.life.events("move"))
        said = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
        assert said["Ready"] == ("True", "MigrationComplete")
        assert {name: reason for name, (_, reason) in said.items()} | {"CleanedUp": ""} == {
            "Ready": "MigrationComplete",
            "Validating": "ValidationComplete",
            "Snapshotting": "SnapshotComplete",
            "Exporting": "ExportComplete",
            "Transferring": "TransferComplete",
            "Importing": "ImportComplete",
            "Creating": "MigrationComplete",
            "ValidatingTarget": "ValidationComplete",
            "CleanedUp": "",
        }
        assert all(each["observedGeneration"] == 1 and each["message"] for each in status["conditions"])
        assert status["targetVMRef"] == {"name": "moved"} and status["targetVMID"] and status["progress"]["percentage"] == 100


@pytest.mark.spec("virtrigaud", 88)
@timeless
async def test_every_disk_arrives_and_the_source_is_off(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(target={"powerOn": True}))
        status = await world.until("Ready")
        await world.clean()
        root, data = world.disks(world.target, "moved")
        assert (root.data.startswith(b"vm-"), data.data, data.size) == (True, DATA, 3 << 30)
        assert await world.power(world.source) == ["Off"] and await world.power(world.target) == ["On"]
        assert [each["name"] for each in status["disks"]] == ["root", "data"]
        assert all(len(each["checksum"]) == 64 and each["checksum"] == each["targetChecksum"] for each in status["disks"])
        made = await world.life.get("moved")
        assert made["metadata"]["annotations"]["virtrigaud.io/migration-completed"] == "true"
        assert made["spec"]["importedDisk"]["source"] == "migration" and made["spec"]["importedDisk"]["migrationRef"] == {"name": "move"}
        assert made["spec"]["disks"][0]["name"] == "data"


@pytest.mark.spec("virtrigaud", 88)
@timeless
async def test_a_copy_stays_off_and_leaves_its_source_running(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        disks = [{"name": "data", "sizeGiB": 5, "type": "thick"}, {"name": "scratch", "sizeGiB": 1}]
        await world.life.make(migration(target={"disks": disks}))
        await world.until("Ready")
        await world.clean()
        assert await world.power(world.source) == ["On"] and await world.power(world.target) == ["Off"]
        root, data, scratch = world.disks(world.target, "moved")
        assert (root.data, data.data, data.size >> 30, scratch.size >> 30) == (ROOT, DATA, 5, 1)
        assert not world.source._inventory.machines["vm-1"].snapshots
        assert "virtrigaud.io/fenced-by-migration" not in (await world.life.get())["metadata"].get("annotations", {})


@pytest.mark.spec("virtrigaud", 88)
@timeless
async def test_a_disk_does_not_shrink(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(target={"disks": [{"name": "data", "sizeGiB": 2}]}))
        await world.until("Failed")
        assert (await world.life.said("Failed", "move", KIND)) == ("True", "ValidationFailed")
        assert world.life.driver.count("ExportDisk") == 0


@pytest.mark.spec("virtrigaud", 84)
@timeless
async def test_it_waits_for_its_source_and_for_both_providers(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(source={"vmRef": {"name": "late"}}, target={"providerRef": {"name": "third"}}))

        async def waits(reason: str) -> None:
            async def holds() -> bool:
                return (await world.life.said("Ready", "move", KIND))[1] == reason

            await world.life.until(holds, 100)

        await waits("SourceNotFound")
        await world.life.make(machine("late", imageRef={"name": "missing"}))
        await waits("SourceVMNotReady")
        await world.life.merge("late", {"spec": {"imageRef": {"name": "ubuntu"}}})
        await waits("TargetProviderNotReady")
        world.life.others["third"] = world.other
        await world.life.make(provider("third"))
        await world.until("Ready", seconds=400)


@pytest.mark.spec("virtrigaud", 85, 104)
@pytest.mark.parametrize(
    ("without", "spec", "text"),
    [
        (
            {},
            {"storage": {"type": "nfs", "nfs": {"server": "nas", "export": "/e"}}},
            "Provider default/lab (libvirt) exports to [pvc], Provider default/other (libvirt) imports from [pvc]",
        ),
        (
            {},
            {"storage": {"transferMode": "direct"}},
            "Provider default/lab (libvirt) has [relay], Provider default/other (libvirt) has [relay]",
        ),
        ({"without": ("disk_export",)}, {}, "Provider default/lab (libvirt) does not export disks"),
        ({"without": ("disk_import",)}, {}, "Provider default/other (libvirt) does not import disks"),
        (
            {},
            {"options": {"diskFormat": "vmdk"}},
            "Provider default/lab (libvirt) writes [qcow2, raw], Provider default/other (libvirt) reads [qcow2, raw]",
        ),
        ({"without": ("export_compression",)}, {"options": {"compress": True}}, "does not compress"),
        # Everything that stands against it is named at once.
        ({"without": ("disk_export", "disk_import")}, {}, "lab (libvirt) does not export disks; Provider default/other (libvirt) does not"),
        ({}, {"storage": {"transferMode": "direct"}, "options": {"diskFormat": "vmdk"}}, "has [relay]; the format vmdk cannot be used"),
    ],
)
@timeless
async def test_what_a_provider_does_not_report_is_refused(tmp_path: Path, without: Any, spec: Any, text: str) -> None:
    async with moving(tmp_path, **without) as world:
        await world.life.make(migration(**spec))
        await world.until("Failed")
        found = await world.life.condition("Failed", "move", KIND)
        assert (found["status"], found["reason"]) == ("True", "UnsupportedByProvider") and text in found["message"]
        assert not {"ExportDisk", "ImportDisk", "SnapshotCreate", "GetDiskInfo"} & set(world.life.driver.names() + world.other.names())
        assert await world.power(world.source) == ["On"]


@pytest.mark.spec("virtrigaud", 88)
@timeless
async def test_it_fails_when_its_time_is_over(tmp_path: Path) -> None:
    async with moving(tmp_path, faults=(RpcFault(rpc="ImportDisk", effect="task-hang"),)) as world:
        await world.life.make(migration(target={"powerOn": True}, options={"timeout": "10m"}))
        await world.until("Failed")
        assert (await world.life.said("Failed", "move", KIND)) == ("True", "Timeout")
        assert not world.disks(world.target, "moved")


KEYS = {"accessKeyID": "bWU=", "secretAccessKey": "aGlkZGVu"}
S3 = {
    "type": "s3",
    "s3": {"bucket": "bucket", "prefix": "p/", "region": "r", "endpoint": "https://s3.example", "credentialsSecretRef": {"name": "s3"}},
}
NFS = {"type": "nfs", "nfs": {"server": "nas.example", "export": "/exports/vm", "path": "/sub/", "uid": 107, "gid": 36}}


async def secret(world: MovingWorld) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "data": KEYS}
    assert (await world.life.api.post("/api/v1/namespaces/default/secrets", body)).status == 201


@pytest.mark.spec("virtrigaud", 87, 89, 102)
@pytest.mark.parametrize(
    ("storage", "urls"),
    [
        (
            {"type": "pvc"},
            ["pvc://move-storage/vmmigrations/default/move/export.qcow2", "pvc://move-storage/vmmigrations/default/move/export-data.qcow2"],
        ),
        (S3, ["s3://bucket/p/vmmigrations/default/move/export.vmdk", "s3://bucket/p/vmmigrations/default/move/export-data.vmdk"]),
        (
            NFS,
            [
                "nfs://nas.example/exports/vm/sub/vmmigrations-default-move-export.qcow2?uid=107&gid=36",
                "nfs://nas.example/exports/vm/sub/vmmigrations-default-move-export-data.qcow2?uid=107&gid=36",
            ],
        ),
    ],
)
@pytest.mark.parametrize("policy", ["OnSuccess", "Never"])
@timeless
async def test_every_storage_has_its_addresses_and_its_cleanup(storage: Any, urls: list[str], policy: str, tmp_path: Path) -> None:
    async with moving(tmp_path, backends=("pvc", "s3", "nfs"), checks=NetworkChecks(addresses=elsewhere)) as world:
        await world.life.make(migration(storage=storage, options={"cleanupPolicy": policy}))
        if storage is S3:
            await asyncio.sleep(5)
            assert (await world.life.said("Ready", "move", KIND))[1] == "StorageError"
            await secret(world)
        await world.until("Ready")
        await world.clean()
        exports = world.life.driver.of("ExportDisk")
        assert [each.destination_url for each in exports] == urls
        assert [each.source_url for each in world.other.of("ImportDisk")] == urls
        options = orjson.loads(exports[0].storage_options_json)
        assert options["backend"] == storage["type"] and "hidden" not in exports[0].storage_options_json
        assert exports[0].backend_type == storage["type"] and exports[0].transfer_mode == "relay"
        keys = {"accessKeyID": "me", "secretAccessKey": "hidden"} if storage is S3 else {}
        assert exports[0].credentials == world.other.of("ImportDisk")[0].credentials == keys
        assert bool(world.files()) == (policy == "Never")
        told = orjson.dumps([await world.life.get("move", KIND), await world.life.get("moved"), await world.life.events("move")])
        assert b"hidden" not in told and b"aGlkZGVu" not in told


async def elsewhere(host: str) -> tuple[str, ...]:
    return ("192.0.2.7",)


HERE = ("127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "100.100.100.200", "::ffff:127.0.0.1")


@pytest.mark.spec("virtrigaud", 86)
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "100.100.100.200", "::ffff:127.0.0.1"]
)
@pytest.mark.parametrize("storage", [S3, NFS])
@timeless
async def test_storage_on_this_host_is_refused_by_its_address(storage: Any, address: str, tmp_path: Path) -> None:
    async def here(host: str) -> tuple[str, ...]:
        return ("192.0.2.7", address)

    async with moving(tmp_path, backends=("pvc", "s3", "nfs"), checks=NetworkChecks(addresses=here)) as world:
        await world.life.make(migration(storage=storage))
        await world.until("Failed")
        found = await world.life.condition("Failed", "move", KIND)
        assert (found["status"], found["reason"]) == ("True", "ValidationFailed") and "refused" in found["message"]
        assert not {"ExportDisk", "SnapshotCreate"} & set(world.life.driver.names()) and "hidden" not in found["message"]


@pytest.mark.spec("virtrigaud", 86, 108)
@pytest.mark.parametrize(("allowed", "phase"), [(("nas.example",), "Ready"), (("*.example",), "Ready"), (("other.example",), "Failed")])
@timeless
async def test_the_operator_names_the_hosts_of_storage(allowed: tuple[str, ...], phase: str, tmp_path: Path) -> None:
    settings = VirtrigaudSettings(migration_storage_allowed_hosts=allowed)
    async with moving(tmp_path, settings=settings, backends=("pvc", "nfs"), checks=NetworkChecks(addresses=elsewhere)) as world:
        await world.life.make(migration(storage=NFS))
        await world.until(phase)


@pytest.mark.spec("virtrigaud", 88)
@pytest.mark.parametrize("answers", [True, False])
@timeless
async def test_the_checks_of_boot_and_connectivity(answers: bool, tmp_path: Path) -> None:
    asked = []

    async def reach(address: str) -> bool:
        asked.append(address)
        return answers

    checks = {"checkBoot": True, "checkConnectivity": True}
    async with moving(tmp_path, checks=NetworkChecks(reach=reach)) as world:
        await world.life.make(migration(options={"validationChecks": checks, "timeout": "20m"}))
        status = await world.until("Ready", "Failed")
        await world.clean()
        assert asked and status["validationResults"]["bootSuccess"] is True
        if answers:
            assert status["phase"] == "Ready" and status["validationResults"]["connectivitySuccess"] is True
            await world.life.ready("moved")
            assert await world.power(world.target) == ["Off"] and await world.power(world.source) == ["Off"]
        else:
            assert (await world.life.said("Failed", "move", KIND))[1] == "Timeout"
            assert (await world.life.ready())["powerState"] == "On" and not await world.power(world.target)


@pytest.mark.spec("virtrigaud", 85)
@timeless
async def test_a_snapshot_that_is_named_has_to_be_one_of_the_source(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration(source={"snapshotRef": {"name": "before"}}))
        await world.until("Snapshotting")
        assert "there is no VMSnapshot default/before" in (await world.life.condition("Ready", "move", KIND))["message"]
        assert world.life.driver.count("ExportDisk") == 0


@pytest.mark.spec("virtrigaud", 84, 115)
@timeless
async def test_a_target_elsewhere_needs_the_consent_of_its_namespace(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await world.life.make(migration(target={"namespace": "team", "classRef": None}))

        async def refused() -> bool:
            return (await world.life.said("Ready", "move", KIND))[1] == "ConsumerNotAllowed"

        await world.life.until(refused)
        assert world.life.driver.count("ExportDisk") == 0


@pytest.mark.spec("virtrigaud", 3)
@timeless
async def test_the_generation_is_observed(tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        await world.life.make(migration())
        await world.until("Ready")
        await world.life.merge("move", {"spec": {"metadata": {"project": "x"}}}, KIND)

        async def observed() -> bool:
            return bool((await world.life.status("move", KIND))["observedGeneration"] == 2)

        await world.life.until(observed)
        assert await world.phase() == "Ready" and len(await world.power(world.target)) == 1


@pytest.mark.spec("virtrigaud", 89, 104)
@timeless
async def test_what_no_provider_can_delete_is_named(tmp_path: Path) -> None:
    async with moving(tmp_path, backends=("pvc", "nfs"), checks=NetworkChecks(addresses=elsewhere), without=("transfer-delete",)) as world:
        await world.life.make(migration(storage=NFS))
        status = await world.until("Ready")
        await world.clean("CleanupIncomplete")
        found = await world.life.condition("CleanedUp", "move", KIND)
        assert found["status"] == "False" and all(each["url"] in found["message"] for each in status["disks"])
        assert "TransferDelete" not in world.life.driver.names() + world.other.names() and world.files()
        writes = world.writes
        await asyncio.sleep(3600)
        assert world.writes == writes
