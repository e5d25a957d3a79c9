"""The hardware of a machine against its class: what changes, what waits, what is refused."""

from typing import Any

import pytest
from pyVmomi import vim

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ClassPayload, GpuPayload, LimitsPayload, PerformancePayload, SecurityPayload
from paddock_drivers.vsphere import hardware


def config(**members: Any) -> Any:
    plain = {
        "version": "vmx-15",
        "firmware": "bios",
        "hardware": vim.vm.VirtualHardware(numCPU=2, memoryMB=4096, device=[]),
        "flags": vim.vm.FlagInfo(),
        "tools": vim.vm.ToolsConfigInfo(),
        "bootOptions": vim.vm.BootOptions(),
        "extraConfig": [vim.option.OptionValue(key="svga.present", value="TRUE")],
    }
    return vim.vm.ConfigInfo(**{**plain, **members})


def wanted(**members: Any) -> ClassPayload:
    return ClassPayload(**{"cpu": 2, "memory_mib": 4096, **members})


def test_what_a_machine_has_already_is_no_change() -> None:
    given = wanted(firmware="BIOS", extra_config={"svga.present": "TRUE"}, guest_tools_policy="install")
    made = hardware.changes(config(), given, running=True)
    assert (made.changed, made.needs_off, made.limitations) == (False, (), ())


@pytest.mark.spec("virtrigaud", 118, 119, 120, 145, 148)
@pytest.mark.spec("virtrigaud", 117, "skip, upgrade and uninstall as far as the provider can")
def test_every_member_of_a_class_becomes_a_member_of_the_specification() -> None:
    given = wanted(
        cpu=4,
        memory_mib=8192,
        firmware="UEFI",
        guest_tools_policy="upgrade",
        extra_config={"disk.EnableUUID": "TRUE", "vsphere.guestId": "ubuntu64Guest", "vsphere.hardwareVersion": "19"},
        performance_profile=PerformancePayload(
            latency_sensitivity="high",
            cpu_hot_add_enabled=True,
            memory_hot_add_enabled=True,
            virtualization_based_security=True,
            hyper_threading_policy="avoid",
        ),
        security_profile=SecurityPayload(secure_boot=True, tpm_enabled=True, tpm_version="2.0", vtd_enabled=True),
        resource_limits=LimitsPayload(
            cpu_limit=4000, cpu_reservation=1000, cpu_shares=3000, memory_limit_mib=8192, memory_reservation_mib=512
        ),
    )
    hardware.check(given)
    made = hardware.changes(config(), given, running=False)
    spec = made.spec
    assert made.changed and not made.needs_off and not made.limitations
    assert (spec.numCPUs, spec.memoryMB, spec.firmware, spec.guestId) == (4, 8192, "efi", "ubuntu64Guest")
    assert (spec.cpuHotAddEnabled, spec.memoryHotAddEnabled, spec.nestedHVEnabled) == (True, True, True)
    assert (spec.latencySensitivity.level, spec.memoryReservationLockedToMax) == ("high", True)
    assert (spec.flags.htSharing, spec.flags.vvtdEnabled, spec.flags.vbsEnabled) == ("none", True, True)
    assert (spec.bootOptions.efiSecureBootEnabled, spec.tools.toolsUpgradePolicy) == (True, "upgradeAtPowerCycle")
    assert (spec.cpuAllocation.limit, spec.cpuAllocation.reservation, spec.cpuAllocation.shares.shares) == (4000, 1000, 3000)
    assert (spec.memoryAllocation.limit, spec.memoryAllocation.reservation, spec.memoryAllocation.shares.level) == (8192, 512, "normal")
    assert [(each.key, each.value) for each in spec.extraConfig] == [("disk.EnableUUID", "TRUE")]
    assert [type(each.device) for each in spec.deviceChange] == [vim.vm.device.VirtualTPM]
    assert hardware.version_of(given) == 19


def test_a_running_machine_grows_where_hot_add_is_on_and_never_shrinks() -> None:
    hot = config(cpuHotAddEnabled=True, memoryHotAddEnabled=True)
    assert hardware.changes(hot, wanted(cpu=4, memory_mib=8192), running=True).needs_off == ()
    assert hardware.changes(hot, wanted(cpu=1), running=True).needs_off == ("CPUs from 2 to 1",)
    assert hardware.changes(config(), wanted(memory_mib=8192), running=True).needs_off == ("MemoryMiB from 4096 to 8192",)
    assert hardware.changes(config(), wanted(cpu=1, memory_mib=8192), running=False).needs_off == ()


def test_what_a_running_machine_cannot_take_is_a_limitation_and_does_not_hold_up_the_rest() -> None:
    profile = PerformancePayload(nested_virtualization=True, hyper_threading_policy="avoid", latency_sensitivity="low")
    given = wanted(cpu=4, firmware="UEFI", performance_profile=profile, security_profile=SecurityPayload(secure_boot=True))
    made = hardware.changes(config(cpuHotAddEnabled=True), given, running=True)
    assert made.spec.numCPUs == 4 and made.spec.firmware is None and made.spec.flags is None
    assert len([each for each in made.limitations if "while it is off" in each]) == 6


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"cpu": 10_000}, ErrorKind.INVALID_SPEC),
        ({"memory_mib": 1023}, ErrorKind.INVALID_SPEC),
        ({"firmware": "openfirmware"}, ErrorKind.INVALID_SPEC),
        ({"firmware": "BIOS", "security_profile": SecurityPayload(secure_boot=True)}, ErrorKind.INVALID_SPEC),
        ({"security_profile": SecurityPayload(require_encryption=True)}, ErrorKind.NOT_SUPPORTED),
        ({"firmware": "UEFI", "security_profile": SecurityPayload(tpm_enabled=True, tpm_version="1.2")}, ErrorKind.NOT_SUPPORTED),
        ({"gpu": GpuPayload(count=1)}, ErrorKind.NOT_SUPPORTED),
        ({"extra_config": {"guestinfo.userdata": "x"}}, ErrorKind.INVALID_SPEC),
        ({"extra_config": {"paddock.owner-uid": "x"}}, ErrorKind.INVALID_SPEC),
        ({"extra_config": {"vsphere.hardwareVersion": "newest"}}, ErrorKind.INVALID_SPEC),
    ],
)
def test_a_class_that_cannot_be_is_refused(members: dict[str, Any], kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        hardware.check(wanted(**members))
    assert caught.value.kind is kind
