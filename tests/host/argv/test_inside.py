"""The hardware inside guests: their identity, a TPM, random numbers, a balloon, a watchdog that bites."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paddock.base.images.build import tiny
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import DiskLayer, KernelConfig
from paddock.kubevirt.translate import firmware
from paddock.kubevirt.translate.resolved import MachineInputs
from tests.host.argv.conftest import Qemu, Start
from tests.host.argv.test_boot import UUID, claims, hardware, machine, over, says, volumes
from tests.host.bare import Bare
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu")

_numbers = itertools.count()


@dataclass
class Guest:
    """A tiny guest that is up."""

    qemu: Qemu
    shell: Any


@pytest.fixture
def boot(start: Start, work: Path, tiny_guest: tiny.TinyImage) -> Any:
    """Boots the tiny guest on some hardware: from its disk when there is a TPM, else its kernel, which is quicker.

    QEMU lays an initial RAM disk over the ACPI tables of a machine with a TPM.
    """

    def begin(tpm_state: Path | None = None, uuid: str = UUID, devices: Mapping[str, Any] | None = None) -> Guest:
        identity = {"uuid": uuid} if uuid else {}
        if devices is None:
            boot = {"kernelArgs": "console=ttyS0 quiet", "container": {"image": "x", "kernelPath": "/k"}}
            found = MachineInputs(kernel=KernelConfig(tiny_guest.bare, tiny_guest.initrd))
            config, _ = machine(hardware("192Mi", firmware={**identity, "kernelBoot": boot}), found)
        else:
            disks = [{"name": "root", "disk": {"bus": "virtio"}}]
            spec = hardware("192Mi", firmware=identity, devices={"disks": disks, **devices})
            layer = over(tiny_guest.disk, work / f"over-{next(_numbers)}.qcow2")
            config, _ = machine({**spec, "volumes": claims("root")}, MachineInputs(volumes=volumes(root=layer), tpm_state=tpm_state))
        qemu = start(config)
        qemu.run()
        says(qemu, "READY")
        bare = Bare(qemu.directory / names.SERIAL_LOG, qemu.directory / names.AGENT, 60)
        return Guest(qemu, bare.shell)

    return begin


@pytest.mark.spec("kubevirt", 33)
def test_the_uuid_is_the_guests_and_stays(boot: Any) -> None:
    for uuid, expected in ((UUID, UUID), (UUID, UUID), ("", firmware.uuid_of("vm"))):
        guest = boot(uuid=uuid)
        assert guest.shell("cat /sys/class/dmi/id/product_uuid").strip().lower() == expected
        assert guest.shell("cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name").split() == ["KubeVirt", "None"]
        guest.qemu.end()


WATCHDOG = (
    # say <W>, then by PCI configuration at 00:10.0: count in microseconds (register 60), go (register 68); wait
    bytes.fromhex("baf803b03ceeb057eeb03eee")
    + bytes.fromhex("66b860800080baf80c66efbafc0cb80400ef")
    + bytes.fromhex("66b868800080baf80c66efbafc0cb002ee")
    + bytes.fromhex("f4ebfd")
)


def watched(start: Start, work: Path, action: str) -> Qemu:
    path = work / action
    path.write_bytes(WATCHDOG.ljust(510, b"\0") + b"\x55\xaa" + b"\0" * ((1 << 20) - 512))
    devices = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "watchdog": {"name": "w", "i6300esb": {"action": action}}}
    config, _ = machine(
        {**hardware(devices=devices), "volumes": claims("root")}, MachineInputs(volumes=volumes(root=DiskLayer(path, "raw")))
    )
    qemu = start(config)
    assert qemu.command.argv.index("-action")
    qemu.run()
    return qemu


@pytest.mark.spec("kubevirt", 86)
@pytest.mark.parametrize("action", ["reset", "poweroff"])
def test_a_watchdog_that_is_not_fed(start: Start, work: Path, action: str) -> None:
    qemu = watched(start, work, action)
    if action == "reset":
        wait_until("the guest begins again", lambda: qemu.console().count("<W>") > 1, 60)
    else:
        # QEMU itself ends, without waiting to be asked why.
        wait_until("the machine is off", lambda: qemu.process.poll() == 0, 60)
        assert qemu.console().count("<W>") == 1


@pytest.mark.spec("kubevirt", 86)
@pytest.mark.needs("swtpm")
def test_small_devices_are_found(boot: Any, work: Path) -> None:
    devices = {
        "rng": {},
        "tpm": {},
        "sound": {"name": "s", "model": "ich9"},
        "inputs": [{"name": "t", "type": "tablet", "bus": "usb"}, {"name": "u", "type": "tablet", "bus": "virtio"}],
    }
    guest = boot(devices=devices)
    assert guest.shell("cat /sys/class/tpm/tpm0/tpm_version_major").strip() == "2"
    assert "virtio_rng" in guest.shell("cat /sys/class/misc/hw_random/rng_current")
    classes = guest.shell("cat /sys/bus/pci/devices/*/class").split()
    # sound, the virtio tablet, and the controller that the USB tablet is on
    assert {"0x040300", "0x098000", "0x0c0330"} <= set(classes)
    assert "QEMU USB Tablet" in guest.qemu.ask("human-monitor-command", **{"command-line": "info usb"})
    balloon = f"/machine/peripheral/{names.BALLOON}"
    guest.qemu.ask("qom-set", path=balloon, property="guest-stats-polling-interval", value=1)

    def total() -> int:
        statistics = guest.qemu.ask("qom-get", path=balloon, property="guest-stats")
        return int(statistics["stats"]["stat-total-memory"]) if statistics["last-update"] else 0

    wait_until("the balloon tells the guest's memory", lambda: 128 << 20 < total() <= 192 << 20, 30)


@pytest.mark.spec("kubevirt", 86)
@pytest.mark.needs("swtpm")
def test_a_tpm_keeps_its_state_or_starts_anew(boot: Any, work: Path) -> None:
    state = work / "tpm"

    def kept() -> bytes:
        return (state / "tpm2-00.permall").read_bytes()

    guest = boot(tpm_state=state, devices={"tpm": {"persistent": True}})
    assert guest.shell("cat /sys/class/tpm/tpm0/tpm_version_major").strip() == "2"
    guest.qemu.end()
    first = kept()
    guest = boot(tpm_state=state, devices={"tpm": {"persistent": True}})
    assert guest.shell("cat /sys/class/tpm/tpm0/tpm_version_major").strip() == "2"
    guest.qemu.end()
    # The secrets that a TPM is made with are in there and stay; counters move on.
    assert len(kept()) == len(first)
    helper = guest.qemu.command.helpers[0]
    assert str(state) not in helper.remove
    fresh = boot(devices={"tpm": {}})
    assert (fresh.qemu.directory / names.TPM_STATE).is_dir()
    assert names.TPM_STATE in fresh.qemu.command.helpers[0].remove
