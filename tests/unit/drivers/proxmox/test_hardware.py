"""The hardware of a class as Proxmox VE has it, and what is left of it."""

from typing import Any

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ClassPayload, GpuPayload, LimitsPayload, PerformancePayload, SecurityPayload
from paddock_drivers.proxmox import hardware
from paddock_drivers.proxmox.config import ProxmoxMachineConfig
from paddock_drivers.proxmox.hardware import ProxmoxHardwareChange, ProxmoxNodeFacts

FACTS = ProxmoxNodeFacts((9, 0), 2000.0)
PLAIN: dict[str, Any] = {"cores": 2, "sockets": 1, "memory": "2048", "bios": "seabios"}
HOT = PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True)


def given(cpu: int = 2, memory: int = 2048, **more: Any) -> ClassPayload:
    return ClassPayload(cpu=cpu, memory_mib=memory, **more)


def change(wanted: ClassPayload, config: dict[str, Any] | None = None, **more: Any) -> ProxmoxHardwareChange:
    return hardware.change(wanted, ProxmoxMachineConfig(100, PLAIN if config is None else config), FACTS, **more)


def test_an_unchanged_class_changes_nothing() -> None:
    assert change(given()) == ProxmoxHardwareChange()


@pytest.mark.parametrize(
    ("wanted", "config", "form"),
    [
        (given(cpu=3), PLAIN, {"cores": 3, "sockets": 1}),
        (given(cpu=4), {**PLAIN, "sockets": 2, "cores": 1}, {"cores": 2, "sockets": 2}),
        (given(cpu=3), {**PLAIN, "sockets": 2, "cores": 1}, {"cores": 3, "sockets": 1}),
        (given(memory=4096), PLAIN, {"memory": 4096}),
        (given(memory=4096), {**PLAIN, "memory": "current=2048"}, {"memory": 4096}),
        (given(performance_profile=PerformancePayload(nested_virtualization=True)), PLAIN, {"cpu": "host"}),
        (given(resource_limits=LimitsPayload(cpu_limit=3000)), PLAIN, {"cpulimit": 1.5}),
        (given(resource_limits=LimitsPayload(cpu_shares=2000)), PLAIN, {"cpuunits": 2000}),
        (given(resource_limits=LimitsPayload(cpu_shares=500_000)), PLAIN, {"cpuunits": 10_000}),
        (given(resource_limits=LimitsPayload(memory_reservation_mib=1024)), PLAIN, {"balloon": 1024}),
        (given(extra_config={"proxmox.onboot": "1", "vsphere.x": "y"}), PLAIN, {"onboot": "1"}),
        (given(extra_config={"proxmox.onboot": "1"}), {**PLAIN, "onboot": 1}, {}),
    ],
)
def test_what_differs_is_set(wanted: ClassPayload, config: dict[str, Any], form: dict[str, Any]) -> None:
    assert change(wanted, config).form == form


def test_hot_add_leaves_room_and_plugs_what_is_used() -> None:
    made = change(given(performance_profile=HOT)).form
    assert made == {"cores": 8, "sockets": 1, "vcpus": 2, "hotplug": "cpu,disk,memory,network,usb", "numa": True}
    config = {**PLAIN, **made, "numa": 1}
    assert change(given(cpu=5, performance_profile=HOT), config).form == {"vcpus": 5}
    assert change(given(cpu=9, performance_profile=HOT), config).form == {"cores": 36, "sockets": 1, "vcpus": 9}
    assert change(given(cpu=8), config) == ProxmoxHardwareChange({}, ("vcpus",))


def test_memory_of_a_small_machine_cannot_grow_while_it_runs() -> None:
    found = change(given(memory=512, performance_profile=HOT))
    assert "memory" not in str(found.form["hotplug"]) and "1024 MiB" in found.limitations[0]


def test_a_new_tpm_needs_a_storage_and_is_made_once() -> None:
    wanted = given(security_profile=SecurityPayload(tpm_enabled=True, tpm_version="2.0"))
    assert change(wanted, storage="tank").form == {"tpmstate0": "tank:1,version=v2.0"}
    assert change(wanted, {**PLAIN, "tpmstate0": "tank:vm-100-disk-1"}, storage="tank").form == {}


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        (given(firmware="UEFI"), "firmware"),
        (given(security_profile=SecurityPayload(secure_boot=True)), "secureBoot"),
        (given(security_profile=SecurityPayload(vtd_enabled=True)), "vtdEnabled"),
        (given(security_profile=SecurityPayload(encryption_enabled=True)), "encryptionPolicy"),
        (given(performance_profile=PerformancePayload(latency_sensitivity="high")), "latencySensitivity"),
        (given(performance_profile=PerformancePayload(hyper_threading_policy="avoid")), "hyperThreadingPolicy"),
        (given(resource_limits=LimitsPayload(cpu_reservation=100)), "cpuReservation"),
        (given(resource_limits=LimitsPayload(memory_limit_mib=100)), "memoryLimit"),
    ],
)
def test_what_the_machine_does_not_have_is_named(wanted: ClassPayload, word: str) -> None:
    found = change(wanted)
    assert found.form == {} and len(found.limitations) == 1 and found.limitations[0].startswith(word)


@pytest.mark.spec(
    "virtrigaud", 117, "install gives the machine the channel of its guest agent", "skip, upgrade and uninstall as far as the provider can"
)
def test_a_machine_without_template_has_its_firmware() -> None:
    plain = hardware.fresh(given(), "tank", "x86-64-v2-AES", FACTS)
    assert plain["cpu"] == "x86-64-v2-AES" and "bios" not in plain and plain["agent"] == "enabled=1"
    secure = hardware.fresh(
        given(firmware="UEFI", security_profile=SecurityPayload(secure_boot=True, vtd_enabled=True)), "tank", "host", FACTS
    )
    assert secure["bios"] == "ovmf" and secure["efidisk0"] == "tank:1,efitype=4m,pre-enrolled-keys=1"
    assert secure["machine"] == "q35,viommu=intel"
    assert "cpu" not in hardware.fresh(given(), "tank", "x86-64-v2-AES", ProxmoxNodeFacts((7, 4)))
    assert hardware.fresh(given(guest_tools_policy="skip"), "tank", "host", FACTS)["agent"] == "enabled=0"


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (given(security_profile=SecurityPayload(require_encryption=True)), ErrorKind.NOT_SUPPORTED),
        (given(gpu=GpuPayload(count=1)), ErrorKind.NOT_SUPPORTED),
        (given(cpu=1000), ErrorKind.INVALID_SPEC),
        (given(memory=1 << 30), ErrorKind.INVALID_SPEC),
        (given(extra_config={"proxmox.args": "-device x"}), ErrorKind.INVALID_SPEC),
        (given(extra_config={"proxmox.hostpci0": "0000:01:00"}), ErrorKind.INVALID_SPEC),
    ],
)
def test_what_no_machine_can_have_is_refused(wanted: ClassPayload, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        hardware.check(wanted)
    assert caught.value.kind is kind
