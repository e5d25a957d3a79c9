"""The config of a running machine beyond its single fields: threads, queues, identity, notes, and rules for all."""

from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.config import DiskConfig, Tap
from paddock.kubevirt.translate import firmware
from paddock.kubevirt.translate.config import machine_config
from paddock.kubevirt.translate.limits import Code, Weight
from paddock.kubevirt.translate.resolved import MachineInputs
from tests.unit.kubevirt.translate.machines import HOST, UUID, instance, resolved, translated


def disks(*buses: str, own: tuple[int, ...] = ()) -> dict[str, Any]:
    """Disks d0, d1 ... on these buses; those in `own` want a thread of their own."""
    devices = [{"name": f"d{n}", "disk": {"bus": bus}, **({"dedicatedIOThread": True} if n in own else {})} for n, bus in enumerate(buses)]
    volumes = [{"name": f"d{n}", "persistentVolumeClaim": {"claimName": "c"}} for n in range(len(buses))]
    return {"domain.devices.disks": devices, "volumes": volumes}


def threads(changes: dict[str, Any]) -> tuple[list[int | None], int]:
    found = translated(instance(changes))
    objects = {f'"id":"iothread{number}"' for number in range(1, found.result.config.iothreads + 1)}
    assert all(name in found.text for name in objects)
    assert f'"id":"iothread{found.result.config.iothreads + 1}"' not in found.text
    return [disk.iothread for disk in found.result.config.disks], found.result.config.iothreads


AUTO = {"domain.ioThreadsPolicy": "auto"}
POOL = {"domain.ioThreadsPolicy": "supplementalPool", "domain.ioThreads": {"supplementalPoolThreadCount": 2}}
CPUS = {"domain.resources": {"requests": {"cpu": "2"}}, "domain.cpu": {"cores": 1}}


@pytest.mark.spec("kubevirt", 89)
def test_io_threads_and_queues() -> None:
    four = ("virtio", "virtio", "virtio", "virtio")
    shared = {"domain.ioThreadsPolicy": "shared"}
    rows: list[tuple[dict[str, Any], list[int | None], int]] = [
        # no policy: only a disk that asks for a thread has one
        ({**disks("virtio", "virtio")}, [None, None], 0),
        ({**disks("virtio", "virtio", own=(1,))}, [None, 1], 1),
        # shared: one for all that ask for none of their own
        ({**shared, **disks(*four)}, [1, 1, 1, 1], 1),
        ({**shared, **disks(*four, own=(0, 2))}, [2, 1, 3, 1], 3),
        # auto: twice the CPUs that are requested, in turn; those of their own count
        ({**AUTO, **disks(*four)}, [1, 2, 1, 2], 2),
        ({**AUTO, **CPUS, **disks(*four, "virtio")}, [1, 2, 3, 4, 1], 4),
        ({**AUTO, **CPUS, **disks(*four, own=(1,))}, [1, 4, 2, 3], 4),
        # supplementalPool: so many, in turn
        ({**POOL, **disks(*four)}, [1, 2, 1, 2], 2),
        # other buses cannot use any
        ({**shared, **disks("virtio", "sata", "scsi", "usb")}, [1, None, None, None], 1),
    ]
    for changes, expected, count in rows:
        assert threads(changes) == (expected, count)
    queues = translated(instance({**disks("virtio", "sata"), "domain.cpu.cores": 4, "domain.devices.blockMultiQueue": True}))
    assert [disk.queues for disk in queues.result.config.disks] == [4, None]
    assert '"num-queues":4' in queues.text
    card = {"domain.devices.interfaces": [{"name": "queues", "masquerade": {}}], "networks": [{"name": "queues", "pod": {}}]}
    several = translated(instance({**card, "domain.cpu.cores": 4, "domain.devices.networkInterfaceMultiqueue": True}))
    assert [nic.backend.queues for nic in several.result.config.nics if isinstance(nic.backend, Tap)] == [4]
    assert '"mq":true,"vectors":10' in several.text


def test_a_machine_without_a_uuid_has_the_one_of_its_name() -> None:
    found = translated(instance(name="fedora-vm")).result.config
    assert found.firmware.uuid == firmware.uuid_of("fedora-vm")
    assert found == translated(instance(name="fedora-vm")).result.config
    assert found.firmware.uuid != translated(instance(name="other")).result.config.firmware.uuid
    assert translated(instance({"domain.firmware.uuid": UUID})).result.config.firmware.uuid == UUID
    # Python's own uuid5 over the namespace that the specification gives.
    assert firmware.uuid_of("testvm") == "5a9fc181-957e-5c32-9e5a-2de5e9673531"


