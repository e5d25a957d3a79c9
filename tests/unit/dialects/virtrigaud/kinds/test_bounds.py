"""The bounds of single fields: each bound of the checklist with a value on either side of it."""

from typing import Any, NamedTuple

import pytest

from tests.unit.dialects.virtrigaud.kinds.objects import GONE, admitted, marks, said


class Case(NamedTuple):
    """A place, values that are accepted and values that are refused, and the words of the refusal."""

    items: tuple[int, ...]
    kind: str
    path: str
    good: tuple[Any, ...]
    bad: tuple[Any, ...]
    words: str = ""
    # where the refusal is reported, below the path
    below: str = ""
    company: dict[str, Any] = {}


def cards(count: int) -> list[dict[str, Any]]:
    return [{"name": f"eth{index}", "networkRef": {"name": "n"}} for index in range(count)]


def disks(count: int) -> list[dict[str, Any]]:
    return [{"name": f"disk{index}", "sizeGiB": 1} for index in range(count)]


CARD = {".networks": cards(1)}
DISK = {".disks": disks(1)}
HOOK = {".lifecycle.preStop.httpGet": {"port": 80}}
CASES = (
    Case((7,), "VirtualMachine", ".networks", (cards(10),), (cards(11),), "must have at most 10 items"),
    Case((7,), "VirtualMachine", ".disks", (disks(20),), (disks(21),), "must have at most 20 items"),
    Case((7,), "VirtualMachine", ".tags", (["t"] * 50,), (["t"] * 51,), "must have at most 50 items"),
    Case((8,), "VirtualMachine", ".disks[0].sizeGiB", (1, 65536), (0, 65537), "must be between 1 and 65536", company=DISK),
    Case((8,), "VirtualMachine", ".disks[0].name", ("a", "a" * 63), ("Data", "a_b", "-a"), "lower-case letters", company=DISK),
    Case((8,), "VirtualMachine", ".disks[0].name", ("a" * 63,), ("a" * 64,), "must be no more than 63", company=DISK),
    Case((9,), "VMClass", ".cpu", (1, 128), (0, 129), "must be between 1 and 128"),
    Case((9,), "VMClass", ".memory", ("4Gi", "8192Mi", 4294967296), ("4GB", "", "much"), "not a Kubernetes quantity"),
    Case((9,), "VMClass", ".memory", ("1Mi",), (0, "-1Gi"), "must be greater than 0"),
    Case((9,), "VMClass", ".diskDefaults.iops", (100, 100000), (99, 100001), "must be between 100 and 100000"),
    Case(
        (10,),
        "VMClass",
        ".extraConfig",
        ({f"k{index}": "v" for index in range(50)},),
        ({f"k{index}": "v" for index in range(51)},),
        "must have at most 50 items",
    ),
    Case((11,), "VirtualMachine", ".powerState", ("On", "Off", "OffGraceful"), ("on", "Suspended", ""), 'supported values: "On"'),
    Case((11,), "VirtualMachine", ".powerState", (True, False), (1,), "must be a string"),
    Case((14,), "VirtualMachine", ".lifecycle.preStop.exec.command", (["true"],), ([],), "must have at least 1 item"),
    Case((14,), "VirtualMachine", ".lifecycle.preStop.httpGet.port", (1, 65535), (0, 65536), "must be between 1", company=HOOK),
    Case((14,), "VirtualMachine", ".lifecycle.preStop.httpGet.port", (), (GONE,), "Required value", company=HOOK),
    Case((14,), "VirtualMachine", ".lifecycle.preStop.httpGet.scheme", ("HTTPS",), ("ftp",), "supported values", company=HOOK),
    Case((15,), "VirtualMachine", ".networks[0].ipAddress", ("10.0.0.5",), ("10.0.0", "10.0.0.256", "", "::1"), "IPv4", company=CARD),
    Case(
        (15,),
        "VirtualMachine",
        ".networks[0].macAddress",
        ("02:00:00:00:00:0a", "02-00-00-00-00-0A"),
        ("02:00:00:00:00", "02:00:00:00:00:0g", ""),
        "six hexadecimal pairs",
        company=CARD,
    ),
    Case((15,), "VirtualMachine", ".networks[0].prefix", (1, 32), (0, 33), "must be between 1 and 32", company=CARD),
    Case((15,), "VirtualMachine", ".networks[0].gateway", ("10.0.0.1",), ("10.0.0.1/24",), "IPv4", company=CARD),
    Case((16,), "VMNetworkAttachment", ".network.proxmox.bridge", ("vmbr0", "vmbr12"), ("br0", "vmbr", "vmbr0.1"), "vmbr and a number"),
    Case((16,), "VMNetworkAttachment", ".network.proxmox.vlanTag", (1, 4094), (0, 4095), "must be between 1 and 4094"),
    Case(
        (16,),
        "VMNetworkAttachment",
        ".network.libvirt.model",
        ("virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci"),
        ("vmxnet3", "igb"),
        "supported values",
    ),
    Case((16,), "VMNetworkAttachment", ".network.vsphere.vlan.trunkVlanIDs", ([1, 4094],), ([1, 4095],), "must be between", "[1]"),
    Case((17,), "Provider", ".type", ("vsphere", "libvirt", "proxmox", "firecracker", "qemu"), ("mock", "kvm", ""), "supported values"),
    Case(
        (17,),
        "Provider",
        ".endpoint",
        (
            "https://vcenter.example.com/sdk",
            "http://10.0.0.1:8006",
            "tcp://host:9000",
            "grpc://host.example.com:9443/path",
            "qemu:///system",
            "qemu+ssh://root@host.example.com/system",
            "qemu+tls://host:16514/system",
            "qemu+tcp://[fd00::1]:16509/system",
        ),
        ("vcenter.example.com", "ftp://host/", "tcp://host", "qemu+unix:///system", "https://", "grpc://host/path"),
        "must be http(s)://host",
    ),
    Case((17,), "Provider", ".runtime.replicas", (1, 10), (0, 11), "must be between 1 and 10"),
    Case((17,), "Provider", ".runtime.service.port", (1024, 65535), (1023, 65536), "must be between 1024 and 65535"),
    Case((17,), "Provider", ".runtime.mode", ("Remote",), ("InProcess", ""), 'supported values: "Remote"'),
    Case(
        (),
        "Provider",
        ".runtime.image",
        ("a/b:v1", "localhost:5000/a", "r.example.com:5000/a/b:v1", "a@sha256:" + "0" * 64, "a"),
        ("", "a b", "a:", "a@sha256:0"),
        "must be a container image reference",
    ),
    Case((18,), "VMClass", ".securityProfile.tpmVersion", ("1.2", "2.0"), ("3.0", "2"), 'supported values: "1.2", "2.0"'),
    Case((18,), "VMClass", ".securityProfile.tpmVersion", (), (2.0, 1.2), "must be a string"),
    Case((20,), "VMMigration", ".target.name", ("vm-2",), (GONE,), "Required value"),
    Case((20,), "VMMigration", ".target.providerRef", ({"name": "p"},), (GONE,), "Required value"),
    Case(
        (),
        "VMImage",
        ".source.registry.image",
        ("quay.io/a/b:v1", "localhost:5000/b:v1", "quay.io/a/b@sha256:" + "a" * 64, "b:v1@sha256:" + "a" * 64),
        ("quay.io/a/b", "", "a b:c", "a@md5:0"),
        "image reference with a tag or a digest",
    ),
    Case((), "VMImage", ".source.vsphere.ovaURL", ("https://x/a.ova", "http://x/a.ovf"), ("https://x/a.qcow2",), "URL of an .ova"),
    Case((), "VMImage", ".source.libvirt.url", ("ftp://x/a", "https://x/a"), ("file:///a", "/a"), "http, https or ftp"),
    Case((), "VMSnapshot", ".snapshotConfig.name", ("a_b-C", "1"), ("-a", "a b", ""), "letters, digits"),
    Case((), "VMMigration", ".storage.pvc.size", ("100Gi", "1.5T"), ("100", "100GB", "much"), "a number with a unit"),
)


