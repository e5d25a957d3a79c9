"""No value of a user's can become an option, a property or a device: any text in any field leaves the command line's shape alone."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.options import keyed, pairs
from paddock.engine.machine.argv.view import HostView
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
    SharedDirectory,
    StreamNetwork,
    Tap,
)
from tests.unit.engine.machine.argv import samples
from tests.unit.engine.machine.argv.parsing import keys, parse, shape

# What means something to one of QEMU's parsers, to a shell, or to JSON.
NASTY = [
    ",id=x",
    ",,",
    ",",
    "=",
    "a=b,c=d",
    "-device virtio-rng-pci",
    " -S",
    "\n-monitor stdio",
    '"}',
    '","driver":"vfio-pci',
    "\\",
    "\\,",
    "'",
    "$(id)",
    "json:{}",
    "nbd://x/y",
    "fat:rw:/",
    "/etc/passwd",
    "../../x",
    "%n",
    "\x00",
    "\x1b[2J",
    "\ud800",
    "ä,ö=ü",
    ":",
    "|cat",
    "x" * 300,
    "",
]
TEXT = st.one_of(st.sampled_from(NASTY), st.text(max_size=40), st.builds(str.__add__, st.sampled_from(NASTY), st.text(max_size=10)))


def machine(fill: str) -> MachineConfig:
    """A machine with the text in every field that holds any."""
    path = Path(fill) if "\0" not in fill else Path("x")
    layer = DiskLayer(path, "qcow2", backing=DiskLayer(path / "base", "raw"))
    return samples.machine(
        label=fill,
        cpu=CpuConfig(sockets=2, max_sockets=2),
        memory=MemoryConfig(1 << 30, 1 << 30, file=path),
        firmware=FirmwareConfig(
            kind="efi",
            variables=path,
            uuid=fill or "x",
            serial=fill or "x",
            manufacturer=fill or "x",
            product=fill or "x",
            family=fill or "x",
            version=fill or "x",
            sku=fill or "x",
            chassis=(("manufacturer", fill or "x"), ("asset", fill or "x")),
            acpi_tables=(path,),
            files=((fill, path),),
        ),
        kernel=KernelConfig(path, path, fill or "x"),
        disks=(DiskConfig(fill, layer, serial=fill or "x"), DiskConfig(fill + "2", layer, bus="usb", role="cdrom")),
        nics=(
            Nic(
                fill,
                fill,
                structs.replace(samples.USER, network=fill, hostname=fill or "x", search=(fill,), domain=fill or "x", forwards=()),
            ),
            Nic(fill + "2", fill, StreamNetwork(path)),
            Nic(fill + "3", fill, Tap(fill)),
        ),
        devices=DeviceConfig(
            generation_id=fill or "x", pci=(fill,), inputs=(("tablet", "usb", fill),), shared=(SharedDirectory("tag", path),)
        ),
    )


PLAIN = machine("plain")


def made(config: MachineConfig, host: HostView) -> Command | None:
    """The command; None: the value was refused, with a reason."""
    try:
        return command(config, host)
    except UnstartableConfig as error:
        return None if error.reason == "unusable-value" else pytest.fail(f"refused as {error.reason}: {error}")


@pytest.mark.parametrize("fill", NASTY)
def test_nasty_texts(fill: str) -> None:
    hold(fill)


@given(TEXT)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text(fill: str) -> None:
    hold(fill)


def hold(fill: str) -> None:
    found = made(machine(fill), samples.TCG)
    if found is None:
        return
    ours, theirs = parse(found.argv), parse(command(PLAIN, samples.TCG).argv)
    assert shape(ours) == shape(theirs)
    # What QEMU reads is what the user wrote, everywhere.
    values: dict[str, Any] = dict(ours)
    assert values["-append"] == (fill or "x")
    assert values["-uuid"] == (fill or "x")
    assert dict(values["-name"])["guest"] == fill
    serials = [value["serial"] for option, value in ours if option == "-device" and "serial" in value]
    assert serials == [fill or "x"]
    (system,) = [dict(value) for option, value in ours if option == "-smbios" and value[0] == ("type", "1")]
    assert {key: system[key] for key in ("manufacturer", "product", "family", "version", "serial", "sku", "uuid")} == dict.fromkeys(
        ("manufacturer", "product", "family", "version", "serial", "sku", "uuid"), fill or "x"
    )
    # Nothing that QEMU would take for a file name to be parsed: only nodes with a driver of their own.
    for option, value in ours:
        if option == "-blockdev":
            assert value["driver"] in ("raw", "qcow2")
            assert value["file"]["driver"] in ("file", "host_device")


@pytest.mark.parametrize("field", ["model", "features", "hyperv"])
@given(fill=TEXT)
@settings(deadline=None)
def test_processor_names_are_names_or_refused(field: str, fill: str) -> None:
    """-cpu has no way to escape anything, so only plain words get there."""
    cpu = {
        "model": CpuConfig(model=fill),
        "features": CpuConfig(features=((fill, True),)),
        "hyperv": CpuConfig(hyperv=(("hv-vendor-id", fill),)),
    }[field]
    found = made(samples.machine(cpu=cpu), samples.KVM)
    if found is None:
        return
    value = found.argv[found.argv.index("-cpu") + 1]
    assert value.count(",") == {"model": 1 if fill == "host" else 0, "features": 2, "hyperv": 2}[field]
    assert "\n" not in value


@given(TEXT)
@settings(deadline=None)
def test_time_zones_and_machine_types_are_names_or_refused(fill: str) -> None:
    for config in (samples.machine(machine_type=fill), samples.machine(clock=structs.replace(samples.PLAIN.clock, base=fill))):
        found = made(config, samples.TCG)
        if found is None:
            continue
        assert not {",", " ", "\n"} & set(config.machine_type)
        zone = found.environment.get("TZ", "")
        assert not zone.startswith((":", "/"))
        assert ".." not in zone


@given(st.dictionaries(st.sampled_from(["a", "b", "c_d"]), TEXT.filter(lambda text: "\0" not in text and text.isprintable())))
def test_escaping_is_undone_by_the_parser(members: dict[str, str]) -> None:
    expected = [(key.replace("_", "-"), value) for key, value in members.items()]
    assert keys(keyed("word", **members))[1:] == expected
    if members:
        assert keys(pairs(*members.items())) == list(members.items())
