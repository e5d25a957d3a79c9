"""The places of devices on the PCI bus."""

from pathlib import Path

import pytest

from paddock.engine.machine.argv.command import spare_ports
from paddock.engine.machine.config import DiskConfig, DiskLayer, MemoryConfig
from tests.unit.engine.machine.argv import samples
from tests.unit.engine.machine.argv.parsing import devices, disks, refused
from tests.unit.engine.machine.argv.samples import ROOT, TCG, machine


def test_every_device_has_a_place_of_its_own() -> None:
    for config in (samples.FULL, samples.PLAIN, machine(disks=disks(60), on_root_complex=False)):
        found = devices(config)
        places = [(device["bus"], device["addr"]) for device in found.values() if "addr" in device]
        assert len(places) == len(set(places))
        ports = {name for name, device in found.items() if device["driver"] == "pcie-root-port"}
        assert {bus for bus, _ in places} <= ports | {"pcie.0"}
        chassis = [device["chassis"] for device in found.values() if "chassis" in device]
        assert len(chassis) == len(set(chassis))


@pytest.mark.parametrize(("memory", "total", "least"), [(1, 8, 3), (2, 8, 3), (4, 16, 6)])
def test_empty_ports_make_a_total_or_a_least(memory: int, total: int, least: int) -> None:
    size = MemoryConfig(memory << 30, memory << 30)
    few, many = machine(memory=size), machine(memory=size, disks=disks(20))
    used = len({device["bus"] for device in devices(few).values() if str(device.get("bus", "")).startswith("pci.")})
    assert len(spare_ports(few, TCG)) == total - used
    assert len(spare_ports(many, TCG)) == least


def test_what_was_plugged_in_takes_no_place_of_what_was_there() -> None:
    late = DiskConfig("a-late", DiskLayer(Path("/v/late"), "raw"), hotplugged=True)
    before, after = devices(machine(disks=disks(2))), devices(machine(disks=(late, *disks(2))))
    for name in ("ua-d0", "ua-d1"):
        assert before[name]["bus"] == after[name]["bus"]


def test_without_hotplug_there_is_no_room_for_it() -> None:
    found = devices(machine(hotplug=False, disks=disks(1)))
    assert "scsi0" not in found
    assert spare_ports(machine(hotplug=False), TCG) == ()
    assert len([name for name in found if name.startswith("pci.")]) == 3


def test_on_the_root_complex_there_are_no_ports() -> None:
    found = devices(machine(on_root_complex=True, disks=disks(3)))
    assert not [name for name in found if name.startswith("pci.")]
    assert refused(machine(on_root_complex=True, disks=disks(40))).reason == "no-room"


@pytest.mark.parametrize(
    ("address", "bus", "addr"),
    [("0000:00:03.0", "pcie.0", "0x3.0x0"), ("0000:04:00.0", "pci.4", "0x0.0x0"), ("0000:70:00.0", "pci.112", "0x0.0x0")],
)
def test_an_address_that_is_asked_for_is_given(address: str, bus: str, addr: str) -> None:
    found = devices(machine(disks=(DiskConfig("d", ROOT, pci_address=address), *disks(3))))
    assert (found["ua-d"]["bus"], found["ua-d"]["addr"]) == (bus, addr)
    assert [name for name, device in found.items() if (device.get("bus"), device.get("addr")) == (bus, addr)] == ["ua-d"]


def test_disks_on_all_slots_of_the_ports_leave_room_for_ports() -> None:
    wanted = [DiskConfig(f"d{slot}", ROOT, pci_address=f"0000:00:{slot:02x}.0") for slot in range(2, 26)]
    found = devices(machine(disks=tuple(wanted)))
    assert [found[f"ua-d{slot}"]["addr"] for slot in range(2, 26)] == [f"{slot:#x}.0x0" for slot in range(2, 26)]
    ports = {str(device["addr"]).partition(".")[0] for device in found.values() if device["driver"] == "pcie-root-port"}
    assert ports == {"0x1d"}
    places = [(device["bus"], device["addr"]) for device in found.values() if "addr" in device]
    assert len(places) == len(set(places))


@pytest.mark.spec("kubevirt", 169)
def test_a_bus_of_which_another_slot_is_wanted_is_a_bridge() -> None:
    wanted = (DiskConfig("a", ROOT, pci_address="0000:02:01.0"), DiskConfig("b", ROOT, pci_address="0000:03:00.0"))
    found = devices(machine(disks=(*wanted, DiskConfig("c", ROOT, pci_address="0000:02:02.0"), *disks(3))))
    assert [(found[f"ua-{name}"]["bus"], found[f"ua-{name}"]["addr"]) for name in "abc"] == [
        ("pci.2", "0x1.0x0"),
        ("pci.3", "0x0.0x0"),
        ("pci.2", "0x2.0x0"),
    ]
    assert (found["pci.2"]["driver"], found["pci.2"]["bus"]) == ("pcie-pci-bridge", "pci.1")
    assert [name for name, device in found.items() if device.get("bus") == "pci.1"] == ["pci.2"]
    # The ports follow each other on the root bus, whatever their numbers are.
    assert [found[f"pci.{number}"]["addr"] for number in (1, 3, 4)] == ["0x2.0x0", "0x2.0x1", "0x2.0x2"]
    assert "io-reserve" not in found["pci.1"] and found["pci.3"]["io-reserve"] == 0
    assert not {"pci.1", "pci.2", "pci.3"} & set(spare_ports(machine(disks=wanted), TCG))


def test_nothing_else_is_in_a_port_that_leads_to_a_bridge() -> None:
    pair = (DiskConfig("a", ROOT, pci_address="0000:05:00.0"), DiskConfig("b", ROOT, pci_address="0000:06:01.0"))
    error = refused(machine(disks=pair))
    assert (error.reason, error.of) == ("bad-address", "disk a") and "disk b wants a slot" in error.why


def test_two_functions_of_one_slot() -> None:
    pair = (DiskConfig("a", ROOT, pci_address="0000:03:00.0"), DiskConfig("b", ROOT, pci_address="0000:03:00.1"))
    found = devices(machine(disks=pair))
    assert found["ua-a"]["multifunction"] is True
    assert "multifunction" not in found["ua-b"]


@pytest.mark.parametrize(
    "address",
    ["0001:00:03.0", "0000:81:01.0", "0000:71:00.0", "0000:01:01.0", "0000:00:00.0", "0000:00:01.0", "0000:00:1f.0", "0000:02:00.3", "x"],
)
def test_an_address_that_is_not_there_is_refused(address: str) -> None:
    error = refused(machine(disks=(DiskConfig("d", ROOT, pci_address=address),)))
    assert (error.reason, error.of) == ("bad-address", "disk d")


def test_an_address_is_given_once() -> None:
    both = (DiskConfig("a", ROOT, pci_address="0000:02:00.0"), DiskConfig("b", ROOT, pci_address="0000:02:00.0"))
    assert "disk a is there" in refused(machine(disks=both)).why


def test_more_devices_than_ports() -> None:
    assert "scsi" in refused(machine(disks=disks(120))).fix
    assert len(devices(machine(disks=disks(200, bus="scsi")))) > 200
