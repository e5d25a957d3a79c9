"""Cards and the other devices of an instance."""

from collections.abc import Iterator

from paddock.dialects.kubevirt.devices import Devices as DevicesSpec
from paddock.dialects.kubevirt.networks import Interface
from paddock.engine.machine.config import DeviceConfig, Nic, SharedDirectory, Tap, Tpm
from paddock.meta.fieldview import whole
from paddock.translate.machine.context import TranslationContext
from paddock.translate.machine.limits import Code

_DEVICES = ("spec", "domain", "devices")
_REDIRECTIONS = 4
_FREE_PAGES = "kubevirt.io/free-page-reporting-disabled"
_VGA = "kubevirt.io/vga-display-efi-x86"


def cards(place: TranslationContext) -> tuple[Nic, ...]:
    """The network cards; what the guest gets of the host itself is among the passed-through devices."""
    found = []
    for index, interface in enumerate(place.domain.devices.interfaces or ()):
        if interface.state == "absent":
            whole(interface)
            continue
        if interface.sriov is not None:
            continue
        card = _card(place, index, interface)
        if card is not None:
            found.append(card)
    return tuple(found)


def _card(place: TranslationContext, index: int, interface: Interface) -> Nic | None:
    found = place.resolved.cards.get(interface.name)
    if found is None or found.error or found.backend is None:
        detail = found.error if found is not None and found.error else f"nothing was found for the network {interface.name}"
        place.limits.add(Code.CARD_FAILED, *_DEVICES, "interfaces", index, detail=detail)
        return None
    model = interface.model or "virtio"
    several = place.domain.devices.networkInterfaceMultiqueue and model == "virtio" and place.vcpus > 1
    if several and not isinstance(found.backend, Tap):
        place.limits.add(Code.QUEUES_MISSING, *_DEVICES, "networkInterfaceMultiqueue", detail=interface.name)
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


def devices(place: TranslationContext) -> DeviceConfig:
    """Everything besides disks and cards."""
    given = place.domain.devices
    graphics = given.autoattachGraphicsDevice is not False
    _refuse(place, given)
    return DeviceConfig(
        serial=given.autoattachSerialConsole is not False,
        serial_log=given.logSerialConsole is not False,
        graphics=graphics,
        video=_video(place, given),
        rng=given.rng is not None,
        balloon=given.autoattachMemBalloon is not False,
        free_page_reporting=place.annotations.get(_FREE_PAGES) != "true",
        tpm=_tpm(place, given),
        watchdog=_watchdog(place, given),
        inputs=tuple((each.type or "tablet", each.bus or "usb", each.name) for each in given.inputs or ()),
        sound=((given.sound.model or "ich9") if given.sound is not None else ""),
        panic=any(device.model != "hyperv" for device in given.panicDevices or ()),
        usb_redirections=_REDIRECTIONS if given.clientPassthrough is not None else 0,
        generation_id=place.resolved.generation_id,
        shared=tuple(_shares(place, given)),
        pci=tuple(_passed_through(place, given)),
        vsock=_vsock(place, given),
        virtio_transitional=bool(given.useVirtioTransitional),
    )


def _video(place: TranslationContext, given: DevicesSpec) -> str:
    if given.video is not None and given.video.type:
        return given.video.type
    return "vga" if place.amd64 and place.annotations.get(_VGA) == "true" else ""


def _tpm(place: TranslationContext, given: DevicesSpec) -> Tpm | None:
    tpm = given.tpm
    if tpm is None or tpm.enabled is False:
        return None
    if tpm.persistent and place.resolved.tpm_state is None:
        place.limits.add(Code.STATE_MISSING, *_DEVICES, "tpm", "persistent")
    return Tpm(state=place.resolved.tpm_state if tpm.persistent else None)


def _watchdog(place: TranslationContext, given: DevicesSpec) -> str:
    watchdog = given.watchdog
    if watchdog is None:
        return ""
    if watchdog.diag288 is not None:
        place.limits.add(Code.WATCHDOG_MISSING, *_DEVICES, "watchdog", "diag288")
        return ""
    return (watchdog.i6300esb.action if watchdog.i6300esb is not None else None) or "reset"


def _shares(place: TranslationContext, given: DevicesSpec) -> Iterator[SharedDirectory]:
    paths = {volume.name: index for index, volume in enumerate(place.spec.volumes or ()) if volume.containerPath is not None}
    for index, filesystem in enumerate(given.filesystems or ()):
        found = place.resolved.volumes.get(filesystem.name)
        if filesystem.name in paths:
            place.limits.add(Code.CONTAINER_PATH_REFUSED, "spec", "volumes", paths[filesystem.name], "containerPath")
        elif found is None or found.error or found.directory is None:
            detail = found.error if found is not None and found.error else f"nothing was found for the volume {filesystem.name}"
            place.limits.add(Code.VOLUME_FAILED, *_DEVICES, "filesystems", index, detail=detail)
        else:
            yield SharedDirectory(tag=filesystem.name, path=found.directory, readonly=found.readonly, as_owner=found.as_owner)


def _passed_through(place: TranslationContext, given: DevicesSpec) -> Iterator[str]:
    for kind in ("gpus", "hostDevices"):
        for index, device in enumerate(getattr(given, kind) or ()):
            if device.claimName or device.requestName:
                place.limits.add(Code.CLAIM_REFUSED, *_DEVICES, kind, index, "claimName")
            elif device.name in place.resolved.devices:
                yield place.resolved.devices[device.name]
            else:
                place.limits.add(Code.DEVICE_MISSING, *_DEVICES, kind, index, detail=device.deviceName or device.name)
    for index, gpu in enumerate(given.gpus or ()):
        if gpu.virtualGPUOptions is not None:
            place.limits.add(Code.DISPLAY_MISSING, *_DEVICES, "gpus", index, "virtualGPUOptions")
    for index, interface in enumerate(given.interfaces or ()):
        if interface.sriov is None or interface.state == "absent":
            continue
        card = place.resolved.cards.get(interface.name)
        if card is not None and card.pci:
            yield card.pci
        else:
            place.limits.add(Code.SRIOV_MISSING, *_DEVICES, "interfaces", index, "sriov", detail=card.error if card is not None else "")


def _vsock(place: TranslationContext, given: DevicesSpec) -> int | None:
    if not given.autoattachVSOCK:
        return None
    if not place.host.vsock or place.resolved.vsock is None:
        place.limits.add(Code.VSOCK_MISSING, *_DEVICES, "autoattachVSOCK")
    return place.resolved.vsock


def _refuse(place: TranslationContext, given: DevicesSpec) -> None:
    if given.downwardMetrics is not None:
        place.limits.add(Code.METRICS_MISSING, *_DEVICES, "downwardMetrics")
    for index, network in enumerate(place.spec.networks or ()):
        if network.resourceClaim is not None:
            place.limits.add(Code.CLAIM_REFUSED, "spec", "networks", index, "resourceClaim")
