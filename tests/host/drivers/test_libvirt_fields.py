"""What classes and networks of VirtRigaud say, in a guest that a real daemon of libvirt runs."""

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from tests.coroutines import played_by
from tests.host.drivers.test_libvirt import Managed, image, run, serving

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

__all__ = ["image"]
pytestmark = [pytest.mark.needs("libvirtd", "qemu"), pytest.mark.long]
_IOPS = 321


@pytest.mark.spec("virtrigaud", 134, 135, 137, 138, 146)
@played_by(run)
async def test_disks_are_limited_and_cards_are_as_their_network_says(libvirtd: "Libvirtd", image: p.ImagePayload) -> None:
    libvirtd.add_pool("fast")
    define_filter(libvirtd, "kept")
    async with serving(libvirtd.uri) as driver:
        machine = Managed(driver, image, "limited")
        defaults = p.DiskDefaultsPayload(size_gib=2, iops=_IOPS, storage_class="fast")
        card = p.NetworkPayload(name="lan", network_name="default", mtu=1400, driver={"name": "kvm"}, filter_ref={"filter": "kept"})
        machine.request = msgspec.structs.replace(
            machine.request,
            class_json=p.encode(p.ClassPayload(cpu=1, memory_mib=256, disk_defaults=defaults)),
            networks_json=p.encode_list((card,)),
        )
        await machine.create()
        await machine.power(m.PowerOp.ON)
        await machine.until("cat /sys/class/block/vda/size", str(2 << 21))
        await machine.until("cat /sys/class/net/eth0/mtu", "1400")
        found = running(libvirtd, machine.id)
        assert found["iops"] == [_IOPS, _IOPS] and "/fast/" in found["root"] and found["filter"] == "kept"
        # What QEMU itself throttles.
        assert [each for each in throttled(libvirtd, machine.id) if each] == [_IOPS, _IOPS]
        await machine.delete()


def define_filter(libvirtd: "Libvirtd", name: str) -> None:
    """Give the daemon a packet filter without rules, which needs no iptables; it has none of its own here."""
    import libvirt  # noqa: PLC0415 - without the library, tests skip

    connection = libvirt.open(libvirtd.uri)
    try:
        connection.nwfilterDefineXML(f"<filter name='{name}'/>")
    finally:
        connection.close()


def running(libvirtd: "Libvirtd", id: str) -> dict[str, Any]:
    """The limits, the place of the root disk and the filter of a domain that runs."""
    import libvirt  # noqa: PLC0415 - without the library, tests skip

    from paddock_drivers.libvirt import xmltree  # noqa: PLC0415

    connection = libvirt.open(libvirtd.uri)
    try:
        domain = connection.lookupByUUIDString(id)
        root = xmltree.parse(domain.XMLDesc(0))
        return {
            "iops": [domain.blockIoTune(name)["total_iops_sec"] for name in ("vda", "vdb")],
            "root": xmltree.attribute(root, "devices/disk/source", "file"),
            "filter": xmltree.attribute(root, "devices/interface/filterref", "filter"),
        }
    finally:
        connection.close()


def throttled(libvirtd: "Libvirtd", id: str) -> list[int]:
    """The operations a second that QEMU allows each disk."""
    import libvirt  # noqa: PLC0415 - without the library, tests skip
    import libvirt_qemu  # noqa: PLC0415

    connection = libvirt.open(libvirtd.uri)
    try:
        answer = libvirt_qemu.qemuMonitorCommand(connection.lookupByUUIDString(id), '{"execute":"query-block"}', 0)
        return [each.get("inserted", {}).get("iops", 0) for each in json.loads(answer)["return"]]
    finally:
        connection.close()
