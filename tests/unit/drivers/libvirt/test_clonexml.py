"""The definition of a clone: nothing in it is its source's own."""

import msgspec
import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.libvirt import clonexml, domainview, marks, xmltree
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk
from paddock_drivers.libvirt.storageport import DomainDisk

UUID = "0f3b1a52-0000-4000-8000-000000000001"
CLONE = "0f3b1a52-0000-4000-8000-000000000002"
KNOWN = MachineMarks(
    owner="uid-web", disks=(MarkedDisk("root", "/pool/web-root.qcow2"), MarkedDisk(marks.SEED_DISK, "/pool/web-cloud-init.iso"))
)
DOMAIN = f"""<domain type='qemu'><name>web</name><uuid>{UUID}</uuid><title>mine</title><genid>{UUID}</genid><metadata/>
<memory unit='MiB'>64</memory><vcpu>1</vcpu><os firmware='efi'><type arch='x86_64'>hvm</type>
<nvram template='/usr/share/OVMF/VARS.fd'>/var/lib/libvirt/qemu/nvram/web_VARS.fd</nvram></os><devices>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/pool/web-root.qcow2'/>
<target dev='vda' bus='virtio'/><boot order='1'/></disk>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/pool/web-cloud-init.iso'/>
<target dev='vdz' bus='virtio'/><readonly/></disk>
<interface type='network'><mac address='52:54:00:00:00:01'/><source network='default'/>
<target dev='web-tap'/><alias name='ua-lan'/></interface>
<channel type='unix'><source mode='bind' path='/run/web.agent'/><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
<serial type='pty'><log file='/var/log/web.log'/></serial>
<graphics type='vnc' port='5907' autoport='yes'/></devices></domain>"""


def source() -> domainview.DomainView:
    view = domainview.parse(DOMAIN)
    metadata = view.root.find("metadata")
    assert metadata is not None
    metadata.append(marks.element(KNOWN))
    return domainview.of_element(view.root)


def made(given: CloneCustomization = CloneCustomization()) -> tuple[str, bytes]:  # noqa: B008 - frozen
    view = source()
    root = clonexml.define(view, "copy", CLONE, MachineMarks(state=marks.INCOMPLETE))
    content = clonexml.documents(root, "copy", CLONE, given, seeded=True)
    disk = DomainDisk(name="root", path="/other/copy-root.qcow2", pool="other", volume="copy-root.qcow2")
    seed = DomainDisk(name=marks.SEED_DISK, path="/other/copy-cloud-init.iso", pool="other", volume="copy-cloud-init.iso", format="raw")
    return xmltree.text(clonexml.with_disks(root, {"vda": disk}, seed, "/pool/web-cloud-init.iso")), content


def test_nothing_is_the_sources_own() -> None:
    text, _ = made()
    for own in (UUID, "/pool/", "52:54:00:00:00:01", "web-tap", "/run/web", "web.log", "5907", "web_VARS", "mine", "uid-web"):
        assert own not in text, own
    found = domainview.parse(text)
    assert (found.name, found.uuid, found.marks and found.marks.complete) == ("copy", CLONE, False)
    assert [(each.target, each.path, each.format, each.readonly) for each in found.disks] == [
        ("vda", "/other/copy-root.qcow2", "qcow2", False),
        ("vdz", "/other/copy-cloud-init.iso", "raw", True),
    ]


def test_the_source_is_left_alone() -> None:
    view = source()
    before = xmltree.text(view.root)
    clonexml.define(view, "copy", CLONE, MachineMarks())
    assert xmltree.text(view.root) == before


def test_a_clone_is_another_instance_to_its_guest() -> None:
    _, content = made(CloneCustomization(hostname="other", user_data=b"#cloud-config\n# mine\n"))
    assert CLONE.encode() in content and b"other" in content and b"# mine" in content and UUID.encode() not in content


def test_addresses_go_to_the_interface_of_their_name() -> None:
    card = NetworkPayload(name="lan", static_ip="10.0.0.9", prefix=24, mac_address="52-54-00-AA-BB-CC")
    text, content = made(CloneCustomization(networks=(card,)))
    assert "52:54:00:aa:bb:cc" in text and b"10.0.0.9/24" in content and b"52:54:00:aa:bb:cc" in content
    with pytest.raises(ProviderError) as caught:
        made(CloneCustomization(networks=(msgspec.structs.replace(card, name="wan"),)))
    assert caught.value.kind is ErrorKind.INVALID_SPEC


def test_disks_keep_their_names() -> None:
    view = source()
    (root,) = clonexml.disks_of(view)
    assert clonexml.name_of(view, root) == "root"
    foreign = domainview.parse(DOMAIN)
    assert [clonexml.name_of(foreign, each) for each in clonexml.disks_of(foreign)] == ["root"]
