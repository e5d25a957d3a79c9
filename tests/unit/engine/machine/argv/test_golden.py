"""The command lines of whole machines, as text: a line for each option."""

import json
from collections.abc import Iterator

import pytest

from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import MachineConfig
from tests.golden import Golden
from tests.unit.engine.machine.argv import samples

CASES = {
    "plain-tcg": (samples.PLAIN, samples.TCG),
    "plain-kvm": (samples.PLAIN, samples.KVM),
    "full-tcg": (samples.FULL, samples.TCG),
    "full-kvm": (samples.FULL, samples.KVM),
    "bare-tcg": (samples.BARE, samples.TCG),
    "arm-tcg": (samples.ARM, samples.ARM_TCG),
    "arm-kvm": (samples.ARM, samples.ARM_KVM),
}


def lines(found: Command) -> Iterator[str]:
    for argument in found.argv[1:]:
        yield f"\n{argument}" if argument.startswith("-") else f" {argument}"
    for name in ("openings", "helpers", "copies", "before_start"):
        for value in getattr(found, name):
            yield f"\n{name}: {value}"
    yield f"\nenvironment: {json.dumps(dict(found.environment))}"
    yield f"\npins: {found.pins}"
    yield f"\nspare: {' '.join(found.spare_ports)}\n"


@pytest.mark.parametrize("name", CASES)
def test_command_line(name: str, golden: Golden) -> None:
    config, host = CASES[name]
    golden(f"{name}.txt", "".join(lines(command(config, host))).lstrip("\n"))


@pytest.mark.parametrize(("config", "host"), CASES.values(), ids=CASES)
def test_the_same_machine_gives_the_same_command(config: MachineConfig, host: HostView) -> None:
    assert command(config, host) == command(config, host)
