"""Every ordered pair of drivers that can migrate machines, and every storage that both have: the disk arrives with the bytes that it had.

The own engine, libvirt's and vSphere's machines are those of a real Paddock, a real libvirtd and VMware's simulator. Pairs of simulated
drivers alone are in tests/unit/drivers/test_migrationpairs.py.
"""

import itertools
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from pyVmomi import vim

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.driver import Driver
from paddock.dialects.virtrigaud.translate import described
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock_drivers.vsphere import factory as vsphere_factory
from paddock_drivers.vsphere.inventory import VSphereInventory
from tests.host import guests
from tests.host.runs.conftest import Host
from tests.kit.providers import migrationends
from tests.kit.providers.migrationends import CONTENT, SIZE, MigrationEnd, MigrationStaging, Opener
from tests.reference.vsphere.vcenter import Simulator
from tools import migrationpairs

pytest.importorskip("libvirt", reason="needs libvirtd: no libvirt-python")
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.driver import LibvirtDriver
from paddock_drivers.libvirt.settings import LibvirtDriverSettings
from tests.host.drivers.libvirtd import Libvirtd

pytestmark = pytest.mark.long
REAL = ("qemu", "libvirt", "vsphere")
CASES = [
    (*pair, storage)
    for pair in itertools.product(migrationpairs.BY_NAME, repeat=2)
    if set(pair) & set(REAL)
    for storage in migrationpairs.shared(*pair)
]


@asynccontextmanager
async def qemu(host: Host, image: str, place: Path, staging: MigrationStaging) -> AsyncIterator[MigrationEnd]:
    """The driver of the own engine, as `paddock up` makes it, on the API of a server."""
    reach = msgspec.structs.replace(staging.settings, mounts={})
    settings = KubeVirtDriverSettings(
        translation=described.translate, staging=reach, scratch=staging.folder, image_size="64Mi", disk_size="64Mi", poll_seconds=0.1
    )
    async with host.client() as client:
        end = MigrationEnd("qemu", KubeVirtDriver(client, settings), p.ImagePayload(template_name="content"))
        spec = json.dumps({"source": {"http": {"url": image}}})
        prepared = await end.driver.image_prepare(m.ImagePrepareRequest(image_json=spec, target_name="content"))
        await end.finished(prepared.task)
        end = end._replace(image=p.ImagePayload(template_name=prepared.prepared_image_id))
        await end.made("source")
        yield end


@asynccontextmanager
async def libvirt(daemon: Libvirtd, image: Path, place: Path, staging: MigrationStaging) -> AsyncIterator[MigrationEnd]:
    """Libvirt's driver on a daemon."""
    settings = LibvirtDriverSettings(
        endpoint=daemon.uri,
        credentials=place,
        staging=staging.folder,
        mounts=dict(staging.settings.mounts),
        scratch=staging.folder,
        poll_seconds=0.1,
    )
    connection = LibvirtConnection(settings)
    driver = LibvirtDriver(connection)
    try:
        end = MigrationEnd("libvirt", driver, p.ImagePayload(path=str(image), format="qcow2"))
        await end.made("source")
        yield end
    finally:
        await driver.close()


@asynccontextmanager
async def vsphere(simulator: Simulator, place: Path, staging: MigrationStaging) -> AsyncIterator[MigrationEnd]:
    """VSphere's driver on the simulator."""
    mounts = ",".join(f"{name}={path}" for name, path in staging.settings.mounts.items())
    context = msgspec.structs.replace(
        simulator.context(PROVIDER_NFS_MOUNTS=mounts, PROVIDER_IMAGE_HOSTS="127.0.0.1"), staging=staging.folder
    )
    async with vsphere_factory.make(context) as driver:
        end = MigrationEnd("vsphere", driver, p.ImagePayload(template_name="tmpl"))
        await _written(simulator, driver, await end.made("source"))
        yield end


async def _written(simulator: Simulator, driver: Driver, vm_id: str) -> None:
    """Give the machine's disk its content, in the directory that a datastore of the simulator is."""
    path = (await driver.get_disk_info(m.GetDiskInfoRequest(vm_id=vm_id))).path
    name, _, rest = path.removeprefix("[").partition("] ")
    store = VSphereInventory(simulator.connection()).named(vim.Datastore, name).ref.summary.url
    with Path(store, rest.replace(".vmdk", "-flat.vmdk")).open("r+b") as flat:
        flat.write(CONTENT)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk with the content, as an image."""
    raw = tmp_path_factory.mktemp("disk") / "content.raw"
    raw.write_bytes(CONTENT.ljust(SIZE, b"\0"))
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, raw.with_suffix(".qcow2")], check=True, timeout=120)
    return raw.with_suffix(".qcow2")


@pytest.fixture(scope="module")
def address(disk: Path) -> Iterator[str]:
    """Where the image is served."""
    with guests.shelf(disk.parent / "web") as shelf:
        yield shelf.put(disk)


@pytest.fixture
def openers(request: pytest.FixtureRequest, disk: Path) -> dict[str, Opener]:
    """What opens the ends of this case; the real ones are started when they are first needed."""
    found = dict(migrationends.OPENERS)
    names = set(request.node.callspec.params.values())
    if "qemu" in names:
        found["qemu"] = partial(qemu, request.getfixturevalue("paddock"), request.getfixturevalue("address"))
    if "libvirt" in names:
        daemon: Libvirtd = request.getfixturevalue("libvirtd")
        image = daemon.pool / "content.qcow2"
        image.write_bytes(disk.read_bytes())
        found["libvirt"] = partial(libvirt, daemon, image)
    if "vsphere" in names:
        found["vsphere"] = partial(vsphere, request.getfixturevalue("vcenter"))
    return found


@pytest.mark.spec("virtrigaud", 174)
@pytest.mark.parametrize(("source", "target", "storage"), CASES)
def test_a_disk_arrives_as_it_was(source: str, target: str, storage: str, openers: dict[str, Opener], tmp_path: Path) -> None:
    migrationends.run(lambda: migrationends.carried(openers[source], openers[target], storage, tmp_path))
