import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt import volumexml
from paddock_drivers.libvirt.volumexml import VolumeOrder

POOL = """<pool type='dir'><name>ssd-1</name><capacity unit='bytes'>100</capacity><allocation unit='bytes'>40</allocation>
<available unit='bytes'>60</available><target><path>/pools/ssd/</path></target></pool>"""
VOLUME = """<volume type='file'><name>web-root.qcow2</name><capacity unit='bytes'>1048576</capacity><allocation unit='KiB'>4</allocation>
<target><path>/pools/ssd/web-root.qcow2</path><format type='qcow2'/></target>
<backingStore><path>/pools/ssd/base.raw</path><format type='raw'/></backingStore></volume>"""


def test_a_pool_of_files_has_qcow2() -> None:
    found = volumexml.parse_pool(POOL)
    assert (found.name, found.kind, found.path, found.capacity, found.available) == ("ssd-1", "dir", "/pools/ssd", 100, 60)
    assert (found.format, found.disk_kind) == ("qcow2", "file")


def test_a_pool_of_devices_has_raw() -> None:
    found = volumexml.parse_pool(POOL.replace("'dir'", "'logical'"))
    assert (found.format, found.disk_kind) == ("raw", "block")


def test_a_volume_is_read() -> None:
    found = volumexml.parse_volume(VOLUME, "ssd-1")
    assert (found.path, found.pool, found.volume) == ("/pools/ssd/web-root.qcow2", "ssd-1", "web-root.qcow2")
    assert (found.format, found.capacity, found.allocation, found.backing) == ("qcow2", 1 << 20, 4096, "/pools/ssd/base.raw")
    assert volumexml.backing_format(VOLUME) == "raw"


def test_what_a_guest_writes_to_a_device_is_no_format() -> None:
    assert volumexml.parse_volume(VOLUME.replace("'file'", "'block'")).format == "raw"


def test_a_volume_that_is_made_is_read_back() -> None:
    order = VolumeOrder(name="a&b", capacity=4096, backing="/pools/<base>", backing_format="qcow2")
    found = volumexml.parse_volume(volumexml.volume(order))
    assert (found.volume, found.capacity, found.allocation, found.backing) == ("a&b", 4096, 0, "/pools/<base>")


def test_qcow2_has_the_version_that_grows_with_snapshots() -> None:
    assert "<compat>1.1</compat>" in volumexml.volume(VolumeOrder(name="a", capacity=1))
    assert "compat" not in volumexml.volume(VolumeOrder(name="a", capacity=1, format="raw"))


@pytest.mark.spec("virtrigaud", 147)
def test_a_thick_volume_takes_its_space() -> None:
    assert volumexml.parse_volume(volumexml.volume(VolumeOrder(name="a", capacity=4096, thick=True))).allocation == 4096


def test_a_document_type_is_refused() -> None:
    with pytest.raises(ProviderError) as caught:
        volumexml.parse_pool('<!DOCTYPE pool [<!ENTITY x SYSTEM "file:///etc/passwd">]><pool><name>&x;</name></pool>')
    assert caught.value.kind is ErrorKind.INTERNAL


@pytest.mark.parametrize(("pool", "pod"), [("ssd-1", "ssd"), ("a-b-12", "a-b"), ("ssd", ""), ("ssd-x", ""), ("-1", ""), ("ssd-", "")])
def test_pods_are_pools_with_numbers(pool: str, pod: str) -> None:
    assert volumexml.pod_of(pool) == pod


@pytest.mark.spec("virtrigaud", 147)
@pytest.mark.parametrize(("type", "thick"), [("", False), ("thin", False), ("Thick", True), ("eagerzeroedthick", True), ("nvme", None)])
def test_types_of_disks(type: str, thick: bool | None) -> None:
    assert volumexml.thick(type) is thick
