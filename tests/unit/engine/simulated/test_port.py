"""The simulated engine has everything that controllers and handlers call of the real one."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from paddock.base.images.library import ImageLibrary
from paddock.engine.engine import Engine
from paddock.engine.machine.agent import Agent
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.networks.networks import Networks
from paddock.engine.simulated.agent import SimulatedAgent
from paddock.engine.simulated.engine import SimulatedEngine
from paddock.engine.simulated.images import SimulatedImages
from paddock.engine.simulated.machine import SimulatedMachine
from paddock.engine.simulated.machines import SimulatedMachines
from paddock.engine.simulated.networks import SimulatedNetworks
from paddock.engine.simulated.volumes import SimulatedVolumes
from paddock.engine.storage.volumes import Volumes

PAIRS = (
    (Agent, SimulatedAgent),
    (Engine, SimulatedEngine),
    (ImageLibrary, SimulatedImages),
    (Machines, SimulatedMachines),
    (Networks, SimulatedNetworks),
    (QemuMachine, SimulatedMachine),
    (Volumes, SimulatedVolumes),
)
# What the engine calls of its own parts.
INSIDE = {
    (Agent, "close"),
    (Agent, "opened"),
    (Machines, "user_for"),
    (Networks, "zone"),
    (QemuMachine, "commit_disk"),
}
# A live migration to another host: nobody calls it of guests that are not there.
LIVE = {(QemuMachine, name) for name in ("arrived", "describe_leaving", "drop_arrival", "keep_guest", "receive", "send", "settle", "take")}


def _members() -> Iterator[tuple[type, type, str]]:
    for real, simulated in PAIRS:
        for name, _ in inspect.getmembers(real):
            if (not name.startswith("_") or name == "__iter__") and (real, name) not in INSIDE | LIVE:
                yield real, simulated, name


@pytest.mark.parametrize(("real", "simulated", "name"), [pytest.param(*each, id=f"{each[0].__name__}.{each[2]}") for each in _members()])
def test_a_member_is_on_both_sides(real: type, simulated: type, name: str) -> None:
    first, second = getattr(real, name), getattr(simulated, name, None)
    assert second is not None or name in _assigned(simulated), f"{simulated.__name__} lacks {name}"
    if not callable(first):
        return
    assert _kind(first) == _kind(second)
    assert _parameters(first) == _parameters(second)


def test_instances_have_the_attributes_of_real_ones() -> None:
    wanted = {name for real, _ in PAIRS for name in real.__annotations__ if not name.startswith("_")}
    found = {name for _, simulated in PAIRS for name in (*simulated.__annotations__, *_assigned(simulated)) if not name.startswith("_")}
    assert wanted <= found


def _assigned(simulated: type) -> set[str]:
    return set(simulated.__init__.__code__.co_names)  # type: ignore[misc]  # the class's own


def _kind(member: Any) -> tuple[bool, bool]:
    return inspect.iscoroutinefunction(member), inspect.isasyncgenfunction(member)


def _parameters(member: Any) -> list[tuple[str, Any, Any]]:
    # A default that is a function is another one on each side.
    found = inspect.signature(member).parameters.values()
    return [(each.name, each.kind, "function" if callable(each.default) else each.default is each.empty) for each in found]
