"""Rules of how a machine runs and of its smaller devices: V41, V73 to V80 and V82 to V85 (docs/spec/kubevirt.md section 2.11)."""

import ipaddress
from collections.abc import Iterator

from paddock.base import addresses, names
from paddock.kubernetes.meta.pods import DNSConfig
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubevirt.kinds.access import Probe
from paddock.kubevirt.rules.place import HardwareContext, check, standing

# Labels by which KubeVirt itself knows its objects.
RESERVED_LABELS = (
    "kubevirt.io/created-by",
    "kubevirt.io/nodeName",
    "kubevirt.io/migrationJobUID",
    "kubevirt.io/migrationTargetNodeName",
    "kubevirt.io/schedulable",
    "kubevirt.io/install-strategy",
)
_VIDEO = {"amd64": ("vga", "cirrus", "virtio", "ramfb", "bochs"), "arm64": ("virtio", "ramfb"), "s390x": ("virtio",)}
_WATCHDOG = {"amd64": "i6300esb", "s390x": "diag288"}
_HANDLERS = ("exec", "guestAgentPing", "httpGet", "tcpSocket")


@check("kubevirt/V41", given=("spec.livenessProbe",))
def paused_machines_are_not_probed(hardware: HardwareContext) -> Iterator[Finding]:
    """A machine that starts paused cannot show that it is alive."""
    spec = hardware.spec
    if spec.startStrategy == "Paused" and spec.livenessProbe is not None:
        why = "a machine that starts paused fails its livenessProbe; give one of the two"
        yield finding.invalid(hardware.at("startStrategy"), "Paused", why, "kubevirt/V41")


@check("kubevirt/V73", given=("spec.domain.ioThreadsPolicy",))
def io_threads_are_counted(hardware: HardwareContext) -> Iterator[Finding]:
    """The policy supplementalPool needs a positive number of threads."""
    domain = hardware.spec.domain
    count = domain.ioThreads.supplementalPoolThreadCount if domain.ioThreads is not None else None
    if domain.ioThreadsPolicy == "supplementalPool" and (count is None or count < 1):
        why = "ioThreads.supplementalPoolThreadCount must be positive for the policy supplementalPool"
        at = ("ioThreadsPolicy",) if count is None else ("ioThreads", "supplementalPoolThreadCount")
        found = finding.invalid(hardware.at("domain", "ioThreads", "count"), count, why, "kubevirt/V73")
        yield standing(found, hardware.at("domain", *at))


def _probes(hardware: HardwareContext) -> Iterator[tuple[Probe, Path]]:
    for name in ("readinessProbe", "livenessProbe"):
        probe = getattr(hardware.spec, name)
        if probe is not None:
            yield probe, hardware.at(name)


@check("kubevirt/V74", given=("spec.readinessProbe", "spec.livenessProbe"))
def probes_do_one_thing(hardware: HardwareContext) -> Iterator[Finding]:
    """A probe has exactly one way to look."""
    for probe, path in _probes(hardware):
        given = [name for name in _HANDLERS if getattr(probe, name) is not None]
        if not given:
            yield finding.required(path, "kubevirt/V74", f"give one of {', '.join(_HANDLERS)}")
        elif len(given) > 1:
            yield finding.invalid(path, given, "must have exactly one probe type set", "kubevirt/V74")


@check("kubevirt/V75", given=("spec.readinessProbe", "spec.livenessProbe"))
def probes_need_the_pod_network(hardware: HardwareContext) -> Iterator[Finding]:
    """A probe from outside needs the pod network, which is there unless other networks are named."""
    spec = hardware.spec
    default = not spec.networks and not spec.domain.devices.interfaces and spec.domain.devices.autoattachPodInterface is not False
    if default or any(network.pod is not None for network in spec.networks or ()):
        return
    for probe, path in _probes(hardware):
        for name in ("httpGet", "tcpSocket"):
            if getattr(probe, name) is not None:
                message = f"Invalid value: {name} is only allowed if the Pod Network is attached"
                yield standing(Finding(path=path, message=message, rule="kubevirt/V75"), (*path, name))


@check("kubevirt/V78", given=("spec.domain.devices.sound",))
def sound_is_known(hardware: HardwareContext) -> Iterator[Finding]:
    """A sound card has a name and a known model."""
    sound = hardware.spec.domain.devices.sound
    if sound is None:
        return
    path, at = hardware.at("domain", "devices", "Sound"), hardware.at("domain", "devices", "sound")
    if sound.model not in (None, "", "ich9", "ac97"):
        found = finding.unsupported(path, sound.model, ("ich9", "ac97"), "kubevirt/V78")
        yield standing(found, (*at, "model"))
    if not sound.name:
        yield standing(finding.required(path, "kubevirt/V78", "a sound card needs a name"), at)


@check("kubevirt/V79", given=("spec.domain.devices.video",))
def video_is_known(hardware: HardwareContext) -> Iterator[Finding]:
    """A graphics card is one of the architecture's when the machine runs, and there is one only with graphics."""
    devices = hardware.spec.domain.devices
    if devices.video is None:
        return
    path, at = hardware.at("video"), hardware.at("domain", "devices", "video")
    if devices.autoattachGraphicsDevice is False:
        message = "Invalid value: a video device is not allowed when autoattachGraphicsDevice is false"
        yield standing(Finding(path=path, message=message, rule="kubevirt/V79"), at)
    known = _VIDEO.get(hardware.architecture)
    if hardware.running and devices.video.type and known is not None and devices.video.type not in known:
        yield finding.unsupported((*at, "type"), devices.video.type, known, "kubevirt/V79")


