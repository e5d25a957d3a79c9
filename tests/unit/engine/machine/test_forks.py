"""Forks: what is in their way, and the identity that their guests are to get."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.machine import forks, rehosting
from paddock.engine.machine.config import DeviceConfig, DiskConfig, DiskLayer, MachineConfig, Nic, Tap, Tpm, UserNetwork
from paddock.engine.machine.forks import GuestIdentity
from tests.unit.engine.machine.test_rehosting import CONFIG, NIC, SAVED

OTHER = replace(NIC, mac="02:00:00:00:00:0F", backend=Tap("pdk2"))
FORK = replace(CONFIG, label="ns_b", nics=(OTHER,), firmware=replace(CONFIG.firmware, uuid="two", serial="s"))
USER = UserNetwork("10.0.2.0/24", "10.0.2.2", "10.0.2.15", "10.0.2.3")
SHARED = DiskConfig("data", DiskLayer(Path("/shared"), "raw"), shareable=True)


@pytest.mark.spec("kubevirt", 246)
@pytest.mark.parametrize(
    ("config", "agent", "why"),
    [
        (CONFIG, True, ""),
        (replace(CONFIG, nics=()), False, ""),
        (CONFIG, False, "no agent"),
        (replace(CONFIG, devices=DeviceConfig(tpm=Tpm())), True, "its TPM"),
        (replace(CONFIG, nics=(replace(NIC, backend=USER),)), True, "default is in user mode"),
        (replace(CONFIG, disks=(SHARED,)), True, "disk data is written by several machines"),
        (replace(CONFIG, disks=(replace(SHARED, readonly=True),)), True, ""),
    ],
)
def test_obstacles(config: MachineConfig, agent: bool, why: str) -> None:
    found = forks.obstacles(config, agent=agent)
    assert (len(found), why in "".join(found)) == (int(bool(why)), True)


@pytest.mark.spec("kubevirt", 246)
@pytest.mark.parametrize(
    ("fork", "why"),
    [
        (FORK, ""),
        (replace(FORK, label="other_b"), "another namespace"),
        (replace(FORK, nics=(replace(OTHER, mac=NIC.mac.upper()),)), "has the MAC address of the source"),
    ],
)
def test_mismatches(fork: MachineConfig, why: str) -> None:
    found = list(forks.mismatches(CONFIG, fork, agent=True))
    assert (len(found), why in "".join(found)) == (int(bool(why)), True)


@pytest.mark.spec("kubevirt", 245)
def test_a_fork_is_the_same_hardware_with_another_identity() -> None:
    saved = replace(SAVED, agent=True)
    assert rehosting.differences(saved, FORK) == ()
    made = rehosting.rehosted(saved, FORK, hostname="b")
    assert made.identity == GuestIdentity("b", {"default": ("02:00:00:00:00:01", "02:00:00:00:00:0f")})
    assert made.started.firmware.uuid == "two" and made.started.nics == (OTHER,)
    # Another run of the same machine has the identity that it had, and no agent gives one.
    assert rehosting.rehosted(saved, CONFIG).identity is None and rehosting.rehosted(SAVED, FORK).identity is None


def test_other_hardware_is_a_difference_for_a_fork_too() -> None:
    assert rehosting.differences(SAVED, replace(FORK, nics=(*FORK.nics, replace(OTHER, name="more")))) == ("nics",)
    assert rehosting.differences(SAVED, replace(FORK, firmware=replace(FORK.firmware, kind="efi"))) == ("firmware",)


def test_a_guest_from_before_generation_counters_gets_none() -> None:
    before = replace(SAVED.started, devices=replace(SAVED.started.devices, generation_id=""))
    saved = replace(SAVED, started=before)
    assert rehosting.differences(saved, CONFIG) == () and not rehosting.rehosted(saved, CONFIG).started.devices.generation_id


def test_a_nic_that_the_guest_does_not_know_gets_no_address() -> None:
    assert forks.identity(CONFIG, replace(FORK, nics=(*FORK.nics, Nic("new", "02:00:00:00:00:10", Tap("pdk3")))), "b").macs.keys() == {
        "default"
    }
