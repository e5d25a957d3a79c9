"""Exports by lease, with a double of vSphere: which file is fetched, what is kept alive, how a lease ends, and the bytes."""

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pyVmomi import vim, vmodl

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.vsphere import failures, leases
from paddock_drivers.vsphere.disks import VSphereDisk
from paddock_drivers.vsphere.files import FileServer
from paddock_drivers.vsphere.identifiers import VSphereTaskId
from paddock_drivers.vsphere.leases import LeaseFile
from paddock_drivers.vsphere.stores import StoreContext
from paddock_drivers.vsphere.transfers import TransferSettings, VSphereTransfers
from tests.reference.vsphere import appliances

T = TypeVar("T")
DISK = VSphereDisk("root", 2000, "0:0", appliances.CAPACITY, "[store] vm/vm.vmdk", "thin")
CONTENT = b"lease" * 3000


class Threads:
    """A session whose work is done at once."""

    async def run(self, work: Callable[[], T], what: str = "") -> T:
        with failures.mapped(*([what] if what else [])):
            return work()


class Lease:
    """A lease that notes its calls."""

    def __init__(self, urls: list[Any], state: str = "ready", error: Any = None) -> None:
        self.calls: list[str] = []
        self.state, self.error = state, error
        self.info = vim.HttpNfcLease.Info(deviceUrl=urls)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)


class Machine:
    """A machine that is off."""

    id, name, is_live, disks = "a-machine", "vm", False, (DISK,)

    def __init__(self, export: Callable[[], Any]) -> None:
        self.ref = self
        self.ExportVm = export


class Store:
    """A store that has nothing but an endpoint."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def server(self) -> FileServer:
        return FileServer(self._origin, "vmware_soap_session=secret")

    def context(self, _: Any = None) -> StoreContext:
        return StoreContext(None, "DC0")


def url(key: str, address: str = "", target: str = "", *, disk: bool = True) -> Any:
    return vim.HttpNfcLease.DeviceUrl(key=key, importKey="", url=address, sslThumbprint="", disk=disk, targetId=target)


def exported(tmp_path: Path, origin: str, lease: Lease) -> tuple[str, bytes]:
    machine = Machine(lambda: lease)

    class Lookup:
        def machine(self, _: str) -> Machine:
            return machine

    settings = TransferSettings(staging=StagingSettings(claims=tmp_path), scratch=tmp_path)
    parts: list[Any] = [Threads(), Lookup(), Store(origin), None]
    transfers = VSphereTransfers(parts[0], parts[1], parts[2], parts[3], settings, SystemClock())

    async def work() -> str:
        request = m.ExportDiskRequest(vm_id="a-machine", destination_url="pvc://claim/disk.raw", format="raw")
        response = await transfers.export_disk(request)
        assert response.task is not None
        task = VSphereTaskId.parse(response.task.id)
        assert task is not None
        while not (state := transfers.status(task)).done:
            await asyncio.sleep(0.01)
        return state.error

    error = asyncio.run(work())
    stored = tmp_path / "claim" / "disk.raw"
    return error, stored.read_bytes() if stored.exists() else b""


@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
def test_the_disk_of_a_lease_has_its_bytes_and_the_lease_is_completed(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "disk-0.vmdk").write_bytes(appliances.packed_disk(tmp_path / "web", CONTENT))
    with appliances.serving(tmp_path / "web") as origin:
        lease = Lease(
            [
                url("/vm-7/VirtualCdrom1:0", f"{origin}/none.iso", disk=False),
                url("/vm-7/ParaVirtualSCSIController0:1", f"{origin}/none.vmdk"),
                url("/vm-7/ParaVirtualSCSIController0:0", "http://*/disk-0.vmdk"),
            ]
        )
        error, data = exported(tmp_path, origin, lease)
    assert error == ""
    assert hashlib.sha256(data).digest() == hashlib.sha256(CONTENT + bytes(appliances.CAPACITY - len(CONTENT))).digest()
    assert lease.calls == ["HttpNfcLeaseProgress", "HttpNfcLeaseComplete"]


def test_a_broken_transfer_aborts_its_lease_and_leaves_no_export(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    with appliances.serving(tmp_path / "web") as origin:
        lease = Lease([url("/vm-7/ParaVirtualSCSIController0:0", f"{origin}/none.vmdk")])
        error, data = exported(tmp_path, origin, lease)
    assert "cannot be read" in error and data == b""
    assert lease.calls == ["HttpNfcLeaseAbort"]


def test_a_lease_with_an_error_says_it(tmp_path: Path) -> None:
    error, _ = exported(tmp_path, "http://127.0.0.1:1", Lease([], "error", vmodl.fault.SystemError(msg="the host is away")))
    assert "the host is away" in error


def test_the_file_of_a_disk() -> None:
    files = (LeaseFile("a", "/vm-7/disk:0", target="other.vmdk"), LeaseFile("b", "/vm-7/disk:1", target="vm.vmdk"))
    assert leases.file_of(files, DISK, 0).url == "b"
    assert leases.file_of((LeaseFile("a", "x"), LeaseFile("b", "y")), DISK, 1).url == "b"
    with pytest.raises(ProviderError) as caught:
        leases.file_of((LeaseFile("a", "x"),), DISK, 3)
    assert caught.value.kind is ErrorKind.CONFLICT


def test_the_cookie_goes_to_the_endpoint_alone() -> None:
    server = FileServer("https://vcenter.example", "session")
    assert server.at("https://*/nfc/1/disk.vmdk") == (FileServer("https://vcenter.example", "session"), "/nfc/1/disk.vmdk")
    elsewhere, target = server.at("https://esx1.example/nfc/1/disk.vmdk?x=1")
    assert (elsewhere.origin, elsewhere.cookie, target) == ("https://esx1.example", "", "/nfc/1/disk.vmdk?x=1")
    assert "session" not in repr(server)