@check("kubevirt/V80", given=("spec.domain.devices.watchdog",))
def watchdog_fits(hardware: HardwareContext) -> Iterator[Finding]:
    """The watchdog of a running machine is the one of its architecture; amd64 has a default."""
    watchdog, known = hardware.spec.domain.devices.watchdog, _WATCHDOG.get(hardware.architecture)
    if watchdog is None or not hardware.running:
        return
    path = hardware.at("domain", "devices", "watchdog")
    given = [name for name in ("i6300esb", "diag288") if getattr(watchdog, name) is not None]
    if known is None:
        yield finding.unsupported(path, given, (), "kubevirt/V80", f"there is no watchdog for {hardware.architecture}; leave it out")
    elif given != [known] and not (hardware.architecture == "amd64" and not given):
        yield finding.unsupported(path, given, (known,), "kubevirt/V80", f"it is the only one on {hardware.architecture}")


@check("kubevirt/V82", given=("spec.dnsPolicy", "spec.dnsConfig"))
def dns_makes_sense(hardware: HardwareContext) -> Iterator[Finding]:
    """DNS settings are complete, and not more than a resolver can hold."""
    config = hardware.spec.dnsConfig
    if hardware.spec.dnsPolicy == "None" and config is None:
        yield finding.required(hardware.at("dnsPolicy"), "kubevirt/V82", "dnsConfig must be given when dnsPolicy is None")
    elif hardware.spec.dnsPolicy == "None" and config is not None and not config.nameservers:
        found = finding.required(("nameservers",), "kubevirt/V82", "give at least one when dnsPolicy is None")
        yield standing(found, hardware.at("dnsConfig"))
    if config is not None:
        yield from _dns_config(config, hardware.at("dnsConfig"), exact=hardware.settings.target == "cluster")


def _dns_config(config: DNSConfig, at: Path, *, exact: bool) -> Iterator[Finding]:
    """`exact`: pods may have a search that ends with a dot, and KubeVirt takes none."""
    servers, searches = config.nameservers or [], config.searches or []
    if len(servers) > 3:
        yield standing(finding.too_many(("nameservers",), len(servers), 3, "kubevirt/V82"), (*at, "nameservers"))
    for index, server in enumerate(servers):
        if not _is_address(server):
            found = finding.invalid(("nameservers",), server, "must be an IP address", "kubevirt/V82")
            yield standing(found, (*at, "nameservers", index))
    if len(searches) > 6:
        yield standing(finding.too_many(("searchDomains",), len(searches), 6, "kubevirt/V82"), (*at, "searches"))
    if len(" ".join(searches)) > 256:
        yield standing(finding.too_long(("searchDomains",), 256, "kubevirt/V82"), (*at, "searches"))
    for index, search in enumerate(searches):
        if not names.is_subdomain(search if exact else search.removesuffix(".")):
            found = finding.invalid(("searchDomains",), search, "must be a DNS-1123 subdomain", "kubevirt/V82")
            yield standing(found, (*at, "searches", index))
    for index, option in enumerate(config.options or ()):
        if not option.name:
            yield standing(finding.required(("options",), "kubevirt/V82", "an option needs a name"), (*at, "options", index))


def _is_address(text: str) -> bool:
    """Return whether a text is an address. KubeVirt reads leading zeros of an IPv4 address as decimal digits, and so does the engine."""
    try:
        ipaddress.ip_address(addresses.without_zeros(text))
    except ValueError:
        return False
    return True


@check("kubevirt/V83")
def labels_are_not_reserved(hardware: HardwareContext) -> Iterator[Finding]:
    """The labels by which KubeVirt knows its objects are its own. What a stored object may change is a rule about changes."""
    if hardware.settings.trusted or hardware.stored:
        return
    path = (*hardware.metadata, "labels")
    for label in RESERVED_LABELS:
        if label in hardware.labels:
            message = f'Unsupported value: "{label}": reserved kubevirt.io/ labels are set by KubeVirt itself'
            found = Finding(path=path, message=message, rule="kubevirt/V83", cause=CauseType.NOT_SUPPORTED)
            yield standing(found, (*path, label))


@check("kubevirt/V85", given=("spec.serviceAccountName",))
def one_service_account(hardware: HardwareContext) -> Iterator[Finding]:
    """The service account of the process is that of the volume with its token."""
    account = hardware.spec.serviceAccountName
    for volume in hardware.spec.volumes or ():
        other = volume.serviceAccount.serviceAccountName if volume.serviceAccount is not None else ""
        if account and other and account != other:
            why = f"differs from the serviceAccount volume {volume.name} ({other})"
            yield finding.invalid(hardware.at("serviceAccountName"), account, why, "kubevirt/V85")


CHECKS = (
    paused_machines_are_not_probed,
    io_threads_are_counted,
    probes_do_one_thing,
    probes_need_the_pod_network,
    sound_is_known,
    video_is_known,
    watchdog_fits,
    dns_makes_sense,
    labels_are_not_reserved,
    one_service_account,
)
