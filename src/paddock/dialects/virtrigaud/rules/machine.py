"""The rules of a machine's spec, wherever one stands: in a VirtualMachine, in the template of a VMSet; parts of it in clones
and migrations."""

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds.machine import (
    LifecycleHandler,
    MetaData,
    UserData,
    VirtrigaudMachineSpec,
    VirtualMachineLifecycle,
    VMNetworkRef,
)
from paddock.kubernetes.meta import cloudconfig
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, CrossFieldRule

IMAGE_OR_DISK = "virtrigaud/image-or-disk"
NETWORK_REF = "virtrigaud/network-ref"
STATIC_ADDRESS = "virtrigaud/static-address"
DATASTORE = "virtrigaud/datastore-or-pod"
LIFECYCLE = "virtrigaud/lifecycle-action"
TIMEOUT = "virtrigaud/timeout"
USER_DATA = "virtrigaud/user-data"
META_DATA = "virtrigaud/meta-data"

USER_DATA_CEL = (
    "!(has(self.cloudInit) && has(self.ignition))",
    "cloudInit is given, and a guest reads only one of the two",
    ".ignition",
    "FieldValueForbidden",
)
DATASTORE_CEL = (
    "!(has(self.datastore) && self.datastore.size() > 0 && has(self.storagePod) && self.storagePod.size() > 0)",
    "datastore and storagePod are mutually exclusive",
    ".storagePod",
    "FieldValueForbidden",
)
_HANDLER_CELS = (
    (
        "has(self.exec) || has(self.httpGet) || has(self.snapshot)",
        "exactly one of exec, httpGet and snapshot",
        "",
        "FieldValueRequired",
    ),
    (
        "[has(self.exec), has(self.httpGet), has(self.snapshot)].filter(given, given).size() <= 1",
        "exactly one of exec, httpGet and snapshot",
        "",
        "FieldValueForbidden",
    ),
)
_ACTIONS = ("exec", "httpGet", "snapshot")


