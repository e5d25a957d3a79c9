"""The parts of the command line: trees of nodes, choices that the host decides, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from paddock.engine.machine.argv import hotplug, names
from paddock.engine.machine.argv.command import command, spare_ports
from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.argv.view import FileView, HostView
from paddock.engine.machine.config import (
    ClockConfig,
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    FirmwareConfig,
    MemoryConfig,
    Nic,
    SharedDirectory,
    Tap,
    Tpm,
)
from tests.unit.engine.machine.argv import samples
from tests.unit.engine.machine.argv.parsing import devices, disks, parse, refused, values
from tests.unit.engine.machine.argv.samples import MIB, ROOT, TCG, machine

# --- disks ----------------------------------------------------------------------------------------------------------------


def test_only_the_topmost_layer_is_written() -> None:
    (node,) = values(command(machine(disks=(DiskConfig("d", samples.OVERLAY),)), TCG), "-blockdev")
    assert (node["driver"], node["read-only"], node["file"]["read-only"]) == ("qcow2", False, False)
    base = node["backing"]
    assert (base["driver"], base["read-only"], base["file"]["locking"], base["backing"]) == ("qcow2", True, "off", None)
    assert len({node["node-name"], base["node-name"], node["file"]["node-name"], base["file"]["node-name"]}) == 4


def test_an_image_cannot_choose_what_is_below_it() -> None:
    (node,) = values(command(machine(disks=(DiskConfig("d", DiskLayer(Path("/x"), "qcow2")),)), TCG), "-blockdev")
    assert node["backing"] is None


def test_a_raw_file_lies_over_nothing() -> None:
    assert refused(machine(disks=(DiskConfig("d", DiskLayer(Path("/x"), "raw", backing=ROOT)),))).reason == "storage-cannot"


def test_names_of_nodes_are_short_unique_and_stay() -> None:
    long = "d" * 63
    first, second = names.format_node(long, Path("/a")), names.format_node(long, Path("/b"))
    assert len(first) <= 31
    assert first != second
    assert first == names.format_node(long, Path("/a"))
    assert names.format_node("x", Path("/a")) != names.format_node("y", Path("/a"))
    assert names.device("a,b") != names.device("a;b")


def test_a_disk_and_a_card_may_have_one_name() -> None:
    found = devices(machine(disks=(DiskConfig("default", ROOT),), nics=(Nic("default", "02:00:00:00:00:01", samples.USER),)))
    assert {"ua-default", "net-default"} <= set(found)


SLOW = structs.replace(TCG, files={ROOT.path: FileView(direct=False)})
SOLID = structs.replace(TCG, files={ROOT.path: FileView(solid=True)})


@pytest.mark.parametrize(
    ("disk", "host", "direct", "aio", "write_cache"),
    [
        (DiskConfig("d", ROOT), TCG, True, "threads", "on"),
        (DiskConfig("d", ROOT), SOLID, True, "native", "on"),
        (DiskConfig("d", ROOT), SLOW, False, "threads", "off"),
        (DiskConfig("d", ROOT, cache="writeback"), SOLID, False, "threads", "on"),
        (DiskConfig("d", ROOT, cache="writethrough"), TCG, False, "threads", "off"),
        (DiskConfig("d", ROOT, cache="none", io="native"), TCG, True, "native", "on"),
        (DiskConfig("d", ROOT, io="io_uring"), samples.KVM, True, "io_uring", "on"),
        (DiskConfig("d", ROOT, io="io_uring"), TCG, True, "threads", "on"),
    ],
)
def test_cache_and_io(disk: DiskConfig, host: HostView, direct: bool, aio: str, write_cache: str) -> None:
    found = command(machine(disks=(disk,)), host)
    (node,) = values(found, "-blockdev")
    assert (node["cache"]["direct"], node["file"]["cache"]["direct"], node["file"]["aio"]) == (direct, direct, aio)
    (device,) = [value for value in values(found, "-device") if value["id"] == "ua-d"]
    assert device["write-cache"] == write_cache


@pytest.mark.parametrize(
    ("disk", "reason"),
    [
        (DiskConfig("d", ROOT, cache="none"), "storage-cannot"),
        (DiskConfig("d", ROOT, io="native"), "storage-cannot"),
        (DiskConfig("d", ROOT, bus="scsi", serial="x" * 37, cache="writeback"), "unusable-value"),
        (DiskConfig("d", None), "storage-cannot"),
        (DiskConfig("d", None, role="cdrom"), "storage-cannot"),
        (DiskConfig("d", ROOT, iothread=1), "bad-address"),
    ],
)
def test_disks_that_cannot_be(disk: DiskConfig, reason: str) -> None:
    assert refused(machine(disks=(disk,)), SLOW).reason == reason


def test_controllers_come_with_their_first_disk() -> None:
    found = devices(machine(disks=(*disks(8, bus="sata"),)))
    assert [found[f"ua-d{number}"]["bus"] for number in range(8)] == [*(f"ide.{port}" for port in range(6)), "ahci0.0", "ahci0.1"]
    found = devices(machine(disks=(*disks(4, bus="ide"),)))
    assert [(found[f"ua-d{n}"]["bus"], found[f"ua-d{n}"]["unit"]) for n in range(4)] == [
        ("ide9.0", 0),
        ("ide9.0", 1),
        ("ide9.1", 0),
        ("ide9.1", 1),
    ]
    assert refused(machine(disks=disks(5, bus="ide"))).reason == "no-room"
    assert refused(structs.replace(samples.ARM, disks=disks(1, bus="ide")), samples.ARM_TCG).reason == "missing-on-host"
    assert devices(machine(disks=disks(1, bus="usb")))["usb"]["driver"] == "qemu-xhci"
    assert "usb" not in devices(machine())


def test_boot_order_across_disks_and_cards() -> None:
    nic = Nic("n", "02:00:00:00:00:01", samples.USER)
    cdrom = DiskConfig("cd", ROOT, bus="sata", role="cdrom")
    found = devices(machine(disks=(cdrom, *disks(2)), nics=(nic,)))
    assert {name: device["bootindex"] for name, device in found.items() if "bootindex" in device} == {"ua-d0": 1, "ua-d1": 2, "ua-cd": 3}
    assert found["net-n"]["romfile"] == ""
    found = devices(machine(disks=(cdrom, structs.replace(disks(1)[0], boot_order=2)), nics=(structs.replace(nic, boot_order=1),)))
    assert {name: device["bootindex"] for name, device in found.items() if "bootindex" in device} == {"ua-d0": 2, "net-n": 1}
    assert "romfile" not in found["net-n"]


# --- cards ----------------------------------------------------------------------------------------------------------------


def test_taps_are_opened_by_somebody_else() -> None:
    found = command(machine(nics=(Nic("a", "02:00:00:00:00:01", Tap("tap0", 2)), Nic("b", "02:00:00:00:00:02", Tap("tap1")))), samples.KVM)
    assert [(opening.nic, opening.device, opening.queues, opening.vhost) for opening in found.openings] == [
        ("a", "tap0", 2, True),
        ("b", "tap1", 1, True),
    ]
    argv = found.arguments({"a": [7, 8], "b": [9]}, {"a": [10, 11], "b": [12]})
    netdevs = [value for name, value in parse(argv) if name == "-netdev"]
    assert [(netdev["fds"], netdev["vhostfds"]) for netdev in netdevs] == [("7:8", "10:11"), ("9", "12")]
    assert "tap0" not in " ".join(argv)


def test_a_model_that_this_qemu_has_not_got() -> None:
    host = structs.replace(TCG, devices=frozenset(device["driver"] for device in devices(machine()).values()))
    error = refused(machine(nics=(Nic("n", "02:00:00:00:00:01", samples.USER, model="igb"),)), host)
    assert (error.reason, error.of) == ("missing-on-host", "network card n")
    assert "igb (QEMU 7.2.0)" in error.why
    assert refused(machine(nics=(Nic("n", "02:00:00:00:00:01", samples.USER, model="x"),))).reason == "missing-on-host"


def test_forwards_are_addresses_and_ports() -> None:
    bad = structs.replace(samples.USER, forwards=(("tcp", "127.0.0.1:1-:2,hostfwd", 1, 2),))
    assert refused(machine(nics=(Nic("n", "02:00:00:00:00:01", bad),))).reason == "unusable-value"


# --- the board ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "size"), [(64, 96), (1024, 96), (1025, 128), (4096, 128)])
def test_an_emulated_guest_keeps_little_translated_code(memory: int, size: int) -> None:
    found = command(machine(memory=MemoryConfig(memory * MIB, memory * MIB)), TCG)
    assert values(found, "-accel") == [[("tcg", ""), ("tb-size", str(size))]]


def test_memory_is_whole_megabytes() -> None:
    found = command(machine(memory=MemoryConfig(100_000_000, 100_000_000)), TCG)
    (backend,) = values(found, "-object")
    assert backend["size"] % MIB == 0
    assert 0 <= backend["size"] - 100_000_000 < MIB


def test_an_emulated_guest_has_the_memory_that_its_addresses_reach() -> None:
    with pytest.raises(UnstartableConfig, match="960Gi"):
        command(machine(memory=MemoryConfig(1 << 30, 1 << 40)), TCG)


def test_usb_devices_that_have_no_port_are_told() -> None:
    disks = tuple(DiskConfig(f"d{number}", None, bus="usb", role="cdrom") for number in range(51))
    with pytest.raises(UnstartableConfig, match="50 devices"):
        command(machine(disks=disks), TCG)


@pytest.mark.parametrize(
    ("memory", "backend"),
    [
        (MemoryConfig(64 * MIB, 64 * MIB), {"qom-type": "memory-backend-ram"}),
        (MemoryConfig(64 * MIB, 64 * MIB, shared=True), {"qom-type": "memory-backend-memfd", "share": True}),
        (MemoryConfig(64 * MIB, 64 * MIB, hugepage=2 * MIB), {"hugetlb": True, "hugetlbsize": 2 * MIB, "prealloc": True}),
        (MemoryConfig(64 * MIB, 64 * MIB, file=Path("/ram")), {"qom-type": "memory-backend-file", "mem-path": "/ram", "share": True}),
        (MemoryConfig(64 * MIB, 64 * MIB, file=Path("/ram"), private=True), {"mem-path": "/ram", "share": False}),
    ],
)
def test_what_memory_is_made_of(memory: MemoryConfig, backend: dict[str, Any]) -> None:
    (found,) = values(command(machine(memory=memory), TCG), "-object")
    assert {key: found[key] for key in backend} == backend


def test_shared_directories_share_memory() -> None:
    config = machine(devices=DeviceConfig(shared=(SharedDirectory("t", Path("/d")),)))
    assert values(command(config, TCG), "-object")[0]["share"] is True
    bad = structs.replace(config, memory=MemoryConfig(MIB, MIB, file=Path("/ram"), private=True))
    assert refused(bad).reason == "unusable-value"


def test_pluggable_memory() -> None:
    found = command(machine(memory=MemoryConfig(1024 * MIB, 4096 * MIB)), TCG)
    assert [value["size"] for value in values(found, "-object")] == [1024 * MIB, 3072 * MIB]
    assert dict(values(found, "-m")[0]) == {"size": "1048576k", "slots": "16", "maxmem": "4194304k"}
    for fixed in (
        machine(memory=MemoryConfig(1024 * MIB, 4096 * MIB), hotplug=False),
        machine(memory=MemoryConfig(1024 * MIB, 4096 * MIB), acpi=False),
    ):
        assert "memory1" not in devices(fixed)


@pytest.mark.parametrize(
    ("firmware", "host", "what"),
    [
        (FirmwareConfig(kind="efi"), structs.replace(TCG, efi=None), "EFI firmware"),
        (FirmwareConfig(kind="efi", secure_boot=True), structs.replace(TCG, secure_efi=None), "Secure Boot"),
    ],
)
def test_firmware_that_is_not_installed(firmware: FirmwareConfig, host: HostView, what: str) -> None:
    error = refused(machine(firmware=firmware), host)
    assert error.reason == "missing-on-host"
    assert what in error.why
    assert "ovmf" in error.fix


def test_variables_are_fresh_or_kept() -> None:
    fresh = command(machine(firmware=FirmwareConfig(kind="efi")), TCG).copies
    kept = command(machine(firmware=FirmwareConfig(kind="efi", variables=Path("/s/v.fd"))), TCG).copies
    assert [(copy.to, copy.fresh) for copy in (*fresh, *kept)] == [(Path("efi-vars.fd"), True), (Path("/s/v.fd"), False)]
    assert {copy.source for copy in (*fresh, *kept)} == {samples.EFI.variables}


def test_programs_beside_qemu() -> None:
    config = machine(devices=DeviceConfig(tpm=Tpm(), shared=(SharedDirectory("t", Path("/d"), readonly=True),)))
    tpm, share = command(config, TCG).helpers
    assert (tpm.socket, tpm.directories, tpm.remove) == ("tpm.sock", ("tpm",), ("tpm.sock", "tpm"))
    assert "--readonly" in share.argv
    kept = command(machine(devices=DeviceConfig(tpm=Tpm(Path("/s/tpm")))), TCG).helpers[0]
    assert "/s/tpm" not in kept.remove
    assert refused(config, structs.replace(TCG, swtpm=None)).reason == "missing-on-host"
    assert refused(config, structs.replace(TCG, virtiofs=None)).reason == "missing-on-host"
    assert refused(machine(devices=DeviceConfig(tpm=Tpm(Path("/a,b"))))).reason == "unusable-value"
    assert TCG.virtiofs is not None
    classic = structs.replace(TCG, virtiofs=structs.replace(TCG.virtiofs, classic=True))
    assert refused(config, classic).reason == "missing-on-host"
    assert refused(machine(devices=DeviceConfig(shared=(SharedDirectory("t", Path("/a,b")),))), classic).reason == "unusable-value"
    assert refused(machine(devices=DeviceConfig(shared=(SharedDirectory("t" * 37, Path("/a")),)))).reason == "unusable-value"


@pytest.mark.parametrize("classic", [True, False])
def test_a_directory_of_the_host_is_shared_by_a_program_with_few_rights(*, classic: bool) -> None:
    assert TCG.virtiofs is not None
    host = structs.replace(TCG, virtiofs=structs.replace(TCG.virtiofs, classic=classic))
    # Names with commas and read-only shares are no matter of the program's options.
    config = machine(devices=DeviceConfig(shared=(SharedDirectory("t", Path("/a,b"), readonly=True, as_owner=True),)))
    (share,) = command(config, host).helpers
    start, program = share.argv[: share.argv.index("--")], share.argv[share.argv.index("--") + 1 :]
    assert start[1:3] == ("-I", "-S") and start[3].endswith("/engine/share.py")
    assert {"path=/a,b", f"socket={share.socket}", "readonly=yes", f"guest={1000 if classic else 0}"} <= set(start)
    assert program[0] == str(TCG.virtiofs.program) and "/a,b" not in program and any("/mnt" in word for word in program)
    (writable,) = command(machine(devices=DeviceConfig(shared=(SharedDirectory("t", Path("/a"), as_owner=True),))), host).helpers
    assert "readonly=yes" not in writable.argv


@pytest.mark.parametrize(
    ("devices", "of"),
    [
        (DeviceConfig(video="x"), "the display"),
        (DeviceConfig(sound="x"), "the sound card"),
        (DeviceConfig(inputs=(("mouse", "usb", "m"),)), "input m"),
    ],
)
def test_devices_that_there_are_not(devices: DeviceConfig, of: str) -> None:
    assert refused(machine(devices=devices)).of == of


@pytest.mark.parametrize(
    ("clock", "zone"),
    [
        (ClockConfig(), ""),
        (ClockConfig(base="Europe/Oslo"), "Europe/Oslo"),
        (ClockConfig(offset_seconds=5400), "GST-01:30:00"),
        (ClockConfig(offset_seconds=-3723), "GST+01:02:03"),
    ],
)
def test_where_the_clock_starts(clock: ClockConfig, zone: str) -> None:
    found = command(machine(clock=clock), TCG)
    assert found.environment.get("TZ", "") == zone
    assert dict(values(found, "-rtc")[0])["base"] == ("localtime" if zone else "utc")


def test_an_offset_of_a_day_is_refused() -> None:
    assert refused(machine(clock=ClockConfig(offset_seconds=86_400))).reason == "unusable-value"


def test_hyperv_and_kvm_are_for_kvm_alone() -> None:
    cpu = CpuConfig(hyperv=(("hv-relaxed", "on"),), kvm_hidden=True)
    assert (
        "hv-relaxed=on,kvm=off"
        in command(machine(cpu=cpu), samples.KVM).argv[command(machine(cpu=cpu), samples.KVM).argv.index("-cpu") + 1]
    )
    assert "-cpu max" in " ".join(command(machine(cpu=cpu), TCG).argv)


@pytest.mark.parametrize(("model", "off"), [("host", ["erms", "fsrm"]), ("max", ["fsrm"]), ("qemu64", [])])
def test_an_emulated_processor_moves_memory_in_words(model: str, off: list[str]) -> None:
    cpu = CpuConfig(model=model, features=(("erms", True),) if model == "max" else ())
    assert [name for name, value in values(command(machine(cpu=cpu), TCG), "-cpu")[0] if value == "off"] == off
    assert ("fsrm", "off") not in values(command(machine(cpu=cpu), samples.KVM), "-cpu")[0]


def test_a_saved_state_is_awaited() -> None:
    assert values(command(machine(), TCG, incoming=True), "-incoming") == ["defer"]
    assert values(command(machine(), TCG), "-incoming") == []


# --- plugging in ----------------------------------------------------------------------------------------------------------


def test_plans_follow_the_rules_of_the_command_line() -> None:
    config, spare = samples.PLAIN, spare_ports(samples.PLAIN, TCG)
    disk = DiskConfig("late", samples.OVERLAY, serial="a,b")
    plan = hotplug.plug_disk(disk, config, TCG, spare, ())
    cold = command(machine(disks=(disk,)), TCG)
    assert plan.steps[0].arguments == values(cold, "-blockdev")[0]
    added, there = dict(plan.steps[1].arguments), devices(machine(disks=(disk,)))["ua-late"]
    assert {key: added[key] for key in ("driver", "id", "drive", "serial", "werror")} == {
        key: there[key] for key in ("driver", "id", "drive", "serial", "werror")
    }
    assert plan.port == spare[0]
    assert plan.undo[0].execute == "blockdev-del"
    removal = hotplug.unplug_disk(disk)
    assert removal.then[0].arguments == {"node-name": plan.steps[0].arguments["node-name"]}


def test_ports_are_used_once() -> None:
    spare = spare_ports(samples.PLAIN, TCG)
    taken: list[str] = []
    for number in range(len(spare)):
        taken.append(hotplug.plug_disk(DiskConfig(f"d{number}", ROOT), samples.PLAIN, TCG, spare, taken).port)
    assert taken == list(spare)
    with pytest.raises(UnstartableConfig, match="no PCI root port is free"):
        hotplug.plug_disk(DiskConfig("x", ROOT), samples.PLAIN, TCG, spare, taken)
    assert hotplug.plug_disk(DiskConfig("x", ROOT, bus="scsi"), samples.PLAIN, TCG, spare, taken).port == ""


@pytest.mark.parametrize(
    "disk", [DiskConfig("d", ROOT, bus="sata"), DiskConfig("d", ROOT, bus="usb"), DiskConfig("d", None, bus="scsi", role="cdrom")]
)
def test_disks_that_are_there_from_the_start_or_not_at_all(disk: DiskConfig) -> None:
    with pytest.raises(UnstartableConfig):
        hotplug.plug_disk(disk, samples.PLAIN, TCG, ("pci.9",), ())


def test_cards_get_open_files_by_name() -> None:
    nic = Nic("late", "02:00:00:00:00:09", Tap("tap9", 2), boot_order=3, link_up=False)
    plan = hotplug.plug_nic(nic, samples.PLAIN, samples.KVM, ("pci.9",), ())
    assert plan.opening is not None and plan.opening.queues == 2
    assert plan.files == ("fd-late-0", "fd-late-1")
    assert [step.execute for step in plan.steps] == ["netdev_add", "device_add", "set_link"]
    assert plan.steps[0].arguments["fds"] == "fd-late-0:fd-late-1"
    assert plan.steps[0].arguments["vhostfds"] == "vhost-fd-late-0:vhost-fd-late-1"
    assert "bootindex" not in plan.steps[1].arguments
    assert hotplug.unplug_nic(nic).then[0].arguments == {"id": "n-late"}


def test_old_cards_and_closed_machines_take_nothing() -> None:
    old = Nic("n", "02:00:00:00:00:01", samples.USER, model="rtl8139")
    with pytest.raises(UnstartableConfig, match="use the model virtio"):
        hotplug.plug_nic(old, samples.PLAIN, TCG, ("pci.9",), ())
    with pytest.raises(UnstartableConfig, match="disableHotplug"):
        hotplug.plug_disk(DiskConfig("d", ROOT), structs.replace(samples.PLAIN, hotplug=False), TCG, (), ())


@given(st.lists(st.sampled_from(["virtio", "sata", "scsi", "usb"]), max_size=30), st.integers(0, 12), st.booleans())
def test_any_mix_of_devices_is_placed_without_collisions(buses: list[Any], cards: int, hotplugs: bool) -> None:
    layers = [DiskConfig(f"d{number}", DiskLayer(Path(f"/v/{number}"), "raw"), bus=bus) for number, bus in enumerate(buses)]
    nics = tuple(Nic(f"n{number}", "02:00:00:00:00:01", samples.USER) for number in range(cards))
    config = machine(disks=tuple(layers), nics=nics, hotplug=hotplugs, devices=DeviceConfig(rng=True, tpm=Tpm(), usb_redirections=2))
    found = devices(config)
    places = [(device["bus"], device["addr"]) for device in found.values() if "addr" in device]
    assert len(places) == len(set(places))
    spare = set(spare_ports(config, TCG))
    assert not spare & {bus for bus, _ in places}
    assert spare <= set(found)
