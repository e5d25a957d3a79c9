"""The owners of disks, their growth, and their loss."""

import pytest

from paddock.dialects.stakater.plan import disks
from paddock.dialects.stakater.plan.disks import PlannedDisk
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta import patch
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds.cdiconfig import FilesystemOverhead
from tests.unit.dialects.stakater.plan.made import claim, front, instance, machine, owner, volume

GOING = {"deletionTimestamp": "2027-01-15T08:00:00Z"}


def test_the_disks_of_a_machine() -> None:
    given = machine(front(storage={"size": "20Gi"}, additionalDisks=[{"name": "data", "size": "1Gi"}]))
    assert list(disks.wanted(given)) == [("web-rootdisk", "20Gi"), ("web-data", "1Gi")]
    without = disks.without_root(given, "web-rootdisk")
    assert list(disks.wanted(without)) == [("web-data", "1Gi")]
    assert not disks.has_given_up_root(given, "web-rootdisk") and disks.has_given_up_root(without, "web-rootdisk")
    assert not disks.has_given_up_root(None, "web-rootdisk")
    assert disks.without_root(machine(), "web-rootdisk").spec.dataVolumeTemplates is None


@pytest.mark.parametrize(
    ("disk", "lost"),
    [
        (PlannedDisk("web-rootdisk", "10Gi"), True),
        (PlannedDisk("web-rootdisk", "10Gi", claim=claim(**GOING)), True),
        # CDI tidies DataVolumes up and leaves the claim.
        (PlannedDisk("web-rootdisk", "10Gi", claim=claim()), False),
        (PlannedDisk("web-rootdisk", "10Gi", volume(**GOING), claim(ownerReferences=owner("VirtualMachine", "web", "machine"))), False),
        (PlannedDisk("web-rootdisk", "10Gi", volume(**GOING), claim()), True),
        (PlannedDisk("web-rootdisk", "10Gi", volume(**GOING)), True),
        (PlannedDisk("web-rootdisk", "10Gi", volume(), claim()), False),
    ],
)
def test_a_root_disk_is_lost_with_its_claim(disk: PlannedDisk, lost: bool) -> None:
    assert disks.is_lost(disk) is lost


@pytest.mark.parametrize(
    ("disk", "reason"),
    [
        (PlannedDisk("d", "1Gi"), None),
        (PlannedDisk("d", "1Gi", volume("d"), claim("d")), None),
        (PlannedDisk("d", "1Gi", volume("d", ownerReferences=None)), None),
        (PlannedDisk("d", "1Gi", volume("d", ownerReferences=None, labels=None)), "NameConflict"),
        (PlannedDisk("d", "1Gi", volume("d", ownerReferences=owner("VirtualMachine", "web", "before"))), "Creating"),
        (PlannedDisk("d", "1Gi", volume("d", ownerReferences=owner("VirtualMachine", "web", "other"), labels=None)), "NameConflict"),
        (PlannedDisk("d", "1Gi", volume("d", ownerReferences=owner("VirtualMachine", "other", "machine"))), "NameConflict"),
        (PlannedDisk("d", "1Gi", claim=claim("d", ownerReferences=None, labels=None)), "NameConflict"),
        (PlannedDisk("d", "1Gi", claim=claim("d")), "Creating"),
        (PlannedDisk("d", "1Gi", claim=claim("d", ownerReferences=owner("VirtualMachine", "web", "machine"))), None),
    ],
)
def test_names_are_looked_at_before_anything_is_made(disk: PlannedDisk, reason: str | None) -> None:
    hold = disks.in_the_way([disk], "web", "machine")
    assert (hold.synced.reason if hold is not None else None) == reason
    assert hold is None or "d" in hold.synced.message


@pytest.mark.parametrize(
    ("disk", "size"),
    [
        (PlannedDisk("d", "10Gi", volume(size="10Gi"), claim(size="10Gi")), None),
        (PlannedDisk("d", "20Gi", volume(size="10Gi"), claim(size="10Gi")), "20Gi"),
        # Between disk and volume is a filesystem.
        (PlannedDisk("d", "20Gi", volume(size="10Gi"), claim(size="11Gi", mode="Filesystem")), str(int((20 << 30) * 1.1))),
        (PlannedDisk("d", "10Gi", volume(size="10Gi"), claim(size="9Gi", mode="Filesystem")), None),
        (PlannedDisk("d", "20Gi", volume(size="10Gi"), claim(size="20Gi")), None),
        (PlannedDisk("d", "20Gi", volume(size="10Gi", phase="CloneInProgress"), claim(size="10Gi")), None),
        (PlannedDisk("d", "20Gi", volume(size="10Gi"), claim(size="10Gi", phase="Pending")), None),
        (PlannedDisk("d", "20Gi", volume(size="10Gi"), claim(size="10Gi", **GOING)), None),
        (PlannedDisk("d", "20Gi", None, claim(size="10Gi", mode="Filesystem")), "20Gi"),
        (PlannedDisk("d", "20Gi", volume(size="10Gi")), None),
    ],
)
def test_growing(disk: PlannedDisk, size: str | None) -> None:
    found = list(disks.growths([disk], FilesystemOverhead(global_="0.1")))
    assert [each.patch["spec"]["resources"]["requests"]["storage"] for each in found] == ([size] if size else [])


@pytest.mark.spec("stakater", 62)
@pytest.mark.spec("kubevirt", 128)
@pytest.mark.parametrize("mode", ["Filesystem", "Block"])
def test_the_guest_of_a_grown_disk_sees_what_was_asked_for(mode: str) -> None:
    before = claim(size="11Gi", mode=mode)
    (growth,) = disks.growths([PlannedDisk("d", "20Gi", volume(size="10Gi"), before)], FilesystemOverhead(global_="0.1"))
    assert growth.size == "20Gi"
    after = from_data(patch.apply_merge_patch(to_data(before), growth.patch), PersistentVolumeClaim)
    assert claimsizes.guest_size(after) == 20 << 30
    assert claimsizes.request_of(after) == ((20 << 30) if mode == "Block" else int((20 << 30) * 1.1))


def test_what_is_left_over() -> None:
    volumes = [
        volume("web-rootdisk"),
        volume("web-old"),
        volume("web-used"),
        volume("web-going", **GOING),
        volume("web-theirs", ownerReferences=owner("VirtualMachine", "other", "x")),
        volume("web-nobodys", ownerReferences=None),
    ]
    assert disks.surplus(volumes, ["web-rootdisk"], "machine", instance("web-used")) == ["web-old"]
    assert disks.surplus(volumes, ["web-rootdisk"], "machine", None) == ["web-old", "web-used"]
