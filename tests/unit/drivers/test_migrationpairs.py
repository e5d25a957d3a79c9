"""Every ordered pair of drivers over every kind of storage: what the table of the documents says, drivers report and controllers do."""

import asyncio
import itertools
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.driver import Driver, extensions
from paddock.dialects.virtrigaud.kinds.shared import PROVIDER_TYPES
from paddock.dialects.virtrigaud.kinds.vmmigration import VMMigration
from paddock.dialects.virtrigaud.plan import health
from paddock.dialects.virtrigaud.plan.migrations import verdicts
from paddock.dialects.virtrigaud.plan.migrations.verdicts import TransferEnd
from paddock.dialects.virtrigaud.translate import described
from paddock_drivers import catalog
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock_drivers.vsphere.capabilities import EndpointCapabilities
from paddock_drivers.vsphere.target import VSphereTarget
from tests import virtualtime
from tests.coroutines import timeless
from tests.kit.engine.fakehost import FakeHost
from tests.kit.providers import migrationends
from tests.kit.providers.migrationends import MigrationStaging
from tests.kit.servers.s3server import S3Server
from tests.unit.dialects.virtrigaud.controllers.moving import KIND, migration, moving
from tests.unit.drivers.libvirt.conftest import bench
from tests.unit.kubevirt.controllers.rigaudharness import RecordedDriver, provider
from tools import migrationpairs

NAMES = tuple(migrationpairs.BY_NAME)
PAIRS = tuple(itertools.product(NAMES, NAMES))
CASES = tuple((*pair, storage) for pair in PAIRS for storage in migrationpairs.STORAGES)
# Data disks are brought, too.
DISKS = 2
PLACES: dict[str, dict[str, Any]] = {
    "pvc": {"type": "pvc"},
    "s3": {"type": "s3", "s3": {"bucket": "moves", "credentialsSecretRef": {"name": "bucket"}}},
    "nfs": {"type": "nfs", "nfs": {"server": "nas", "export": "/exports"}},
}


class DriverReport(msgspec.Struct, frozen=True):
    """What a driver answers about itself."""

    capabilities: m.GetCapabilitiesResponse
    features: x.GetFeaturesResponse

    def end(self, name: str) -> TransferEnd:
        return TransferEnd(name, health.capabilities(self.capabilities, self.features.features))


async def asked(driver: Driver) -> DriverReport:
    return DriverReport(
        await driver.get_capabilities(m.GetCapabilitiesRequest()), await extensions(driver).get_features(x.GetFeaturesRequest())
    )


@cache
def report(name: str, folder: Path) -> DriverReport:
    """Return what a driver answers that reaches all the storage it can."""
    staging = MigrationStaging(folder / "staging", S3Server())

    async def opened() -> DriverReport:
        async with migrationends.OPENERS[name](folder / "end", staging) as end:
            return await asked(end.driver)

    async def qemu() -> DriverReport:
        # As `paddock up` makes it.
        settings = KubeVirtDriverSettings(
            translation=described.translate, staging=StagingSettings(claims=staging.folder), scratch=staging.folder
        )
        async with FakeHost(folder) as host:
            return await asked(KubeVirtDriver(host.api.client(), settings))

    async def libvirt() -> DriverReport:
        from paddock_drivers.libvirt.driver import LibvirtDriver  # noqa: PLC0415 - without the library, tests skip

        async with bench(staging=staging.folder, mounts=dict(staging.settings.mounts)) as made:
            driver = LibvirtDriver(made.connection)
            try:
                return await asked(driver)
            finally:
                await driver.close()

    if name == "vsphere":
        target = cast(VSphereTarget, SimpleNamespace(connection=SimpleNamespace(is_vcenter=True)))
        endpoint = EndpointCapabilities(target, staging.settings.backends)
        return DriverReport(endpoint.find(), endpoint.features())
    if name == "libvirt":
        pytest.importorskip("libvirt", reason="needs libvirt-python")
        return asyncio.run(libvirt())
    if name == "qemu":
        found: list[DriverReport] = []

        async def script() -> None:
            found.append(await qemu())

        virtualtime.run(script())
        return found[0]
    return asyncio.run(opened())


