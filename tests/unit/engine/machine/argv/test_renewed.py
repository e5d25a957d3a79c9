"""The command line of a QEMU that a running guest moves into: everything is where the guest has it."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.renewed import RunningHardware, obstacles, renewed
from paddock.engine.machine.config import DeviceConfig, DiskConfig, DiskLayer, MachineConfig, Nic, SharedDirectory, StreamNetwork, Tap, Tpm
from tests.unit.engine.machine.argv.parsing import parse
from tests.unit.engine.machine.argv.samples import KVM, ROOT, TCG, USER, machine

DATA = DiskConfig("data", DiskLayer(Path("/v/data"), "raw"), hotplugged=True)
MORE = DiskConfig("more", DiskLayer(Path("/v/more"), "raw"), bus="scsi", hotplugged=True)
CARD = Nic("extra", "02:00:00:00:00:02", Tap("tap9"), link_up=False)


def _started() -> MachineConfig:
    user = structs.replace(USER, forwards=())
    return machine(
        disks=(DiskConfig("root", ROOT), DiskConfig("two", DiskLayer(Path("/v/two"), "raw"))), nics=(Nic("default", "02::1", user),)
    )


def _places(config: MachineConfig) -> dict[str, dict[str, Any]]:
    """As a QEMU that was started with the config says it."""
    found = {device["id"]: device for device in _values(command(config, TCG), "-device") if "id" in device}
    return {name: {key: one[key] for key in ("bus", "scsi-id") if key in one} for name, one in found.items()}


def _values(found: Command, option: str) -> list[Any]:
    return [value for name, value in parse(found.argv) if name == option]


def _by_id(found: Command) -> dict[str, Any]:
    return {value["id"]: value for value in _values(found, "-device") if "id" in value}


def test_without_a_change_it_is_the_line_of_the_start() -> None:
    started = _started()
    assert renewed(started, RunningHardware(started, _places(started)), TCG) == command(started, TCG, incoming=True)


def test_ports_of_the_host_wait_until_the_old_one_has_let_go_of_them() -> None:
    user = structs.replace(USER, forwards=(("tcp", "127.0.0.1", 8080, 80),))
    started = structs.replace(_started(), nics=(Nic("default", "02::1", user),))
    assert any("hostfwd" in word for word in command(started, TCG).argv)
    assert not any("hostfwd" in word for word in renewed(started, RunningHardware(started, _places(started)), TCG).argv)
    # There is no old one.
    assert renewed(started, RunningHardware(started, _places(started), ports_taken=False), TCG) == command(started, TCG, incoming=True)


def test_what_was_plugged_in_is_where_it_was_plugged_in() -> None:
    started = _started()
    config = structs.replace(started, disks=(*started.disks, DATA, MORE), nics=(*started.nics, CARD))
    own: dict[str, dict[str, Any]] = {
        names.device("data"): {"bus": "pci.9"},
        names.device("more"): {"bus": "scsi0.0", "scsi-id": 3},
        names.nic("extra"): {"bus": "pci.8"},
    }
    found = renewed(started, RunningHardware(config, _places(started) | own), KVM)
    before, now = _by_id(command(started, KVM, incoming=True)), _by_id(found)
    assert {name: now[name] for name in before} == before, "nothing else has moved"
    assert now["ua-data"]["bus"] == "pci.9" and now["net-extra"]["bus"] == "pci.8"
    assert (now["ua-more"]["bus"], now["ua-more"]["scsi-id"]) == ("scsi0.0", 3)
    assert [(one.nic, one.device, one.vhost) for one in found.openings] == [("extra", "tap9", True)]
    assert found.before_start[-1].arguments == {"name": "net-extra", "up": False}
    argv = found.arguments({"extra": [7]}, {"extra": [8]})
    assert any('"fds":"7"' in word and '"vhostfds":"8"' in word for word in argv)


def test_what_was_taken_out_is_out_and_the_others_stay() -> None:
    started = _started()
    config = structs.replace(started, disks=started.disks[1:], nics=())
    found = renewed(started, RunningHardware(config, {"ua-two": _places(started)["ua-two"]}), TCG)
    before, now = _by_id(command(started, TCG)), _by_id(found)
    assert set(before) - set(now) == {"ua-root", "net-default"}
    assert {name: before[name] for name in now} == now
    assert not [word for word in found.argv if "n-default" in word or "/volumes/root.img" in word]


def test_what_was_taken_out_and_plugged_in_again_is_once_and_there() -> None:
    started = _started()
    again = DiskConfig("two", DiskLayer(Path("/v/other"), "raw"), bus="scsi", hotplugged=True)
    config = structs.replace(started, disks=(started.disks[0], again))
    places = {**_places(started), "ua-two": {"bus": "scsi0.0", "scsi-id": 0}}
    found = renewed(started, RunningHardware(config, places), TCG)
    assert [device["driver"] for device in _values(found, "-device") if device.get("id") == "ua-two"] == ["scsi-hd"]
    assert sum("/v/other" in word for word in found.argv) == 1 and not any("/v/two" in word for word in found.argv)


def test_layers_links_and_processors_are_the_present_ones() -> None:
    started = _started()
    over = DiskLayer(Path("/scratch/over.qcow2"), "qcow2", backing=ROOT)
    config = structs.replace(
        started,
        disks=(structs.replace(started.disks[0], layer=over), started.disks[1]),
        nics=(structs.replace(started.nics[0], link_up=False),),
    )
    processor = {"driver": "qemu64-x86_64-cpu", "id": "cpu-1-0-0-0", "socket-id": 1}
    found = renewed(started, RunningHardware(config, _places(started), (processor,)), TCG)
    assert _by_id(found)["ua-root"]["drive"] == names.format_node("root", over.path)
    assert found.before_start[-1].arguments == {"name": "net-default", "up": False}
    assert _by_id(found)["cpu-1-0-0-0"] == processor
    assert [word for word in found.argv if word.startswith("1,maxcpus")] == [
        word for word in command(started, TCG).argv if "maxcpus" in word
    ]


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (machine(devices=DeviceConfig(pci=("0000:01:00.0",))), "passed through"),
        (machine(devices=DeviceConfig(shared=(SharedDirectory("t", Path("/s")),))), "shares directories"),
        (machine(devices=DeviceConfig(tpm=Tpm(Path("/tpm")))), "TPM"),
        (machine(devices=DeviceConfig(vsock=3)), "VSOCK"),
        (machine(nics=(Nic("p", "02::1", StreamNetwork(Path("/s"))),)), "passt"),
        (machine(disks=(DiskConfig("l", ROOT, bus="scsi", role="lun"),)), "device of the host"),
    ],
)
def test_what_cannot_be_moved_is_named(config: MachineConfig, word: str) -> None:
    found = obstacles(config)
    assert len(found) == 1 and word in found[0]


def test_all_else_can() -> None:
    assert obstacles(structs.replace(_started(), devices=DeviceConfig(tpm=Tpm()))) == ()
