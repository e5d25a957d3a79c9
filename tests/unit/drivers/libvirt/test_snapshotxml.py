import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt import domainview, snapshotxml
from paddock_drivers.libvirt.domainview import DomainView
from paddock_drivers.libvirt.snapshotxml import SnapshotWay

DOMAIN = """<domain type='qemu'><name>web</name><uuid>0f3b1a52-0000-4000-8000-000000000001</uuid>
<memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64'>hvm</type>{loader}</os><devices>
<disk type='file' device='disk'><driver name='qemu' type='{kind}'/><source file='/pool/web-root.qcow2'/>
<target dev='vda' bus='virtio'/></disk>
<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/pool/web-cloud-init.iso'/>
<target dev='vdz'/><readonly/></disk>
<disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk></devices></domain>"""
FLASH = "<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE.fd</loader>"


def machine(*, kind: str = "qcow2", loader: str = "") -> DomainView:
    return domainview.parse(DOMAIN.format(kind=kind, loader=loader))


@pytest.mark.parametrize(
    ("live", "memory", "loader", "wanted"),
    [
        (False, False, "", SnapshotWay.WHOLE),
        # A machine that is off has no memory to keep.
        (False, True, FLASH, SnapshotWay.WHOLE),
        (True, True, "", SnapshotWay.WHOLE),
        (True, False, "", SnapshotWay.LIVE_DISKS),
        (True, False, FLASH, SnapshotWay.LIVE_DISKS),
    ],
)
def test_how_a_snapshot_is_taken(live: bool, memory: bool, loader: str, wanted: SnapshotWay) -> None:
    assert snapshotxml.way(machine(loader=loader), live=live, memory=memory) is wanted


@pytest.mark.parametrize(("kind", "loader", "word"), [("raw", "", "vda is raw"), ("qcow2", FLASH, "UEFI")])
def test_what_libvirt_cannot_bring_back_is_refused(kind: str, loader: str, word: str) -> None:
    with pytest.raises(ProviderError, match=word) as caught:
        snapshotxml.way(machine(kind=kind, loader=loader), live=True, memory=True)
    assert caught.value.kind is ErrorKind.NOT_SUPPORTED


def test_the_documents_of_a_guest_are_in_no_snapshot() -> None:
    found = snapshotxml.parse(snapshotxml.definition("one", "text", 1700000000, machine()))
    assert (found.name, found.memory) == ("one", False)
    assert [(each.target, each.path, each.internal) for each in found.disks] == [("vda", "/pool/web-root.qcow2", True)]
    assert found.domain is not None and found.domain.cpus == 1


def test_a_description_cannot_break_the_document() -> None:
    found = snapshotxml.order("one", "</description><state>\x00running", machine())
    assert "<state>" not in found and "\x00" not in found


@pytest.mark.parametrize("hint", ["before", "a.b_c-1"])
def test_a_plain_hint_is_the_name(hint: str) -> None:
    assert snapshotxml.name_of(hint) == hint


def test_other_hints_have_names_of_their_own() -> None:
    names = [snapshotxml.name_of(each) for each in ("", "a b", "a/b", "a-b", "x" * 100, "x" * 101, "ä")]
    assert len(set(names)) == len(names) and all(len(each) <= 80 and "/" not in each and each for each in names)