def test_the_table_has_every_driver() -> None:
    # Type kubevirt is qemu's driver under another name.
    assert set(NAMES) == set(catalog.TYPES) - {"kubevirt"} == {*PROVIDER_TYPES, "fake"}
    assert catalog.TYPES["kubevirt"].module == catalog.TYPES["qemu"].module


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A directory for each driver."""
    return {name: tmp_path_factory.mktemp(name) for name in NAMES}


@pytest.mark.spec("virtrigaud", 173)
@pytest.mark.parametrize(("source", "target", "storage"), CASES)
def test_what_drivers_report_decides_as_the_documents_say(source: str, target: str, storage: str, folders: dict[str, Path]) -> None:
    wanted = msgspec.convert(migration(storage=PLACES[storage]), VMMigration)
    takes = report(target, folders[target]).end(target)
    found = verdicts.transfer_verdict(wanted, report(source, folders[source]).end(source), takes)
    assert (found is not None) == bool(migrationpairs.refusal(source, target, storage)), found
    if found is None:
        assert verdicts.disks_verdict(DISKS, takes) is None


REFUSED = tuple(case for case in CASES if migrationpairs.refusal(*case))


@pytest.mark.spec("virtrigaud", 173)
@pytest.mark.parametrize(("source", "target", "storage"), REFUSED)
def test_a_refused_pair_is_named_before_anything_is_touched(
    source: str, target: str, storage: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    reports = [report(name, folders[name]) for name in (source, target)]
    named = lacking(source, target, storage)
    assert named

    @timeless
    async def script() -> None:
        async with moving(tmp_path) as world:
            for side, given in zip((world.life.driver, world.other), reports, strict=True):
                answering(side, given)
            # The manager asks again when it is started.
            await world.life.restart()
            await world.life.make(provider("fresh"))
            await world.life.until(lambda: known(world, reports))
            world.life.driver.calls.clear()
            world.other.calls.clear()
            await world.life.make(migration(storage=PLACES[storage]))
            await world.until("Failed")
            found = await world.life.condition("Failed", "move", KIND)
            assert found["reason"] == "UnsupportedByProvider"
            for each in named:
                assert f"Provider default/{each} (libvirt)" in found["message"]
            await world.clean()
            assert world.life.driver.names() == world.other.names() == [] and world.files() == []
            assert await world.claim() == 404 and await world.power(world.source) == ["On"]

    script()


def lacking(source: str, target: str, storage: str) -> list[str]:
    """The Providers to which it is due that a pair is refused."""
    gives, takes = migrationpairs.BY_NAME[source], migrationpairs.BY_NAME[target]
    named = ["lab"] if storage not in gives.exports else []
    return [*named, *(["other"] if gives.exports and storage not in takes.imports else [])]


def answering(side: RecordedDriver, given: DriverReport) -> None:
    """Have a driver report what another one does."""

    async def answer(rpc: str, _: m.WireMessage) -> m.WireMessage | None:
        return {"GetCapabilities": given.capabilities, "GetFeatures": given.features}.get(rpc)

    side.script = answer


async def known(world: Any, reports: list[DriverReport]) -> bool:
    """Return whether both Providers have what their drivers report."""
    for name, given in zip(("lab", "other"), reports, strict=True):
        seen = (await world.life.status(name, "Provider")).get("reportedCapabilities") or {}
        if sorted(seen.get("supportedImportBackends") or ()) != sorted(given.capabilities.supported_import_backends):
            return False
        if bool(seen.get("supportsDiskExport")) != given.capabilities.supports_disk_export:
            return False
    return True


SIMULATED = [(*pair, storage) for pair in PAIRS if set(pair) <= migrationends.OPENERS.keys() for storage in migrationpairs.shared(*pair)]


@pytest.mark.spec("virtrigaud", 174)
@pytest.mark.parametrize(("source", "target", "storage"), SIMULATED)
def test_a_disk_arrives_as_it_was(source: str, target: str, storage: str, tmp_path: Path) -> None:
    ends = (migrationends.OPENERS[source], migrationends.OPENERS[target])
    migrationends.run(lambda: migrationends.carried(*ends, storage, tmp_path))