def every(side: str) -> list[Any]:
    return [
        # Every worker must find the same names, so the marker without a printed form gets a word.
        pytest.param(case, value, id=f"{case.kind}{case.path} {'gone' if value is GONE else repr(value)}"[:90], marks=marks(case.items))
        for case in CASES
        for value in getattr(case, side)
    ]


@pytest.mark.parametrize(("case", "value"), every("bad"))
def test_refused(case: Case, value: Any) -> None:
    found = said(admitted(case.kind, {**case.company, case.path: value}))
    place = f"spec{case.path}{case.below}"
    assert [(field, case.words in message) for field, message in found] == [(place, True)], found


@pytest.mark.parametrize(("case", "value"), every("good"))
def test_accepted(case: Case, value: Any) -> None:
    assert said(admitted(case.kind, {**case.company, case.path: value})) == []


@pytest.mark.spec("virtrigaud", 16)
def test_addresses_come_from_dhcp_when_nothing_is_said() -> None:
    admission = admitted("VMNetworkAttachment", {".ipAllocation": {}})
    assert admission.data["spec"]["ipAllocation"] == {"type": "DHCP"}


@pytest.mark.spec("virtrigaud", 14)
def test_requests_go_by_http_when_nothing_is_said() -> None:
    admission = admitted("VirtualMachine", HOOK)
    assert admission.data["spec"]["lifecycle"]["preStop"]["httpGet"] == {"port": 80, "scheme": "HTTP"}


@pytest.mark.parametrize("path", [".networks", ".disks"])
def test_names_are_unique_in_a_machine(path: str) -> None:
    entry = (cards if path == ".networks" else disks)(1)
    found = said(admitted("VirtualMachine", {path: entry * 2}))
    assert [field for field, _ in found] == [f"spec{path}[1].name"]
    assert "Duplicate value" in found[0][1]
