"""The disks of a machine: names, places, controllers and the changes between what is there and what is wanted."""

from typing import Any

import pytest
from pyVmomi import vim

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import DiskPayload, ScsiPayload
from paddock_drivers.vsphere import disks
from paddock_drivers.vsphere.disks import DiskWishes, VSphereDiskStorage

GIB = 1 << 30
DEVICE = vim.vm.device


def controller(key: int, bus: int, kind: type = DEVICE.ParaVirtualSCSIController, shared: str = "noSharing") -> Any:
    return kind(key=key, busNumber=bus, sharedBus=shared)


def disk(key: int, holder: int, unit: int, gib: int = 10, parent: str = "", **backing: bool) -> Any:
    kind = DEVICE.VirtualDisk.FlatVer2BackingInfo
    below = kind(fileName=parent) if parent else None
    info = kind(fileName=f"[store] vm/vm_{key}.vmdk", parent=below, **backing)
    return DEVICE.VirtualDisk(key=key, controllerKey=holder, unitNumber=unit, capacityInBytes=gib * GIB, backing=info)


def machine() -> list[Any]:
    return [controller(1000, 0), disk(2000, 1000, 0, thinProvisioned=True), disk(2001, 1000, 1, gib=20)]


def made(wishes: DiskWishes, places: dict[str, str] | None = None, devices: list[Any] | None = None) -> disks.DiskChanges:
    return disks.changes(devices if devices is not None else machine(), places if places is not None else {"data": "0:1"}, wishes)


def test_the_first_disk_is_the_root_and_names_follow_places() -> None:
    ide = DEVICE.VirtualIDEController(key=200, busNumber=0)
    found = disks.observed([disk(3000, 200, 0), ide, *machine()], {"data": "0:1"})
    assert [(each.name, each.place, each.size // GIB, each.type) for each in found] == [
        ("root", "0:0", 10, "thin"),
        ("data", "0:1", 20, "thick"),
        ("disk-virtualdisk2-0-0", "VirtualDisk2:0:0", 10, "thick"),
    ]
    assert disks.find(found, "") == found[0]
    assert disks.find(found, "2001") == disks.find(found, "data") == disks.find(found, "[store] vm/vm_2001.vmdk") == found[1]
    assert disks.find(found, "none") is None
    assert found[1].datastore == "store"


def test_the_same_disks_need_no_change() -> None:
    result = made(DiskWishes(disks=(DiskPayload(name="data", size_gib=20),), root_gib=10))
    assert result.changes == ()
    assert result.places == {"data": "0:1"}


@pytest.mark.parametrize("kind", ["thin", "thick", "eagerzeroedthick"])
def test_a_new_disk(kind: str) -> None:
    result = made(DiskWishes(disks=(DiskPayload(name="data", size_gib=20), DiskPayload(name="logs", size_gib=5, type=kind))))
    (change,) = result.changes
    assert (change.operation, change.fileOperation) == ("add", "create")
    assert (change.device.controllerKey, change.device.unitNumber, change.device.capacityInBytes) == (1000, 2, 5 * GIB)
    assert (change.device.backing.thinProvisioned, change.device.backing.eagerlyScrub) == (kind == "thin", kind == "eagerzeroedthick")
    assert result.places == {"data": "0:1", "logs": "0:2"}


def test_disks_grow_and_never_shrink() -> None:
    result = made(DiskWishes(disks=(DiskPayload(name="data", size_gib=21),), root_gib=12))
    assert [(each.operation, each.device.key, each.device.capacityInBytes) for each in result.changes] == [
        ("edit", 2000, 12 * GIB),
        ("edit", 2001, 21 * GIB),
    ]
    for wishes in (DiskWishes(root_gib=9), DiskWishes(disks=(DiskPayload(name="data", size_gib=19),))):
        with pytest.raises(ProviderError) as error:
            made(wishes)
        assert error.value.kind is ErrorKind.INVALID_SPEC


def test_a_disk_with_a_snapshot_does_not_grow() -> None:
    with pytest.raises(ProviderError) as error:
        made(DiskWishes(root_gib=12), devices=[controller(1000, 0), disk(2000, 1000, 0, parent="[store] vm/base.vmdk")])
    assert error.value.kind is ErrorKind.CONFLICT


def test_a_disk_that_is_not_named_is_detached_and_its_file_stays() -> None:
    (change,) = made(DiskWishes()).changes
    assert (change.operation, change.fileOperation, change.device.key) == ("remove", None, 2001)


def test_disks_that_nobody_named_are_left_alone() -> None:
    assert made(DiskWishes(), places={}).changes == ()


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("pvscsi", DEVICE.ParaVirtualSCSIController),
        ("lsilogic", DEVICE.VirtualLsiLogicController),
        ("buslogic", DEVICE.VirtualBusLogicController),
        ("lsilogic-sas", DEVICE.VirtualLsiLogicSASController),
    ],
)
def test_a_controller_of_a_model_is_made_once(model: str, kind: Any) -> None:
    scsi = ScsiPayload(controller=2, controller_type=model, shared_bus="virtualSharing")
    wanted = tuple(DiskPayload(name=name, size_gib=1, scsi=scsi) for name in ("a", "b"))
    first, second, third = made(DiskWishes(disks=wanted), places={}).changes
    assert type(first.device) is kind
    assert (first.device.busNumber, first.device.sharedBus) == (2, "virtualSharing")
    assert [(each.device.controllerKey, each.device.unitNumber) for each in (second, third)] == [
        (first.device.key, 0),
        (first.device.key, 1),
    ]


