"""Rules of what comes by resource claims: V109 to V112, V116 and V117.

Devices and networks by claims are stored; their machine does not start here.
"""

from collections.abc import Iterator

from paddock.base import names
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubevirt.kinds.devices import GPU, HostDevice
from paddock.kubevirt.kinds.networks import Network
from paddock.kubevirt.rules.gates import is_open
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_DEVICES = (("gpus", "GPUsWithDRA"), ("hostDevices", "HostDevicesWithDRA"))
_NETWORKS = "NetworkDevicesWithDRA"


@check("kubevirt/V109", given=("spec.resourceClaims",))
def claims_are_complete(hardware: HardwareContext) -> Iterator[Finding]:
    """An entry of resourceClaims has a name, and a claim or a template of one."""
    for index, claim in enumerate(hardware.spec.resourceClaims or ()):
        path = hardware.at("resourceClaims", index)
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
def devices_are_named(hardware: HardwareContext) -> Iterator[Finding]:
    """A passed-through device has a name of the host's or a claim, and its claim stands in resourceClaims."""
    known, missing = {claim.name for claim in hardware.spec.resourceClaims or ()}, []
    for kind, gate in _DEVICES:
        path = hardware.at("domain", "devices", kind)
        devices: list[GPU | HostDevice] = list(getattr(hardware.spec.domain.devices, kind) or ())
        claimed = [device for device in devices if not device.deviceName and _is_claimed(device)]
        if kind == "gpus" and claimed and len(claimed) != len(devices):
            yield finding.invalid(path, len(claimed), "GPUs with a deviceName and GPUs by claims exclude each other", "kubevirt/V110")
            continue
        for index, device in enumerate(devices):
            yield from _device(device, path, index, closed=not is_open(gate, hardware.settings))
            if device in claimed and device.claimName and device.claimName not in known and is_open(gate, hardware.settings):
                missing.append((*path, index, "claimName"))
    for at in missing[:1]:
        why = "Invalid value: every claimName of a device must stand in resourceClaims"
        yield standing(Finding(path=hardware.at("resourceClaims"), message=why, rule="kubevirt/V110"), at)


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
def one_gpu_has_the_framebuffer(hardware: HardwareContext) -> Iterator[Finding]:
    """At most one virtual GPU shows its display through ramfb."""
    shown = [index for index, gpu in enumerate(hardware.spec.domain.devices.gpus or ()) if _has_framebuffer(gpu)]
    if len(shown) > 1:
        at = hardware.at("domain", "devices", "gpus", shown[1], "virtualGPUOptions", "display")
        why = "at most one display can have ramfb; set display.ramFB.enabled to false for the others"
        yield standing(finding.invalid(hardware.at("GPUs"), len(shown), why, "kubevirt/V111"), at)


def _has_framebuffer(gpu: GPU) -> bool:
    display = gpu.virtualGPUOptions.display if gpu.virtualGPUOptions is not None else None
    if display is None or display.enabled is False:
        return False
    return display.ramFB is None or display.ramFB.enabled is True


@check("kubevirt/V112", given=("spec.utilityVolumes",))
def utility_volumes_come_later(hardware: HardwareContext) -> Iterator[Finding]:
    """Utility volumes are plugged into a running machine; a new one has none."""
    if hardware.spec.utilityVolumes and not hardware.stored and not hardware.settings.trusted:
        why = "utility volumes can only be plugged into a running machine; leave them out"
        yield finding.invalid(hardware.at("utilityVolumes"), len(hardware.spec.utilityVolumes), why, "kubevirt/V112")


@check("kubevirt/V116", given=("spec.networks[].resourceClaim",))
def claimed_networks_are_complete(hardware: HardwareContext) -> Iterator[Finding]:
    """A network by a claim names an entry of resourceClaims and a request, its card can be one of the host's, and no network is one of
    multus."""
    claimed = _claimed_networks(hardware)
    if claimed and any(network.multus is not None for network in hardware.spec.networks or ()):
        why = "networks of multus and networks by claims exclude each other in one machine"
        yield standing(Finding(path=hardware.at("networks"), message=f"Invalid value: {why}", rule="kubevirt/V116"), claimed[0][1])
        return
    known = {claim.name for claim in hardware.spec.resourceClaims or ()}
    cards = {interface.name: interface for interface in hardware.spec.domain.devices.interfaces or ()}
    for network, path in claimed:
        nic, claim = cards.get(network.name), network.resourceClaim
        if nic is not None and nic.sriov is None and nic.binding is None:
            why = f"the network {network.name} by a claim needs a card with sriov or a binding by name"
            found = finding.invalid(hardware.at("domain", "devices", "interfaces"), nic.name, why, "kubevirt/V116")
            yield standing(found, path)
        for name in ("claimName", "requestName"):
            if not getattr(claim, name):
                yield finding.required((*path, "resourceClaim", name), "kubevirt/V116")
        if claim is not None and claim.claimName and claim.requestName and claim.claimName not in known:
            message = f'Not found: "{claim.claimName}": add the claim to resourceClaims'
            at = (*path, "resourceClaim", "claimName")
            yield Finding(path=at, message=message, rule="kubevirt/V116", cause=CauseType.NOT_FOUND)


def _claimed_networks(hardware: HardwareContext) -> list[tuple[Network, Path]]:
    if not is_open(_NETWORKS, hardware.settings):
        return []
    networks = enumerate(hardware.spec.networks or ())
    return [(network, hardware.at("networks", index)) for index, network in networks if network.resourceClaim is not None]


@check("kubevirt/V117", given=("spec.networks[].resourceClaim", "spec.domain.devices.gpus", "spec.domain.devices.hostDevices"))
def requests_are_used_once(hardware: HardwareContext) -> Iterator[Finding]:
    """A request of a claim is for one device or network."""
    owners: dict[tuple[str, str], str] = {}
    for claim, request, path in _requests(hardware):
        if (claim, request) in owners:
            why = f"{owners[claim, request]} has it already"
            yield finding.duplicate(path, f"{claim}/{request}", "kubevirt/V117", why)
        else:
            owners[claim, request] = finding.format_path(path)


def _requests(hardware: HardwareContext) -> Iterator[tuple[str, str, Path]]:
    """Yield the complete requests of claims whose gates are open."""
    for kind, gate in _DEVICES:
        for index, device in enumerate(getattr(hardware.spec.domain.devices, kind) or ()):
            if is_open(gate, hardware.settings) and not device.deviceName and device.claimName and device.requestName:
                yield device.claimName, device.requestName, hardware.at("domain", "devices", kind, index)
    for network, path in _claimed_networks(hardware):
        claim = network.resourceClaim
        if claim is not None and claim.claimName and claim.requestName:
            yield claim.claimName, claim.requestName, path


CHECKS = (
    claims_are_complete,
    devices_are_named,
    one_gpu_has_the_framebuffer,
    utility_volumes_come_later,
    claimed_networks_are_complete,
    requests_are_used_once,
)
