"""Definitions of domains, what they are read as, and what cannot be."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract import payloads as p
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt import definition, domainview, editing, marks, support, xmltree
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from paddock_drivers.libvirt.definition import DomainPlan
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk
from paddock_drivers.libvirt.settings import LibvirtDriverSettings
from paddock_drivers.libvirt.storageport import DomainDisk

HERE = LibvirtDriverSettings(endpoint="qemu:///system", credentials=Path("/nonexistent"))
KVM = HypervisorAbilities(
    type="kvm", vendor="Intel", efi=True, secure_boot=True, tpm=True, mhz=2000, cpu_modes=frozenset(("host-passthrough", "maximum"))
)
TCG = msgspec.structs.replace(KVM, type="qemu", cpu_modes=frozenset(("maximum",)))
ENCRYPTED = p.SecurityPayload(require_encryption=True)
UUID = marks.machine_uuid("somebody")


def described(hardware: p.ClassPayload | None = None, **changes: Any) -> MachineDescription:
    plain = {"name": "web", "hardware": hardware or p.ClassPayload(cpu=2, memory_mib=1024), "image": p.ImagePayload(template_name="base")}
    return MachineDescription(**{**plain, **changes})


def built(found: MachineDescription, abilities: HypervisorAbilities = KVM) -> domainview.DomainView:
    disks = tuple(DomainDisk(name=name, path=f"/pool/{name}", pool="default", volume=name, bytes=1 << 30) for name in ("root", "data"))
    seed = DomainDisk(name=marks.SEED_DISK, path="/pool/seed", pool="default", volume="seed", format="raw")
    known = MachineMarks(owner="somebody", disks=tuple(MarkedDisk(each.name, each.path, each.bytes) for each in (*disks, seed)))
    plan = DomainPlan(given=found, uuid=UUID, disks=disks, seed=seed, marks=known)
    text = definition.build(plan, abilities, HERE)
    assert text == definition.build(plan, abilities, HERE)
    return domainview.parse(text)


def test_a_machine_is_read_as_it_was_written() -> None:
    cards = (p.NetworkPayload(name="lan", bridge="br0", vlan=7), p.NetworkPayload(network_name="wan", model="e1000"))
    view = built(described(networks=cards))
    assert (view.name, view.uuid, view.type, view.cpus, view.memory_mib, view.agent) == ("web", UUID, "kvm", 2, 1024, True)
    assert [(each.target, each.path, each.serial) for each in view.disks] == [
        ("vda", "/pool/root", "root"),
        ("vdb", "/pool/data", "data"),
        ("vdz", "/pool/seed", "cloud-init"),
    ]
    assert [(each.kind, each.source, each.model) for each in view.interfaces] == [("bridge", "br0", "virtio"), ("network", "wan", "e1000")]
    assert view.interfaces[0].element.find("virtualport[@type='openvswitch']") is not None
    assert view.disk("") == view.disk("root") == view.disk("vda") and view.disk("data") == view.disks[1] and view.disk("none") is None


def test_room_to_grow_is_made_only_if_it_is_asked_for() -> None:
    plain, hot = built(described()), p.PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True)
    assert plain.most_cpus == 2 and plain.root.find("maxMemory") is None
    view = built(described(p.ClassPayload(cpu=2, memory_mib=1024, performance_profile=hot)))
    assert (view.cpus, view.most_cpus) == (2, 8) and domainview.size(view.root.find("maxMemory")) == 4 << 30
    assert xmltree.attribute(view.root, "cpu/numa/cell", "cpus") == "0-7"


def test_security_of_a_class() -> None:
    security = p.SecurityPayload(secure_boot=True, tpm_enabled=True, vtd_enabled=True)
    root = built(described(p.ClassPayload(cpu=1, memory_mib=512, security_profile=security))).root
    assert xmltree.attribute(root, "os", "firmware") == "efi" and xmltree.attribute(root, "os/loader", "secure") == "yes"
    assert {each.get("name"): each.get("enabled") for each in root.iterfind("os/firmware/feature")} == {
        "secure-boot": "yes",
        "enrolled-keys": "yes",
    }
    assert root.find("features/smm") is not None and root.find("devices/tpm/backend[@version='2.0']") is not None
    assert root.find("devices/iommu[@model='intel']") is not None


def test_processors_are_the_hosts_where_they_can_be() -> None:
    assert xmltree.attribute(built(described()).root, "cpu", "mode") == "host-passthrough"
    assert xmltree.attribute(built(described(), TCG).root, "cpu", "mode") == "maximum"
    nested = p.ClassPayload(cpu=1, memory_mib=512, performance_profile=p.PerformancePayload(nested_virtualization=True))
    assert built(described(nested)).root.find("cpu/feature[@name='vmx'][@policy='require']") is not None
    assert support.limitations(described(nested), TCG) == ("nestedVirtualization has no effect: the hypervisor emulates instructions",)


def test_limits_and_bandwidth() -> None:
    limits = p.LimitsPayload(cpu_shares=512, cpu_limit=1000, memory_reservation_mib=512)
    card = p.NetworkPayload(name="lan", qos=p.QosPayload(ingress_limit=8_000_000, dscp=3))
    found = described(p.ClassPayload(cpu=1, memory_mib=512, resource_limits=limits), networks=(card,))
    root = built(found).root
    assert (xmltree.content(root, "cputune/shares"), xmltree.content(root, "cputune/global_quota")) == ("512", "50000")
    assert xmltree.attribute(root, "devices/interface/bandwidth/inbound", "average") == "1000"
    assert support.limitations(found, KVM) == (
        "memoryReservation has no effect on libvirt",
        "priority and dscp of network lan have no effect on libvirt",
    )


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"hardware": p.ClassPayload(cpu=999, memory_mib=512)}, ErrorKind.INVALID_SPEC),
        ({"hardware": p.ClassPayload(cpu=1, memory_mib=512, firmware="coreboot")}, ErrorKind.INVALID_SPEC),
        ({"hardware": p.ClassPayload(cpu=1, memory_mib=512, gpu=p.GpuPayload(count=1))}, ErrorKind.NOT_SUPPORTED),
        (
            {"hardware": p.ClassPayload(cpu=1, memory_mib=512, security_profile=p.SecurityPayload(require_encryption=True))},
            ErrorKind.NOT_SUPPORTED,
        ),
        ({"networks": (p.NetworkPayload(name="a", model="vhost"),)}, ErrorKind.NOT_SUPPORTED),
        ({"networks": (p.NetworkPayload(name="a", mac_address="zz"),)}, ErrorKind.INVALID_SPEC),
        ({"networks": (p.NetworkPayload(name="a", bridge="br0'/>"),)}, ErrorKind.INVALID_SPEC),
        ({"networks": (p.NetworkPayload(name="a", security=p.NetworkSecurityPayload(firewall={"a": 1})),)}, ErrorKind.NOT_SUPPORTED),
        ({"disks": (p.DiskPayload(name="a", size_gib=1, scsi=p.ScsiPayload()),)}, ErrorKind.NOT_SUPPORTED),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as refused:
        support.check(described(**changes), KVM)
    assert refused.value.kind is kind


def test_an_edit_leaves_what_others_wrote() -> None:
    text = """<domain type='kvm'><name>old</name><uuid>u</uuid><metadata><a xmlns='urn:x'/></metadata><memory unit='GiB'>1</memory>
      <vcpu>1</vcpu><cpu><topology sockets='1' dies='1' cores='1' threads='1'/></cpu><devices><memory model='dimm'/><watchdog/></devices>
      </domain>"""
    view = domainview.parse(text)
    root = editing.resized(view, p.ClassPayload(cpu=4, memory_mib=2048), KVM)
    again = domainview.parse(xmltree.text(editing.marked(root, MachineMarks(owner="me"))))
    assert (again.cpus, again.memory_mib, again.marks) == (4, 2048, MachineMarks(owner="me"))
    assert again.root.find("devices/watchdog") is not None and again.root.find("metadata/{urn:x}a") is not None
    assert again.root.find("devices/memory") is None and xmltree.attribute(again.root, "cpu/topology", "cores") == "4"


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=40))
def test_marks_are_read_as_they_were_written(text: str) -> None:
    known = MachineMarks(owner=text.strip(), name="a", disks=(MarkedDisk("d", text, 5),), notes={"n": text})
    assert marks.parse(xmltree.text(marks.element(known))) == known


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<a>",
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        "<a>" + "x" * (9 << 20) + "</a>",
    ],
)
def test_xml_with_a_document_type_is_not_read(text: str) -> None:
    with pytest.raises(ProviderError, match="cannot read the XML"):
        xmltree.parse(text)


# --- fields of classes and networks ---------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 134)
def test_the_operations_of_each_new_disk_are_limited() -> None:
    hardware = p.ClassPayload(cpu=1, memory_mib=512, disk_defaults=p.DiskDefaultsPayload(size_gib=1, iops=500))
    disk = DomainDisk(name="data", path="/pool/data", pool="default", volume="data", bytes=1 << 30)
    element = definition.disk_element(definition.limited(disk, hardware), "vdb")
    assert xmltree.content(element, "iotune/total_iops_sec") == "500"
    assert definition.disk_element(definition.limited(disk, p.ClassPayload(cpu=1, memory_mib=512)), "vdb").find("iotune") is None


@pytest.mark.spec("virtrigaud", 137)
@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ({"name": "kvm", "queues": 4}, {"name": "vhost", "queues": "4"}),
        ({"txMode": "timer", "ioEventFD": True, "eventIDX": False}, {"txmode": "timer", "ioeventfd": "on", "event_idx": "off"}),
        ({"name": "vfio"}, None),
    ],
)
def test_the_driver_of_an_interface(driver: dict[str, Any], expected: dict[str, str] | None) -> None:
    found = described(networks=(p.NetworkPayload(name="lan", driver=driver),))
    element = built(found).root.find("devices/interface/driver")
    assert (dict(element.attrib) if element is not None else None) == expected
    named = [each for each in support.limitations(found, KVM) if "driver" in each]
    assert bool(named) == (expected is None)
    other = described(networks=(p.NetworkPayload(name="lan", model="e1000", driver=driver),))
    assert built(other).root.find("devices/interface/driver") is None
    assert "driver of network lan has no effect: it is for the model virtio" in support.limitations(other, KVM)


@pytest.mark.spec("virtrigaud", 138)
def test_the_filter_of_an_interface_comes_before_its_security() -> None:
    wanted = {"filter": "clean-traffic", "parameters": {"IP": "10.0.0.5"}}
    security = p.NetworkSecurityPayload(forbid_forged_transmits=True)
    found = described(networks=(p.NetworkPayload(name="lan", filter_ref=wanted, security=security, mtu=9000),))
    root = built(found).root
    assert [each.get("filter") for each in root.iterfind("devices/interface/filterref")] == ["clean-traffic"]
    assert [dict(each.attrib) for each in root.iterfind("devices/interface/filterref/parameter")] == [{"name": "IP", "value": "10.0.0.5"}]
    assert xmltree.attribute(root, "devices/interface/mtu", "size") == "9000"
    assert "security of network lan gives way to its filterRef" in support.limitations(found, KVM)


@pytest.mark.spec("virtrigaud", 145)
@pytest.mark.parametrize(("firmware", "expected"), [("BIOS", ""), ("", ""), ("UEFI", "efi"), ("EFI", "efi")])
def test_the_firmware_of_a_class(firmware: str, expected: str) -> None:
    root = built(described(p.ClassPayload(cpu=1, memory_mib=512, firmware=firmware))).root
    assert xmltree.attribute(root, "os", "firmware") == expected


@pytest.mark.spec("virtrigaud", 117, "install gives the machine the channel of its guest agent")
@pytest.mark.parametrize("policy", ["install", "skip"])
def test_a_machine_has_the_channel_of_its_agent(policy: str) -> None:
    root = built(described(p.ClassPayload(cpu=1, memory_mib=512, guest_tools_policy=policy))).root
    assert root.find("devices/channel/target[@name='org.qemu.guest_agent.0']") is not None
