"""The defaults of a preference for fields that a machine leaves out (docs/spec/kubevirt.md 7.5). In place, on plain data.

Disks and the default card exist before they are filled: also those that the user left out get their bus and model from the preference.
"""

from typing import Any

from paddock.base.jsondata import Data, copied

_FLAGS = (
    "AutoattachGraphicsDevice",
    "AutoattachMemBalloon",
    "AutoattachPodInterface",
    "AutoattachSerialConsole",
    "AutoattachInputDevice",
    "UseVirtioTransitional",
    "BlockMultiQueue",
    "Rng",
    "TPM",
)
_BINDINGS = ("masquerade", "bridge", "sriov", "passtBinding", "binding", "slirp", "passt", "macvtap")
_NO_DISK = ("memoryDump",)
_FEATURES = ("Acpi", "Apic", "Kvm", "Pvspinlock", "Smm")


def fill(hardware: Data, wishes: Data) -> None:
    """Fill what is open in the spec of a running machine."""
    domain = hardware.setdefault("domain", {})
    devices = domain.setdefault("devices", {})
    _fill_clock(domain, wishes.get("clock") or {})
    _fill_cpu_features(domain, wishes.get("cpu") or {})
    _fill_devices(hardware, devices, wishes.get("devices") or {})
    _fill_features(domain, wishes.get("features") or {})
    _fill_firmware(domain, wishes.get("firmware") or {})
    machine = (wishes.get("machine") or {}).get("preferredMachineType")
    if machine and not (domain.get("machine") or {}).get("type"):
        domain["machine"] = {"type": machine}
    for ours, theirs in (
        ("subdomain", "preferredSubdomain"),
        ("terminationGracePeriodSeconds", "preferredTerminationGracePeriodSeconds"),
        ("architecture", "preferredArchitecture"),
    ):
        if wishes.get(theirs) is not None and hardware.get(ours) in (None, ""):
            hardware[ours] = wishes[theirs]


def add_disks(hardware: Data) -> None:
    """A volume that no disk and no file system names gets a disk of its name."""
    devices = hardware.setdefault("domain", {}).setdefault("devices", {})
    used = {each.get("name") for kind in ("disks", "filesystems") for each in devices.get(kind) or ()}
    missing = [
        {"name": each["name"]}
        for each in hardware.get("volumes") or ()
        if each.get("name") not in used and not any(kind in each for kind in _NO_DISK)
    ]
    if missing:
        devices["disks"] = [*(devices.get("disks") or ()), *missing]


def add_default_card(hardware: Data) -> None:
    """A machine without cards and networks gets one on the pod network, unless it wants none."""
    devices = hardware.setdefault("domain", {}).setdefault("devices", {})
    if devices.get("autoattachPodInterface") is False or devices.get("interfaces") or hardware.get("networks"):
        return
    devices["interfaces"] = [{"name": "default"}]
    hardware["networks"] = [{"name": "default", "pod": {}}]


def bind(hardware: Data, binding: str) -> None:
    """Give each card on the pod network that has no binding this one."""
    pods = {each.get("name") for each in hardware.get("networks") or () if "pod" in each}
    for interface in hardware["domain"]["devices"].get("interfaces") or ():
        # An empty binding is one, too.
        if interface.get("name") in pods and not any(each in interface for each in _BINDINGS):
            interface[binding] = {}


def _put(parent: Data, name: str, value: Any) -> None:
    """Set a member that is not there. An empty text is not there."""
    if value is not None and parent.get(name) in (None, ""):
        parent[name] = copied(value)


def _fill_clock(domain: Data, wishes: Data) -> None:
    offset, timer = wishes.get("preferredClockOffset"), wishes.get("preferredTimer")
    if offset is None and timer is None:
        return
    clock = domain.setdefault("clock", {})
    if offset and "utc" not in clock and "timezone" not in clock:
        clock.update(copied(offset))
    _put(clock, "timer", timer)
    if not clock:
        del domain["clock"]


def _fill_cpu_features(domain: Data, wishes: Data) -> None:
    wanted = wishes.get("preferredCPUFeatures")
    if not wanted:
        return
    cpu = domain.setdefault("cpu", {})
    has = {each.get("name") for each in cpu.get("features") or ()}
    cpu["features"] = [*(cpu.get("features") or ()), *(copied(each) for each in wanted if each.get("name") not in has)]


