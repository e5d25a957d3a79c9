"""Rules of passed-through devices and of resource claims: V109 to V111. Devices by claims are stored; their machine does not start here."""

from collections.abc import Iterator

from paddock.base import names
from paddock.dialects.kubevirt.devices import GPU, HostDevice
from paddock.dialects.kubevirt.rules.gates import is_open
from paddock.dialects.kubevirt.rules.place import HardwareContext, check, standing
from paddock.schema import finding
from paddock.schema.finding import Finding, Path

_DEVICES = (("gpus", "GPUsWithDRA"), ("hostDevices", "HostDevicesWithDRA"))


@check("kubevirt/V109", given=("spec.resourceClaims",))
def claims_are_complete(place: HardwareContext) -> Iterator[Finding]:
    """An entry of resourceClaims has a name, and a claim or a template of one."""
    for index, claim in enumerate(place.spec.resourceClaims or ()):
        path = place.at("resourceClaims", index)
        if not claim.name:
            yield finding.required((*path, "name"), "kubevirt/V109", "an entry needs a name")
        elif not names.is_label(claim.name):
            yield finding.invalid((*path, "name"), claim.name, "must be a DNS-1123 label", "kubevirt/V109")
        sources = [name for name in ("resourceClaimName", "resourceClaimTemplateName") if getattr(claim, name) is not None]
        if len(sources) != 1:
            why = "give exactly one of resourceClaimName and resourceClaimTemplateName"
            yield finding.invalid(path, sources, why, "kubevirt/V109")
        for name in sources:
            if not names.is_subdomain(getattr(claim, name)):
                yield finding.invalid((*path, name), getattr(claim, name), "must be a DNS-1123 subdomain", "kubevirt/V109")


@check("kubevirt/V110", given=("spec.domain.devices.gpus", "spec.domain.devices.hostDevices"))
def devices_are_named(place: HardwareContext) -> Iterator[Finding]:
    """A passed-through device has a name of the host's or a claim, and its claim stands in resourceClaims."""
    known, missing = {claim.name for claim in place.spec.resourceClaims or ()}, []
    for kind, gate in _DEVICES:
        path = place.at("domain", "devices", kind)
        devices: list[GPU | HostDevice] = list(getattr(place.spec.domain.devices, kind) or ())
        claimed = [device for device in devices if not device.deviceName and _is_claimed(device)]
        if kind == "gpus" and claimed and len(claimed) != len(devices):
            yield finding.invalid(path, len(claimed), "GPUs with a deviceName and GPUs by claims exclude each other", "kubevirt/V110")
            continue
        for index, device in enumerate(devices):
            yield from _device(device, path, index, closed=not is_open(gate, place.settings))
            if device in claimed and device.claimName and device.claimName not in known and is_open(gate, place.settings):
                missing.append((*path, index, "claimName"))
    for at in missing[:1]:
        why = "Invalid value: every claimName of a device must stand in resourceClaims"
        yield standing(Finding(path=place.at("resourceClaims"), message=why, rule="kubevirt/V110"), at)


def _is_claimed(device: GPU | HostDevice) -> bool:
    return device.claimName is not None or device.requestName is not None


def _device(device: GPU | HostDevice, path: Path, index: int, *, closed: bool) -> Iterator[Finding]:
    if not device.deviceName and not _is_claimed(device):
        yield standing(finding.required(path, "kubevirt/V110", "give deviceName, or claimName and requestName"), (*path, index))
    elif device.deviceName and _is_claimed(device):
        found = finding.invalid(path, device.deviceName, "deviceName and claimName exclude each other", "kubevirt/V110")
        yield standing(found, (*path, index, "deviceName"))
    elif not device.deviceName and not closed:
        for name in ("claimName", "requestName"):
            if not getattr(device, name):
                yield finding.required((*path, index, name), "kubevirt/V110")


@check("kubevirt/V111", given=("spec.domain.devices.gpus[].virtualGPUOptions",))
def one_gpu_has_the_framebuffer(place: HardwareContext) -> Iterator[Finding]:
    """At most one virtual GPU shows its display through ramfb."""
    shown = [index for index, gpu in enumerate(place.spec.domain.devices.gpus or ()) if _has_framebuffer(gpu)]
    if len(shown) > 1:
        at = place.at("domain", "devices", "gpus", shown[1], "virtualGPUOptions", "display")
        why = "at most one display can have ramfb; set display.ramFB.enabled to false for the others"
        yield standing(finding.invalid(place.at("GPUs"), len(shown), why, "kubevirt/V111"), at)


def _has_framebuffer(gpu: GPU) -> bool:
    display = gpu.virtualGPUOptions.display if gpu.virtualGPUOptions is not None else None
    if display is None or display.enabled is False:
        return False
    return display.ramFB is None or display.ramFB.enabled is True


@check("kubevirt/V112", given=("spec.utilityVolumes",))
def utility_volumes_come_later(place: HardwareContext) -> Iterator[Finding]:
    """Utility volumes are plugged into a running machine; a new one has none."""
    if place.spec.utilityVolumes and not place.stored and not place.settings.trusted:
        why = "utility volumes can only be plugged into a running machine; leave them out"
        yield finding.invalid(place.at("utilityVolumes"), len(place.spec.utilityVolumes), why, "kubevirt/V112")


CHECKS = (claims_are_complete, devices_are_named, one_gpu_has_the_framebuffer, utility_volumes_come_later)
