"""Reads a command line the way QEMU does, independently of how it was written: options, and lists of keys and values."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig
from tests.unit.engine.machine.argv.samples import TCG

# Every option that may stand in a command line, and whether a value follows.
OPTIONS = {
    "-nodefaults": False,
    "-no-user-config": False,
    "-no-shutdown": False,
    "-S": False,
    **dict.fromkeys(("-name", "-sandbox", "-action", "-incoming", "-accel", "-machine", "-cpu", "-smp", "-m", "-uuid", "-smbios"), True),
    **dict.fromkeys(("-rtc", "-global", "-boot", "-kernel", "-initrd", "-append", "-acpitable", "-fw_cfg", "-vnc", "-display"), True),
    **dict.fromkeys(("-device", "-chardev", "-mon", "-object", "-blockdev", "-netdev", "-audiodev", "-tpmdev", "-serial"), True),
}
AS_JSON = ("-device", "-object", "-blockdev", "-netdev")
# These take their value whole.
WHOLE = ("-kernel", "-initrd", "-append", "-uuid", "-incoming", "-vnc", "-display", "-serial")

Parsed = list[tuple[str, Any]]


def parse(argv: Sequence[str]) -> Parsed:
    """The options with their values: parsed JSON, a list of (key, value), or the text."""
    found: Parsed = []
    words = iter(argv[1:])
    for option in words:
        # QEMU takes two dashes for one.
        assert option in OPTIONS, option
        value = next(words) if OPTIONS[option] else None
        if value is None or option in WHOLE:
            found.append((option, value))
        elif option in AS_JSON:
            found.append((option, json.loads(value)))
        else:
            found.append((option, keys(value)))
    return found


def keys(text: str) -> list[tuple[str, str]]:
    """`a,b=c,,d` -> [("a", ""), ("b", "c,d")]: a doubled comma is one that belongs to a value."""
    parts, part, index = [], "", 0
    while index < len(text):
        if text[index] != ",":
            part += text[index]
        elif text[index : index + 2] == ",,":
            part, index = part + ",", index + 1
        else:
            parts.append(part)
            part = ""
        index += 1
    pairs = [each.partition("=") for each in (*parts, part)]
    return [(key, value) for key, _, value in pairs]


def shape(value: Any) -> Any:
    """Return a value without its texts: the keys, and their places."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    if isinstance(value, tuple):
        key, inner = value
        return (key, shape(inner))
    return type(value).__name__


def values(found: Command, option: str) -> list[Any]:
    return [value for name, value in parse(found.argv) if name == option]


def devices(config: MachineConfig, host: HostView = TCG) -> dict[str, dict[str, Any]]:
    return {value["id"]: value for value in values(command(config, host), "-device")}


def refused(config: MachineConfig, host: HostView = TCG) -> UnstartableConfig:
    with pytest.raises(UnstartableConfig) as caught:
        command(config, host)
    assert caught.value.why
    return caught.value


def disks(count: int, **members: Any) -> tuple[DiskConfig, ...]:
    return tuple(DiskConfig(f"d{number}", DiskLayer(Path(f"/v/{number}"), "raw"), **members) for number in range(count))
