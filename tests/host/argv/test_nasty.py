"""Hundreds of machines whose names, serials, arguments and labels are meant to break out: QEMU has them as they were written."""

from itertools import cycle, islice
from pathlib import Path

import pytest
from msgspec import structs

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.config import (
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    FirmwareConfig,
    KernelConfig,
    MachineConfig,
    MemoryConfig,
    Nic,
    UserNetwork,
)
from tests.host.argv.conftest import Start
from tests.host.argv.test_accepted import USER, UUID
from tests.unit.engine.machine.argv.test_injection import NASTY

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]

_PIECES = [text for text in NASTY if text and "\0" not in text and "\ud800" not in text]
# Each text alone, and pairs of them in turn.
TEXTS = [*_PIECES, *(one + two for one, two in islice(zip(cycle(_PIECES), cycle(_PIECES[7:])), 280))]


def nasty(text: str, number: int, folder: Path) -> MachineConfig:
    """A machine that holds the text wherever QEMU takes any."""
    name = text[:60]
    file = folder / (name.replace("/", "_") + "x")
    if not file.exists():
        file.write_bytes(b"\0" * 65536)
    kernel = folder / "kernel"
    kernel.write_bytes(b"\0" * 4096)
    return MachineConfig(
        name,
        CpuConfig(model="qemu64"),
        MemoryConfig(16 << 20, 16 << 20),
        firmware=FirmwareConfig(uuid=UUID, serial=text, product=text, version=text, chassis=(("asset", text),)),
        kernel=KernelConfig(kernel, None, text) if number % 2 else None,
        disks=(
            DiskConfig(text, DiskLayer(file, "raw"), serial=text[:20]),
            DiskConfig(text + "2", DiskLayer(file, "raw"), bus="scsi", role="cdrom", serial=text[:20]),
        ),
        nics=(Nic(text, "02:00:00:00:00:01", user_with(text)),),
        devices=DeviceConfig(graphics=False, inputs=(("tablet", "usb", text),)),
        hotplug=False,
    )


def user_with(text: str) -> UserNetwork:
    return structs.replace(USER, hostname="h", domain=text[:60], search=(text[:60],))


@pytest.mark.spec("kubevirt", 106)
@pytest.mark.parametrize("part", range(6))
def test_texts_stay_values(start: Start, work: Path, part: int) -> None:
    there = None
    for number, text in enumerate(TEXTS[part::6]):
        qemu = start(nasty(text, number, work))
        assert qemu.ask("query-name").get("name", "") == text[:60]
        disk = names.device(text)
        assert qemu.get(disk, "serial") == text[:20]
        assert qemu.get(names.device(text + "2"), "serial") == text[:20]
        if number % 2:
            assert qemu.ask("qom-get", path="/machine", property="append") == text
        devices = {each["name"] for each in qemu.ask("qom-list", path="/machine/peripheral")}
        own = {disk, names.device(text + "2"), names.nic(text)}
        assert own <= devices
        # No text made a device, a monitor or a character device more than another one.
        shape = (len(devices), len(qemu.ask("query-chardev")), len(qemu.ask("query-block")))
        assert there in (None, shape)
        there = shape
        assert qemu.ask("qom-list", path="/machine/peripheral-anon") == [{"name": "type", "type": "string"}]
        qemu.end()


def test_unusable_texts_are_refused_before_qemu(start: Start, work: Path) -> None:
    plain = nasty("plain", 1, work)
    for text in ("a\0b", "\ud800", "x" * 200_000):
        with pytest.raises(UnstartableConfig):
            start(structs.replace(plain, firmware=structs.replace(plain.firmware, serial=text)))
