"""Appliances from anybody: descriptors, manifests and archives that try to lead elsewhere."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.vsphere import ovf
from paddock_drivers.vsphere.ovf import OvfDisk, OvfFile

DESCRIPTOR = """<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1">
  <References>
    <File ovf:id="file1" ovf:href="tiny-disk1.vmdk" ovf:size="70000"/>
  </References>
  <DiskSection>
    <Info>disks</Info>
    <Disk ovf:diskId="disk1" ovf:fileRef="file1" ovf:capacity="2" ovf:capacityAllocationUnits="byte * 2^30"
      ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
  </DiskSection>
  <NetworkSection><Info/><Network ovf:name="VM Network"/></NetworkSection>
  <VirtualSystem ovf:id="tiny"><Info>a machine</Info></VirtualSystem>
</Envelope>
"""


def archive(path: Path, *members: tuple[str, bytes], kinds: Mapping[str, bytes] = MappingProxyType({})) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as made:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if name in kinds:
                info.type, info.linkname, info.size = kinds[name], "/etc/passwd", 0
            made.addfile(info, io.BytesIO(data))
    return path


def test_a_descriptor_is_read() -> None:
    found = ovf.read(DESCRIPTOR.encode())
    assert found.files == (OvfFile("file1", "tiny-disk1.vmdk", 70000),)
    assert [(each.id, each.file, each.capacity) for each in found.disks] == [("disk1", "file1", 2 << 30)]
    assert isinstance(found.disks[0], OvfDisk)
    assert found.networks == ("VM Network",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<Envelope", '<!DOCTYPE Envelope [<!ENTITY x SYSTEM "file:///etc/passwd">]><Envelope'),
        ("<Envelope", '<!DOCTYPE Envelope SYSTEM "http://127.0.0.1/x.dtd"><Envelope'),
        ("a machine", "&other;"),
        ("tiny-disk1.vmdk", "../../etc/passwd"),
        ("tiny-disk1.vmdk", "/etc/passwd"),
        ("tiny-disk1.vmdk", "http://169.254.169.254/latest"),
        ("tiny-disk1.vmdk", ".."),
        ("tiny-disk1.vmdk", ""),
        ('ovf:fileRef="file1"', 'ovf:fileRef="file2"'),
        ("<Info>disks</Info>", "<a>" * 70 + "</a>" * 70),
        ('<VirtualSystem ovf:id="tiny"><Info>a machine</Info></VirtualSystem>', ""),
        ("</Envelope>", ""),
        ('encoding="UTF-8"', 'encoding="UTF-16"'),
        ("</References>", '<File ovf:id="file1" ovf:href="other.vmdk"/></References>'),
    ],
)
def test_descriptors_that_are_refused(old: str, new: str) -> None:
    text = DESCRIPTOR.replace(old, new)
    assert text != DESCRIPTOR
    if 'encoding="UTF-16"' in text:
        data = text.encode("utf-16")
    else:
        data = text.encode()
    with pytest.raises(ProviderError) as error:
        ovf.read(data)
    assert error.value.kind is ErrorKind.INVALID_SPEC
    assert "passwd" not in str(error.value)


@pytest.mark.parametrize("extra", ['ovf:compression="gzip"', 'ovf:chunkSize="1000"'])
def test_packed_files_are_not_supported(extra: str) -> None:
    with pytest.raises(ProviderError) as error:
        ovf.read(DESCRIPTOR.replace('ovf:id="file1"', f'ovf:id="file1" {extra}').encode())
    assert error.value.kind is ErrorKind.NOT_SUPPORTED


def test_an_appliance_of_several_machines_is_not_supported() -> None:
    with pytest.raises(ProviderError) as error:
        ovf.read(DESCRIPTOR.replace("</Envelope>", "<VirtualSystem/></Envelope>").encode())
    assert error.value.kind is ErrorKind.NOT_SUPPORTED


def test_manifests() -> None:
    text = f"SHA256(a.ovf)= {'AB' * 32}\r\nSHA1 (b.vmdk) = {'1' * 40}\n\n"
    assert ovf.manifest(text.encode()) == {"a.ovf": ("sha256", "ab" * 32), "b.vmdk": ("sha1", "1" * 40)}
    for bad in ("MD5(a)= 00", f"SHA1(../a)= {'1' * 40}", f"SHA256(a)= {'1' * 40}", f"SHA1(a)= {'1' * 40}\nSHA1(a)= {'2' * 40}"):
        with pytest.raises(ProviderError):
            ovf.manifest(bad.encode())


def test_the_files_of_an_archive(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.ova", ("a.ovf", b"<x/>"), ("a.mf", b"sums"), ("disk.vmdk", b"x" * 1000))
    found = ovf.archive(path)
    assert (found.descriptor, found.manifest, set(found.members)) == ("a.ovf", "a.mf", {"a.ovf", "a.mf", "disk.vmdk"})
    assert found.text("a.ovf") == b"<x/>"
    disk = found.members["disk.vmdk"]
    assert path.read_bytes()[disk.offset : disk.offset + disk.size] == b"x" * 1000


@pytest.mark.parametrize("name", ["../a.vmdk", "/etc/passwd", "folder/a.vmdk", "a.ovf"])
def test_archives_with_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "a.ova", ("a.ovf", b""), (name, b"x"))
    with pytest.raises(ProviderError) as error:
        ovf.archive(path)
    assert error.value.kind is ErrorKind.INVALID_SPEC


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_archives_with_something_that_is_no_file(tmp_path: Path, kind: bytes) -> None:
    path = archive(tmp_path / "a.ova", ("a.ovf", b""), ("disk.vmdk", b""), kinds={"disk.vmdk": kind})
    with pytest.raises(ProviderError):
        ovf.archive(path)


def test_damaged_and_shortened_archives(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.ova", ("a.ovf", b"<x/>"), ("disk.vmdk", b"x" * 100_000))
    data = path.read_bytes()
    for bad in (data[:50_000], data[:10] + b"z" + data[11:], b"\x01" * 2048, data.replace(b"a.ovf", b"a.txt")):
        path.write_bytes(bad)
        with pytest.raises(ProviderError):
            ovf.archive(path)