def test_what_cannot_be_found_is_told_for_each_volume_and_card() -> None:
    machine = instance(
        {**disks("virtio", "sata"), "domain.devices.interfaces": [{"name": "a", "bridge": {}}], "networks": [{"name": "a", "pod": {}}]}
    )
    result = machine_config(machine, MachineInputs(host=HOST))
    assert [limit.code for limit in result.limits] == [Code.VOLUME_FAILED, Code.VOLUME_FAILED, Code.CARD_FAILED]
    assert not result.startable
    assert "spec.domain.devices.disks[1]" in result.limits[1].message
    assert result.of(Weight.UNSCHEDULABLE) == ()


def test_notes_do_not_keep_a_machine_from_starting() -> None:
    result = translated(instance({"domain.features.hyperv": {"relaxed": {}}})).result
    assert [limit.code.weight for limit in result.limits] == [Weight.NOTE]
    assert result.startable


def test_tables_are_no_disks() -> None:
    changes = {"domain.firmware.acpi": {"slicNameRef": "t"}, "volumes": [{"name": "t", "secret": {"secretName": "s"}}]}
    config = translated(instance(changes)).result.config
    assert (config.disks, config.firmware.acpi_tables) == ((), (Path("/seeds/t"),))


def test_an_empty_drive() -> None:
    changes = {"domain.devices.disks": [{"name": "cd", "cdrom": {"bus": "sata"}}]}
    (disk,) = translated(instance(changes)).result.config.disks
    assert disk == DiskConfig("cd", None, bus="sata", role="cdrom", readonly=True)


def test_hotplugged_volumes_are_marked() -> None:
    changes = disks("scsi")
    changes["volumes"] = [{"name": "d0", "dataVolume": {"name": "x", "hotpluggable": True}}]
    (disk,) = translated(instance(changes)).result.config.disks
    assert disk.hotplugged


@pytest.mark.parametrize(
    ("changes", "smm", "secure", "kind"),
    [
        ({}, False, False, "bios"),
        ({"domain.firmware.bootloader": {"efi": {"secureBoot": False}}}, False, False, "efi"),
        ({"domain.firmware.bootloader": {"efi": {}}, "domain.features.smm": {}}, True, True, "efi"),
        ({"domain.features.smm": {"enabled": False}}, False, False, "bios"),
        ({"architecture": "arm64", "domain.firmware.bootloader": {"efi": {}}}, False, False, "efi"),
    ],
)
def test_firmware(changes: dict[str, Any], smm: bool, secure: bool, kind: str) -> None:
    machine = instance(changes)
    config = machine_config(machine, resolved(machine)).config
    assert (config.smm, config.firmware.secure_boot, config.firmware.kind) == (smm, secure, kind)


def test_state_needs_a_place() -> None:
    changes = {"domain.firmware.bootloader": {"efi": {"persistent": True}}, "domain.devices.tpm": {"persistent": True}}
    codes = [limit.code for limit in machine_config(instance(changes), MachineInputs(host=HOST)).limits]
    assert codes.count(Code.STATE_MISSING) == 2


def test_ignition_needs_a_place_too() -> None:
    machine = instance(annotations={"kubevirt.io/ignitiondata": "{}"})
    assert [limit.code for limit in machine_config(machine, MachineInputs(host=HOST)).limits if limit.path[0] == "metadata"] == [
        Code.STATE_MISSING
    ]
    assert translated(machine).result.startable


def test_memory_is_set_aside() -> None:
    machine = instance({"domain.memory.reservedOverhead": {"addedOverhead": "64Mi"}})
    assert translated(machine).result.reserved == 64 << 20


def test_the_full_name_of_the_machine_type() -> None:
    assert translated(instance()).result.machine_type == "pc-q35-7.2"


def test_without_hotplug_there_is_no_room() -> None:
    changes = {"domain.devices.disableHotplug": True, "domain.memory.maxGuest": "4Gi", "domain.cpu": {"sockets": 1, "maxSockets": 4}}
    config = translated(instance(changes)).result.config
    assert (config.cpu.max_sockets, config.memory.max_size) == (1, 1 << 30)


def test_beside_cpus_of_ones_own_there_is_no_room() -> None:
    changes = {"domain.cpu": {"sockets": 2, "maxSockets": 8, "dedicatedCpuPlacement": True}}
    assert machine_config(instance(changes), MachineInputs(host=HOST)).config.cpu.max_sockets == 2


def test_optional_features_follow_the_host() -> None:
    wanted = {
        "domain.cpu": {"model": "qemu64", "features": [{"name": "aes", "policy": "optional"}, {"name": "sse5", "policy": "optional"}]}
    }
    found = translated(instance(wanted), kvm=True).result.config.cpu
    assert (found.features, found.enforce) == ((("aes", True),), False)
    assert translated(instance(wanted)).result.config.cpu.features == ()
