"""Volumes as a machine uses them."""

import msgspec

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.plan.instance import volumes


def test_devices_are_named_by_bus_in_the_order_of_the_spec() -> None:
    buses = ("virtio", "sata", "virtio", "scsi", "ide", "usb")
    disks = msgspec.convert([{"name": f"d{n}", "disk": {"bus": bus}} for n, bus in enumerate(buses)], list[Disk])
    assert volumes.targets(disks) == {"d0": "vda", "d1": "sda", "d2": "vdb", "d3": "sdb", "d4": "hda", "d5": "sdc"}


def test_there_are_more_disks_than_letters() -> None:
    disks = msgspec.convert([{"name": f"d{n}", "disk": {"bus": "virtio"}} for n in range(30)], list[Disk])
    found = volumes.targets(disks)
    assert (found["d25"], found["d26"], found["d29"]) == ("vdz", "vdaa", "vdad")


def test_statuses() -> None:
    spec = msgspec.convert(
        {
            "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "more", "disk": {"bus": "scsi"}}]}},
            "volumes": [
                {"name": "root", "containerDisk": {"image": "x"}},
                {"name": "more", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": True}},
            ],
        },
        VirtualMachineInstanceSpec,
    )
    claim = msgspec.convert(
        {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        PersistentVolumeClaim,
    )
    root, waits = volumes.statuses(spec, {"c": claim}, {"root": 7}, {"more": "the claim is not bound"}, {})
    assert (root.name, root.target, root.size, root.phase) == ("root", "vda", 7, None)
    assert (waits.target, waits.phase, waits.message) == ("sda", "Pending", "the claim is not bound")
    assert waits.persistentVolumeClaimInfo is not None and waits.persistentVolumeClaimInfo.requests == {"storage": "1Gi"}
    ready = list(volumes.statuses(spec, {"c": claim}, {}, {}, {}))[1]
    assert (ready.phase, ready.reason) == ("Ready", "VolumeReady")
