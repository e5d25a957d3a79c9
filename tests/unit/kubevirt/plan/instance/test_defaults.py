"""The defaults of a running machine (docs/spec/kubevirt.md 2.8), a row for each."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirtConfiguration
from paddock.kubevirt.plan.instance import defaults
from paddock.kubevirt.plan.instance.defaults import InstallationDefaults

HOST = InstallationDefaults()


def spec(data: dict[str, Any]) -> VirtualMachineInstanceSpec:
    return msgspec.convert({"domain": {"devices": {}}, **data}, VirtualMachineInstanceSpec)


def domain(**members: Any) -> dict[str, Any]:
    return {"domain": {"devices": {}, **members}}


def devices(**members: Any) -> dict[str, Any]:
    return {"domain": {"devices": members}}


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value


GIB2 = domain(memory={"guest": "2Gi"})
ROWS = [
    ("architecture", {}, "architecture", "amd64"),
    ("machine type", {}, "domain.machine.type", "q35"),
    ("processors of arm64", {"architecture": "arm64"}, "domain.cpu.model", "host-passthrough"),
    ("machine type on arm64", {"architecture": "arm64"}, "domain.machine.type", "virt"),
    ("machine type kept", domain(machine={"type": "pc-q35-7.2"}), "domain.machine.type", "pc-q35-7.2"),
    ("one socket", {}, "domain.cpu.sockets", 1),
    ("sockets by limit", domain(resources={"limits": {"cpu": "2500m"}, "requests": {"cpu": 1}}), "domain.cpu.sockets", 3),
    ("sockets by request", domain(resources={"requests": {"cpu": "2"}}), "domain.cpu.sockets", 2),
    ("missing parts are one", domain(cpu={"cores": 4}, resources={"requests": {"cpu": "2"}}), "domain.cpu.sockets", 1),
    ("cores kept", domain(cpu={"cores": 4}), "domain.cpu.cores", 4),
    ("threads", domain(cpu={"cores": 4}), "domain.cpu.threads", 1),
    ("model", {}, "domain.cpu.model", "host-model"),
    ("room for sockets", domain(cpu={"sockets": 2}), "domain.cpu.maxSockets", 8),
    ("room is bounded", domain(cpu={"sockets": 2, "cores": 128}), "domain.cpu.maxSockets", 4),
    ("room beside CPUs of one's own", domain(cpu={"sockets": 2, "dedicatedCpuPlacement": True}), "domain.cpu.maxSockets", 8),
    ("no room for sockets on arm64", {"architecture": "arm64"}, "domain.cpu.maxSockets", None),
    ("UEFI on arm64", {"architecture": "arm64"}, "domain.firmware.bootloader.efi.secureBoot", False),
    (
        "Secure Boot is not turned off on arm64",
        {"architecture": "arm64", **domain(firmware={"bootloader": {"efi": {"secureBoot": True}}})},
        "domain.firmware.bootloader.efi.secureBoot",
        True,
    ),
    (
        "BIOS on arm64, which a rule refuses",
        {"architecture": "arm64", **domain(firmware={"bootloader": {"bios": {}}})},
        "domain.firmware.bootloader.efi",
        None,
    ),
    ("no ACPI on s390x", {"architecture": "s390x"}, "domain.features.acpi.enabled", False),
    ("a request beside a limit", domain(resources={"limits": {"cpu": "2", "memory": "1Gi"}}), "domain.resources.requests", {"cpu": "2"}),
    (
        "the request of a machine",
        domain(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}),
        "domain.resources.requests",
        {"cpu": "1"},
    ),
    ("memory by request", domain(resources={"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}), "domain.memory.guest", "1Gi"),
    ("memory by limit", domain(resources={"limits": {"memory": "2Gi"}}), "domain.memory.guest", "2Gi"),
    ("memory of one huge page", domain(memory={"hugepages": {"pageSize": "2Mi"}}), "domain.memory.guest", "2Mi"),
    ("room for memory", GIB2, "domain.memory.maxGuest", "8Gi"),
    ("no room for little memory", domain(memory={"guest": "512Mi"}), "domain.memory.maxGuest", None),
    ("no room for odd memory", domain(memory={"guest": "1500M"}), "domain.memory.maxGuest", None),
    ("no room on arm64", {"architecture": "arm64", **GIB2}, "domain.memory.maxGuest", None),
    ("no room in real time", domain(memory={"guest": "2Gi"}, cpu={"realtime": {}}), "domain.memory.maxGuest", None),
    (
        "no topology",
        domain(cpu={"sockets": 0, "cores": 0, "threads": 0}, resources={"requests": {"cpu": "4"}}),
        "domain.cpu.sockets",
        4,
    ),
    ("no room in secret", domain(memory={"guest": "2Gi"}, launchSecurity={"snp": {}}), "domain.memory.maxGuest", None),
    ("disk", devices(disks=[{"name": "d"}]), "domain.devices.disks.0.disk.bus", "sata"),
    ("disk on arm64", {"architecture": "arm64", **devices(disks=[{"name": "d"}])}, "domain.devices.disks.0.disk.bus", "virtio"),
    ("empty bus", devices(disks=[{"name": "d", "disk": {"bus": ""}}]), "domain.devices.disks.0.disk.bus", "sata"),
    ("lun", devices(disks=[{"name": "d", "lun": {}}]), "domain.devices.disks.0.lun.bus", "sata"),
    ("cdrom", devices(disks=[{"name": "d", "cdrom": {}}]), "domain.devices.disks.0.cdrom.readonly", True),
    ("tray", devices(disks=[{"name": "d", "cdrom": {"bus": "scsi"}}]), "domain.devices.disks.0.cdrom.tray", "closed"),
    ("volume without disk", {"volumes": [{"name": "v", "emptyDisk": {"capacity": 1}}]}, "domain.devices.disks.0.name", "v"),
    ("memory dump", {"volumes": [{"name": "v", "memoryDump": {"claimName": "c"}}]}, "domain.devices.disks", None),
    ("network", {}, "networks.0.name", "default"),
    ("card on it", {}, "domain.devices.interfaces.0.bridge", msgspec.UNSET),
    ("no model of it", {}, "domain.devices.interfaces.0.model", None),
    ("no network", devices(autoattachPodInterface=False), "networks", None),
    ("input bus", devices(inputs=[{"name": "i", "type": "tablet"}]), "domain.devices.inputs.0.bus", "usb"),
    ("input", devices(autoattachInputDevice=True), "domain.devices.inputs.0.type", "tablet"),
    ("watchdog", devices(watchdog={"name": "w", "i6300esb": {}}), "domain.devices.watchdog.i6300esb.action", "reset"),
    ("watchdog without a type", devices(watchdog={"name": "w"}), "domain.devices.watchdog.i6300esb.action", "reset"),
    ("acpi", {}, "domain.features.acpi.enabled", True),
    ("acpi off", domain(features={"acpi": {"enabled": False}}), "domain.features.acpi.enabled", False),
    ("apic", domain(features={"apic": {}}), "domain.features.apic.enabled", True),
    ("synic", domain(features={"hyperv": {"synic": {}}}), "domain.features.hyperv.vpindex.enabled", True),
    ("synictimer", domain(features={"hyperv": {"synictimer": {}}}), "domain.features.hyperv.vpindex.enabled", True),
    ("tlbflush", domain(features={"hyperv": {"tlbflush": {}}}), "domain.features.hyperv.vpindex.enabled", True),
    ("ipi", domain(features={"hyperv": {"ipi": {}}}), "domain.features.hyperv.vpindex.enabled", True),
    ("off needs nothing", domain(features={"hyperv": {"ipi": {"enabled": False}}}), "domain.features.hyperv.vpindex", None),
    ("evmcs", domain(features={"hyperv": {"evmcs": {}}}), "domain.features.hyperv.vapic.enabled", True),
    ("evmcs needs vmx", domain(features={"hyperv": {"evmcs": {}}}), "domain.cpu.features.0.name", "vmx"),
    ("spinlocks", domain(features={"hyperv": {"spinlocks": {}}}), "domain.features.hyperv.spinlocks.spinlocks", 4096),
    ("timer", domain(clock={"timer": {"hpet": {}}}), "domain.clock.timer.hpet.present", True),
    ("timer that is not there", domain(clock={"timer": {"hpet": {"present": False}}}), "domain.clock.timer.hpet.present", False),
    ("eviction", {}, "evictionStrategy", "None"),
    ("probe", {"readinessProbe": {"guestAgentPing": {}}}, "readinessProbe.failureThreshold", 3),
    ("probe's period", {"livenessProbe": {"guestAgentPing": {}, "periodSeconds": 5}}, "livenessProbe.periodSeconds", 5),
    ("grace period is decided at the stop", {}, "terminationGracePeriodSeconds", None),
]


@pytest.mark.parametrize(("data", "path", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_defaults(data: dict[str, Any], path: str, expected: Any) -> None:
    found = at(defaults.defaulted(spec(data), HOST), path)
    if expected is msgspec.UNSET:
        assert found is not None
    else:
        assert found == expected


@pytest.mark.parametrize("data", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_applied_again_nothing_changes(data: dict[str, Any]) -> None:
    once = defaults.defaulted(spec(data), HOST)
    assert defaults.defaulted(once, HOST) == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("quay.io/containerdisks/fedora:latest", "Always"),
        ("quay.io/containerdisks/fedora", "Always"),
        ("localhost:5000/fedora", "Always"),
        ("quay.io/containerdisks/fedora:38", "IfNotPresent"),
        ("quay.io/x@sha256:" + "0" * 64, "IfNotPresent"),
        ("quay.io/x:latest@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_images_whose_name_may_move_are_pulled_always(image: str, policy: str) -> None:
    found = defaults.defaulted(spec({"volumes": [{"name": "v", "containerDisk": {"image": image}}]}), HOST)
    assert at(found, "volumes.0.containerDisk.imagePullPolicy") == policy


def test_the_configuration_of_the_installation_counts() -> None:
    configuration = msgspec.convert(
        {
            "cpuModel": "Skylake-Client",
            "machineType": "pc-q35-7.2",
            "evictionStrategy": "LiveMigrate",
            "imagePullPolicy": "Never",
            "network": {"defaultNetworkInterface": "masquerade"},
            "liveUpdateConfiguration": {"maxHotplugRatio": 2, "maxCpuSockets": 3, "maxGuest": "3Gi"},
        },
        KubeVirtConfiguration,
    )
    host = defaults.installation(configuration, "amd64")
    found = defaults.defaulted(spec({"volumes": [{"name": "v", "containerDisk": {"image": "x"}}], **GIB2}), host)
    expected = {
        "domain.cpu.model": "Skylake-Client",
        "domain.machine.type": "pc-q35-7.2",
        "evictionStrategy": "LiveMigrate",
        "volumes.0.containerDisk.imagePullPolicy": "Never",
        "domain.cpu.maxSockets": 3,
        "domain.memory.maxGuest": "3Gi",
    }
    assert {path: at(found, path) for path in expected} == expected
    assert at(found, "domain.devices.interfaces.0.masquerade") is not None


def test_without_live_updates_there_is_no_room_to_grow() -> None:
    host = defaults.installation(msgspec.convert({"vmRolloutStrategy": "Stage"}, KubeVirtConfiguration), "amd64")
    found = defaults.defaulted(spec(GIB2), host)
    assert at(found, "domain.cpu.maxSockets") is None
    assert at(found, "domain.memory.maxGuest") is None


@given(st.integers(1, 512), st.integers(1, 64), st.integers(1, 2))
def test_room_never_shrinks_a_machine(sockets: int, cores: int, threads: int) -> None:
    cpu = defaults.defaulted(spec(domain(cpu={"sockets": sockets, "cores": cores, "threads": threads})), HOST).domain.cpu
    assert cpu is not None and cpu.maxSockets is not None
    assert cpu.maxSockets >= sockets
    assert cpu.maxSockets == sockets or cpu.maxSockets * cores * threads <= 512
