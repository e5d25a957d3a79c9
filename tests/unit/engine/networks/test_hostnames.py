"""The names of a directory's objects on the host, in the form of this version and of earlier ones."""

from pathlib import Path

import pytest

from paddock.engine.networks import hostnames
from paddock.engine.networks.hostnames import HostNames

DIRECTORY = Path("/var/lib/paddock/engine/networks")
CARD = ("3f0c9a7e", "default")


def described(names: HostNames) -> tuple[str, str, int, str]:
    return names.bridge, names.tap(CARD), names.routes, names.filters


def test_every_form_that_was_ever_given_is_still_known() -> None:
    """These lines are on hosts: a change here, but for a new first line, loses the network of running guests."""
    assert [described(names) for names in hostnames.every(DIRECTORY)] == [
        ("pk7giol", "pk7gioleridq323", 0x50000000 + int("7giol", 32), "paddock_7giol"),
        ("pk3c25", "pk3c2576e4dd0c", 0x504B0000 + 0x3C25, "paddock_3c25"),
    ]


def test_names_fit_into_the_kernel_and_are_apart() -> None:
    every = [described(names) for names in hostnames.every(DIRECTORY)]
    assert all(len(name) <= 15 for bridge, tap, _, _ in every for name in (bridge, tap))
    assert all(len({*column}) == len(every) for column in zip(*every, strict=True))


@pytest.mark.parametrize("names", hostnames.every(DIRECTORY), ids=lambda names: names.bridge)
def test_a_bridge_gives_its_names_back(names: HostNames) -> None:
    assert hostnames.of_bridge(names.bridge) == names
    assert hostnames.bridge_beside(names.filters) == names.bridge and not hostnames.bridge_beside("filter")
    assert hostnames.of_bridge(names.tap(CARD)) is None
    assert names.has(names.bridge) and names.has(names.tap(CARD)) and not names.is_tap(names.bridge)


def test_a_device_whose_name_begins_alike_belongs_to_another_form() -> None:
    _, earlier = hostnames.every(DIRECTORY)
    longer = hostnames.of_bridge(f"{earlier.bridge}0")
    assert longer is not None and longer.form != earlier.form
    assert not earlier.has(longer.bridge) and not earlier.has(longer.tap(CARD)) and not longer.has(earlier.tap(CARD))


@pytest.mark.parametrize("device", ["", "pk", "eth0", "pkwww", "pkABCD", "pk123", "pk12345678", "xpk1234"])
def test_other_devices_are_no_bridges_of_ours(device: str) -> None:
    assert hostnames.of_bridge(device) is None