def image_or_disk(spec: VirtrigaudMachineSpec, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine is made from an image or has an imported disk, not both; with neither it is stored and not made."""
    if spec.imageRef is not None and spec.importedDisk is not None:
        yield finding.forbidden(
            (*path, "importedDisk"), "imageRef and importedDisk are mutually exclusive; keep one of them", IMAGE_OR_DISK
        )
    elif spec.imageRef is None and spec.importedDisk is None:
        text = "neither imageRef nor importedDisk: the machine is stored, but it cannot be made until one of them is given"
        yield finding.warning((*path, "imageRef"), text, IMAGE_OR_DISK)


def network_refs(networks: Sequence[VMNetworkRef] | None, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A network card without a VMNetworkAttachment is on the default network of its Provider (a warning)."""
    for index, nic in enumerate(networks or ()):
        if nic.networkRef is None:
            text = "none is given, so the card is on the default network of its Provider; name a VMNetworkAttachment to choose one"
            yield finding.warning((*path, index, "networkRef"), text, NETWORK_REF)


def static_addresses(networks: Sequence[VMNetworkRef] | None, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """prefix, gateway and dns belong to a static address; name servers are addresses separated by commas."""
    for index, nic in enumerate(networks or ()):
        at = (*path, index)
        for server in _servers(nic.dns):
            if not _is_address(server):
                yield finding.invalid((*at, "dns"), nic.dns, "must be addresses separated by commas", STATIC_ADDRESS)
                break
        if nic.ipAddress:
            yield from _static_address(nic, at)
            continue
        for name in ("prefix", "gateway", "dns"):
            if getattr(nic, name) is not None:
                text = f"{name} has no effect without ipAddress"
                yield finding.warning((*at, name), text, STATIC_ADDRESS)


def _static_address(vm_network_ref: VMNetworkRef, at: Path) -> Iterator[Finding]:
    if not vm_network_ref.gateway or not _is_address(vm_network_ref.gateway) or not _is_address(vm_network_ref.ipAddress or ""):
        return
    prefix = vm_network_ref.prefix if vm_network_ref.prefix is not None and 1 <= vm_network_ref.prefix <= 32 else 24
    network = ipaddress.ip_interface(f"{vm_network_ref.ipAddress}/{prefix}").network
    if ipaddress.ip_address(vm_network_ref.gateway) not in network:
        said = "" if vm_network_ref.prefix is not None else " (24 is taken when no prefix is given)"
        text = f"{vm_network_ref.gateway} is outside of {network}{said}, so the guest cannot reach it"
        yield finding.warning((*at, "gateway"), text, STATIC_ADDRESS)


def _servers(dns: str | None) -> list[str]:
    return [server.strip() for server in dns.split(",")] if dns else []


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def datastore_or_pod(placement: Any, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A place names a datastore or a storage pod, not both."""
    if placement is not None and placement.datastore and placement.storagePod:
        yield finding.forbidden((*path, "storagePod"), "datastore and storagePod are mutually exclusive; keep one of them", DATASTORE)


def handler(lifecycle_handler: LifecycleHandler | None, path: Path) -> Iterator[Finding]:
    """A handler has exactly one action."""
    actions = [name for name in _ACTIONS if lifecycle_handler is not None and getattr(lifecycle_handler, name) is not None]
    if lifecycle_handler is not None and not actions:
        yield finding.required(path, LIFECYCLE, "exactly one of exec, httpGet and snapshot")
    for extra in actions[1:]:
        why = f"exactly one of exec, httpGet and snapshot, and {actions[0]} is given"
        yield finding.forbidden((*path, extra), why, LIFECYCLE)


def lifecycle(virtual_machine_lifecycle: VirtualMachineLifecycle | None, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """Each handler of the lifecycle has exactly one action."""
    if virtual_machine_lifecycle is not None:
        yield from handler(virtual_machine_lifecycle.preStop, (*path, "preStop"))
        yield from handler(virtual_machine_lifecycle.postStart, (*path, "postStart"))


def not_negative(text: str | None, path: Path) -> Iterator[Finding]:
    """A time span that something may take is not negative."""
    if text and duration.is_duration(text) and duration.parse(text) < 0:
        yield finding.invalid(path, text, "must not be negative", TIMEOUT)


def shutdown_timeout(lifecycle: VirtualMachineLifecycle | None, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """The time a guest has to shut down is not negative."""
    if lifecycle is not None:
        yield from not_negative(lifecycle.gracefulShutdownTimeout, (*path, "gracefulShutdownTimeout"))


def user_data(data: UserData | None, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A guest reads cloud-init or Ignition, not both; cloud-init documents of one machine are merged, Ignition's cannot be."""
    if data is None:
        return
    cloud_init, ignition = data.cloudInit, data.ignition
    if cloud_init is not None and ignition is not None:
        why = "cloudInit is given, and a guest reads only one of the two"
        yield finding.forbidden((*path, "ignition"), why, USER_DATA)
    if ignition is not None and ignition.inline and ignition.secretRef is not None:
        why = "inline is given, and two Ignition documents cannot be merged"
        yield finding.forbidden((*path, "ignition", "secretRef"), why, USER_DATA)
    for name, source in (("cloudInit", cloud_init), ("ignition", ignition)):
        if source is not None and not source.inline and source.secretRef is None:
            yield finding.warning((*path, name), "neither inline nor secretRef: the guest gets nothing", USER_DATA)
    if cloud_init is not None and cloud_init.inline:
        yield from _cloud_config(cloud_init.inline, (*path, "cloudInit", "inline"))


def _cloud_config(text: str, path: Path) -> Iterator[Finding]:
    problem = cloudconfig.problem(text)
    if problem:
        yield finding.warning(path, f"cloud-init will refuse this: {problem}", USER_DATA)
    elif not cloudconfig.has_known_header(text):
        yield finding.warning(path, "cloud-init does not know what this is; start it with #cloud-config", USER_DATA)
    elif text.startswith("#cloud-config"):
        for slip in cloudconfig.slips(text):
            yield finding.warning(path, slip, USER_DATA)


def meta_data(data: MetaData | None, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """Metadata is a YAML mapping."""
    source = data.cloudInit if data is not None else None
    if source is not None and source.inline:
        problem = cloudconfig.mapping_problem(source.inline)
        if problem:
            yield finding.warning((*path, "cloudInit", "inline"), f"cloud-init will refuse this: {problem}", META_DATA)


class MachineRule(NamedTuple):
    """A rule of a machine's spec, or of one member of it; the places of its CEL forms are relative to the spec."""

    id: str
    check: Callable[[Any, Path, AdmissionSettings], Iterator[Finding]]
    member: str = ""
    cels: tuple[Cel, ...] = ()
    # it warns of what keeps a machine from being made, which is of no interest once there is one
    until_made: bool = False


_RULES = (
    MachineRule(
        IMAGE_OR_DISK,
        image_or_disk,
        cels=(
            Cel(
                "",
                "!(has(self.imageRef) && has(self.importedDisk))",
                "imageRef and importedDisk are mutually exclusive",
                ".importedDisk",
                "FieldValueForbidden",
            ),
        ),
        until_made=True,
    ),
    MachineRule(NETWORK_REF, network_refs, "networks"),
    MachineRule(STATIC_ADDRESS, static_addresses, "networks"),
    MachineRule(DATASTORE, datastore_or_pod, "placement", (Cel(".placement", *DATASTORE_CEL),)),
    MachineRule(
        LIFECYCLE,
        lifecycle,
        "lifecycle",
        tuple(Cel(f".lifecycle.{name}", *cel) for name in ("preStop", "postStart") for cel in _HANDLER_CELS),
    ),
    MachineRule(TIMEOUT, shutdown_timeout, "lifecycle"),
    MachineRule(USER_DATA, user_data, "userData", (Cel(".userData", *USER_DATA_CEL),)),
    MachineRule(META_DATA, meta_data, "metaData"),
)


def rules_at(
    place: str, spec_of: Callable[[Any], VirtrigaudMachineSpec], is_made: Callable[[Any], bool] = lambda _: False
) -> tuple[CrossFieldRule, ...]:
    """The rules of a machine's spec for a kind that has one at `place`. `is_made` says whether its machine exists."""
    return tuple(_rule_at(each, place, spec_of, is_made) for each in _RULES)


def _rule_at(
    each: MachineRule, place: str, spec_of: Callable[[Any], VirtrigaudMachineSpec], is_made: Callable[[Any], bool]
) -> CrossFieldRule:
    path = (*place.split("."), each.member) if each.member else tuple(place.split("."))

    def check(obj: Any, settings: AdmissionSettings) -> Iterator[Finding]:
        spec, silent = spec_of(obj), each.until_made and is_made(obj)
        found = each.check(getattr(spec, each.member) if each.member else spec, path, settings)
        return (one for one in found if not (silent and one.severity is finding.Severity.WARNING))

    text = " ".join((each.check.__doc__ or "").split())
    cels = tuple(msgspec.structs.replace(cel, at=f"{place}{cel.at}") for cel in each.cels)
    return CrossFieldRule(each.id, text, check, cels)