def _fill_devices(hardware: Data, devices: Data, wishes: Data) -> None:
    for flag in _FLAGS:
        name = {"TPM": "tpm"}.get(flag, flag[0].lower() + flag[1:])
        _put(devices, name, wishes.get(f"preferred{flag}"))
    _put(devices, "networkInterfaceMultiqueue", wishes.get("preferredNetworkInterfaceMultiQueue"))
    if wishes.get("preferredDisableHotplug"):
        devices["disableHotplug"] = True
    add_disks(hardware)
    add_default_card(hardware)
    for disk in devices.get("disks") or ():
        _fill_disk(disk, wishes)
    for interface in devices.get("interfaces") or ():
        _put(interface, "model", wishes.get("preferredInterfaceModel"))
    if wishes.get("preferredInterfaceMasquerade") is not None:
        bind(hardware, "masquerade")
    for each in devices.get("inputs") or ():
        _put(each, "bus", wishes.get("preferredInputBus"))
        _put(each, "type", wishes.get("preferredInputType"))
    _fill_others(devices, wishes)


def _fill_others(devices: Data, wishes: Data) -> None:
    for gpu in devices.get("gpus") or ():
        _put(gpu, "virtualGPUOptions", wishes.get("preferredVirtualGPUOptions"))
    if isinstance(devices.get("sound"), dict):
        _put(devices["sound"], "model", wishes.get("preferredSoundModel"))
    for each in devices.get("panicDevices") or ():
        _put(each, "model", wishes.get("preferredPanicDeviceModel"))
    video = wishes.get("preferredVideoType")
    if video and devices.get("autoattachGraphicsDevice") is not False:
        _put(devices.setdefault("video", {}), "type", video)


def _fill_disk(disk: Data, wishes: Data) -> None:
    buses = (("cdrom", "preferredCdromBus"), ("lun", "preferredLunBus"), ("disk", "preferredDiskBus"))
    place, bus = next(((place, bus) for place, bus in buses if place in disk), buses[-1])
    target = disk.setdefault(place, {}) if wishes.get(bus) is not None else disk.get(place) or {}
    _put(target, "bus", wishes.get(bus))
    if place != "disk":
        return
    _put(disk, "cache", wishes.get("preferredDiskCache"))
    _put(disk, "io", wishes.get("preferredDiskIO"))
    _put(disk, "blockSize", wishes.get("preferredDiskBlockSize"))
    if target.get("bus") == "virtio":
        _put(disk, "dedicatedIOThread", wishes.get("preferredDiskDedicatedIoThread"))


def _fill_features(domain: Data, wishes: Data) -> None:
    wanted = {name[0].lower() + name[1:]: wishes[f"preferred{name}"] for name in _FEATURES if wishes.get(f"preferred{name}") is not None}
    hyperv = wishes.get("preferredHyperv")
    if not wanted and not hyperv:
        return
    features = domain.setdefault("features", {})
    for name, value in wanted.items():
        _put(features, name, value)
    if hyperv and "hypervPassthrough" not in features:
        has = features.setdefault("hyperv", {})
        for name, value in hyperv.items():
            _put(has, name, value)


def _fill_firmware(domain: Data, wishes: Data) -> None:
    bootloader = (domain.get("firmware") or {}).get("bootloader") or {}
    if not bootloader:
        bootloader = _preferred_bootloader(wishes)
        if not bootloader:
            return
        domain.setdefault("firmware", {})["bootloader"] = bootloader
    elif "bios" in bootloader and wishes.get("preferredUseBiosSerial"):
        _put(bootloader["bios"], "useSerial", True)
    elif "efi" in bootloader and not wishes.get("preferredEfi"):
        _put(bootloader["efi"], "secureBoot", wishes.get("preferredUseSecureBoot"))


def _preferred_bootloader(wishes: Data) -> Data:
    if wishes.get("preferredUseBios"):
        return {"bios": {"useSerial": True} if wishes.get("preferredUseBiosSerial") else {}}
    if wishes.get("preferredEfi") is not None:
        return {"efi": copied(wishes["preferredEfi"])}
    if wishes.get("preferredUseEfi"):
        secure = wishes.get("preferredUseSecureBoot")
        return {"efi": {} if secure is None else {"secureBoot": secure}}
    return {}