def test_a_controller_of_another_model_is_a_conflict() -> None:
    scsi = ScsiPayload(controller=0, controller_type="buslogic")
    with pytest.raises(ProviderError) as error:
        made(DiskWishes(disks=(DiskPayload(name="a", size_gib=1, scsi=scsi),)), places={})
    assert error.value.kind is ErrorKind.CONFLICT


def test_the_unit_of_the_controller_itself_is_left_out_and_a_full_one_gets_a_neighbour() -> None:
    wanted = tuple(DiskPayload(name=f"d{number}", size_gib=1) for number in range(16))
    result = made(DiskWishes(disks=wanted), places={})
    assert "0:7" not in result.places.values()
    assert result.places["d12"] == "0:15"
    assert result.places["d13"] == "1:0"


def test_storage_classes_are_datastores_or_policies() -> None:
    known = {"fast": VSphereDiskStorage(datastore="nvme"), "gold": VSphereDiskStorage(policy="p-1")}
    wanted = tuple(DiskPayload(name=name, size_gib=1, storage_class=name) for name in known)
    fast, gold = made(DiskWishes(disks=wanted, storage=known.__getitem__), places={}).changes
    assert (fast.device.backing.fileName, fast.profile or None) == ("[nvme]", None)
    assert [each.profileId for each in gold.profile] == ["p-1"]


def test_an_imported_disk_is_attached_as_it_is() -> None:
    (change,) = made(DiskWishes(disks=(DiskPayload(name="a", path="[store] paddock-disks/a.vmdk"),)), places={}).changes
    assert (change.fileOperation, change.device.backing.fileName) == (None, "[store] paddock-disks/a.vmdk")


def test_types_that_cannot_be_made() -> None:
    with pytest.raises(ProviderError) as error:
        made(DiskWishes(disks=(DiskPayload(name="a", size_gib=1, type="tape"),)))
    assert error.value.kind is ErrorKind.NOT_SUPPORTED
    assert made(DiskWishes(disks=(DiskPayload(name="a", size_gib=1, type="ssd"),))).limitations
    assert made(DiskWishes(disks=(DiskPayload(name="data", size_gib=20, type="thin"),))).limitations
