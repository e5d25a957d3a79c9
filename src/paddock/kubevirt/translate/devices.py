"""Cards and the other devices of an instance."""

from collections.abc import Iterator

from paddock.engine.machine.config import DeviceConfig, Nic, SharedDirectory, Tap, Tpm
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubevirt.kinds.devices import Devices as DevicesSpec
from paddock.kubevirt.kinds.networks import Interface
from paddock.kubevirt.translate.context import TranslationContext
from paddock.kubevirt.translate.limits import Code

_DEVICES = ("spec", "domain", "devices")
_REDIRECTIONS = 4
_FREE_PAGES = "kubevirt.io/free-page-reporting-disabled"
_VGA = "kubevirt.io/vga-display-efi-x86"


def cards(translation: TranslationContext) -> tuple[Nic, ...]:
    """The network cards; what the guest gets of the host itself is among the passed-through devices."""
    found = []
    for index, interface in enumerate(translation.domain.devices.interfaces or ()):
        if interface.state == "absent":
            whole(interface)
            continue
        if interface.sriov is not None:
            continue
        nic = _nic(translation, index, interface)
        if nic is not None:
            found.append(nic)
    return tuple(found)


def _nic(translation: TranslationContext, index: int, interface: Interface) -> Nic | None:
    found = translation.resolved.cards.get(interface.name)
    if found is None or found.error or found.backend is None:
        detail = found.error if found is not None and found.error else f"nothing was found for the network {interface.name}"
        translation.limits.add(Code.CARD_FAILED, *_DEVICES, "interfaces", index, detail=detail)
        return None
    model = interface.model or "virtio"
    several = translation.domain.devices.networkInterfaceMultiqueue and model == "virtio" and translation.vcpus > 1
    if several and not isinstance(found.backend, Tap):
        translation.limits.add(Code.QUEUES_MISSING, *_DEVICES, "networkInterfaceMultiqueue", detail=interface.name)
    return Nic(
        name=interface.name,
        mac=interface.macAddress or found.mac,
        backend=found.backend,
        model=model,
        boot_order=interface.bootOrder,
        pci_address=interface.pciAddress or "",
        acpi_index=interface.acpiIndex or None,
        link_up=interface.state != "down",
        mtu=found.mtu,
    )


def devices(translation: TranslationContext) -> DeviceConfig:
    """Everything besides disks and cards."""
    given = translation.domain.devices
    graphics = given.autoattachGraphicsDevice is not False
    _refuse(translation, given)
    return DeviceConfig(
        serial=given.autoattachSerialConsole is not False,
        serial_log=given.logSerialConsole is not False,
        graphics=graphics,
        video=_video(translation, given),
        rng=given.rng is not None,
        balloon=given.autoattachMemBalloon is not False,
        free_page_reporting=translation.annotations.get(_FREE_PAGES) != "true",
        tpm=_tpm(translation, given),
        watchdog=_watchdog(translation, given),
        inputs=tuple((each.type or "tablet", each.bus or "usb", each.name) for each in given.inputs or ()),
        sound=((given.sound.model or "ich9") if given.sound is not None else ""),
        panic=any(device.model != "hyperv" for device in given.panicDevices or ()),
        usb_redirections=_REDIRECTIONS if given.clientPassthrough is not None else 0,
        generation_id=translation.resolved.generation_id,
        shared=tuple(_shares(translation, given)),
        pci=tuple(_passed_through(translation, given)),
        vsock=_vsock(translation, given),
        virtio_transitional=bool(given.useVirtioTransitional),
    )


def _video(translation: TranslationContext, devices: DevicesSpec) -> str:
    if devices.video is not None and devices.video.type:
        return devices.video.type
    return "vga" if translation.amd64 and translation.annotations.get(_VGA) == "true" else ""


def _tpm(translation: TranslationContext, devices: DevicesSpec) -> Tpm | None:
    tpm = devices.tpm
    if tpm is None or tpm.enabled is False:
        return None
    if tpm.persistent and translation.resolved.tpm_state is None:
        translation.limits.add(Code.STATE_MISSING, *_DEVICES, "tpm", "persistent")
    return Tpm(state=translation.resolved.tpm_state if tpm.persistent else None)


def _watchdog(translation: TranslationContext, devices: DevicesSpec) -> str:
    watchdog = devices.watchdog
    if watchdog is None:
        return ""
    if watchdog.diag288 is not None:
        translation.limits.add(Code.WATCHDOG_MISSING, *_DEVICES, "watchdog", "diag288")
        return ""
    return (watchdog.i6300esb.action if watchdog.i6300esb is not None else None) or "reset"


def _shares(translation: TranslationContext, devices: DevicesSpec) -> Iterator[SharedDirectory]:
    paths = {volume.name: index for index, volume in enumerate(translation.spec.volumes or ()) if volume.containerPath is not None}
    for index, filesystem in enumerate(devices.filesystems or ()):
        found = translation.resolved.volumes.get(filesystem.name)
        if filesystem.name in paths:
            translation.limits.add(Code.CONTAINER_PATH_REFUSED, "spec", "volumes", paths[filesystem.name], "containerPath")
        elif found is None or found.error or found.directory is None:
            detail = found.error if found is not None and found.error else f"nothing was found for the volume {filesystem.name}"
            translation.limits.add(Code.VOLUME_FAILED, *_DEVICES, "filesystems", index, detail=detail)
        else:
            yield SharedDirectory(tag=filesystem.name, path=found.directory, readonly=found.readonly, as_owner=found.as_owner)


def _passed_through(translation: TranslationContext, devices: DevicesSpec) -> Iterator[str]:
    for kind in ("gpus", "hostDevices"):
        for index, device in enumerate(getattr(devices, kind) or ()):
            if device.claimName or device.requestName:
                translation.limits.add(Code.CLAIM_REFUSED, *_DEVICES, kind, index, "claimName")
            elif device.name in translation.resolved.devices:
                yield translation.resolved.devices[device.name]
            else:
                translation.limits.add(Code.DEVICE_MISSING, *_DEVICES, kind, index, detail=device.deviceName or device.name)
    for index, gpu in enumerate(devices.gpus or ()):
        if gpu.virtualGPUOptions is not None:
            translation.limits.add(Code.DISPLAY_MISSING, *_DEVICES, "gpus", index, "virtualGPUOptions")
    for index, interface in enumerate(devices.interfaces or ()):
        if interface.sriov is None or interface.state == "absent":
            continue
        nic = translation.resolved.cards.get(interface.name)
        if nic is not None and nic.pci:
            yield nic.pci
        else:
            translation.limits.add(Code.SRIOV_MISSING, *_DEVICES, "interfaces", index, "sriov", detail=nic.error if nic is not None else "")


def _vsock(translation: TranslationContext, devices: DevicesSpec) -> int | None:
    if not devices.autoattachVSOCK:
        return None
    if not translation.host.vsock or translation.resolved.vsock is None:
        translation.limits.add(Code.VSOCK_MISSING, *_DEVICES, "autoattachVSOCK")
    return translation.resolved.vsock


def _refuse(translation: TranslationContext, devices: DevicesSpec) -> None:
    if devices.downwardMetrics is not None:
        translation.limits.add(Code.METRICS_MISSING, *_DEVICES, "downwardMetrics")
    for index, network in enumerate(translation.spec.networks or ()):
        if network.resourceClaim is not None:
            translation.limits.add(Code.CLAIM_REFUSED, "spec", "networks", index, "resourceClaim")
