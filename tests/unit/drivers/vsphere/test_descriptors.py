"""Descriptors and paths: what somebody else has written leads nowhere."""

import pytest

from paddock.contract.errors import ProviderError
from paddock_drivers.vsphere import descriptors, paths
from paddock_drivers.vsphere.descriptors import FlatDisk
from paddock_drivers.vsphere.paths import DatastorePath


def test_a_descriptor_says_what_was_written() -> None:
    disk = FlatDisk(5 << 30, "a-flat.vmdk")
    assert descriptors.read(descriptors.written(disk)) == disk


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"a-flat.vmdk"', '"../other/secret-flat.vmdk"'),
        ('"a-flat.vmdk"', '"[other] secret-flat.vmdk"'),
        ("parentCID=ffffffff", 'parentCID=12345678\nparentFileNameHint="base.vmdk"'),
        ("VMFS", "VMFSSPARSE"),
        ("VMFS", "VMFSRDM"),
        ("# Disk DescriptorFile", "KDMV"),
        ("# The Disk Data Base", 'RW 1 VMFS "b-flat.vmdk"'),
    ],
)
def test_a_disk_that_is_not_one_file_of_its_own_is_refused(old: str, new: str) -> None:
    text = descriptors.written(FlatDisk(1 << 20, "a-flat.vmdk")).decode().replace(old, new)
    with pytest.raises(ProviderError):
        descriptors.read(text.encode())


def test_paths() -> None:
    path = paths.parse("[my store] vm one/disk.vmdk")
    assert path == DatastorePath("my store", "vm one/disk.vmdk")
    assert str(path.beside("disk-flat.vmdk")) == "[my store] vm one/disk-flat.vmdk"
    assert str(path.folder) == "[my store] vm one"
    assert path.target("lab/DC 1") == "/folder/vm%20one/disk.vmdk?dcPath=lab%2FDC%201&dsName=my%20store"


@pytest.mark.parametrize("text", ["", "disk.vmdk", "[a] ../b", "[a] b/../../c", "[a]\nb", "[] x", "[a[b]] c"])
def test_texts_that_are_no_paths(text: str) -> None:
    with pytest.raises(ProviderError):
        paths.parse(text)
