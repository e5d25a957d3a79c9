"""Rules of volumes and of what is in them: V61 to V72 (docs/spec/kubevirt.md section 2.11)."""

import base64
import binascii
import posixpath
from collections.abc import Iterator

import msgspec

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import Cel
from paddock.kubevirt.kinds.access import AccessCredential, SSHPublicKey, UserPassword
from paddock.kubevirt.kinds.volumes import SOURCES, CloudInitSource, HostDisk, Volume
from paddock.kubevirt.rules.firmware import file_in_image
from paddock.kubevirt.rules.gates import cluster_gates
from paddock.kubevirt.rules.place import HardwareContext, check, once, standing

_CLOUD_INIT = ("cloudInitNoCloud", "cloudInitConfigDrive")
_USER_DATA = ("userData", "userDataBase64", "secretRef")
_NETWORK_DATA = ("networkData", "networkDataBase64", "networkDataSecretRef")
_INLINE_BYTES = 2048
# Cloud-init unpacks what begins like this.
_GZIP = b"\x1f\x8b"
_NAMED = {"configMap": "name", "secret": "secretName", "serviceAccount": "serviceAccountName"}
_SINGLE = ("serviceAccount", "downwardMetrics", "memoryDump")


@once
def volumes(hardware: HardwareContext) -> Iterator[tuple[Volume, Path]]:
    """The volumes with their places."""
    for index, volume in enumerate(hardware.spec.volumes or ()):
        yield volume, hardware.at("volumes", index)


@check("kubevirt/V61", given=("spec.volumes[].containerDisk",))
def container_paths_are_files(hardware: HardwareContext) -> Iterator[Finding]:
    """The path of a disk in a container image is absolute and not the root."""
    for volume, path in volumes(hardware):
        if volume.containerDisk is not None:
            path = (*path, "containerDisk")
            for found in file_in_image(volume.containerDisk.path, path, "kubevirt/V61"):
                yield standing(found, (*path, "path"))


@check(
    "kubevirt/V63",
    Cel(
        "volumes[]",
        f"[{', '.join(f'has(self.{name})' for name in SOURCES)}].filter(given, given).size() == 1",
        "must have exactly one source type set",
    ),
    given=("spec.volumes",),
)
def volumes_have_one_source(hardware: HardwareContext) -> Iterator[Finding]:
    """A volume has exactly one source."""
    for volume, path in volumes(hardware):
        members = msgspec.structs.astuple(volume)
        # The name is always there.
        if len(members) - members.count(None) != 2:
            given = [name for name in SOURCES if getattr(volume, name) is not None]
            yield finding.invalid(path, given, "must have exactly one source type set", "kubevirt/V63")


@check("kubevirt/V64", given=("spec.volumes[].dataVolume",))
def data_volumes_are_named(hardware: HardwareContext) -> Iterator[Finding]:
    """A volume of the type dataVolume names the DataVolume."""
    for volume, path in volumes(hardware):
        if volume.dataVolume is not None and not volume.dataVolume.name:
            found = finding.required((*path, "name"), "kubevirt/V64", "dataVolume.name must be set")
            yield standing(found, (*path, "dataVolume"))


@once
def cloud_init(hardware: HardwareContext) -> Iterator[tuple[CloudInitSource, Path]]:
    """The cloud-init disks with their places."""
    for volume, path in volumes(hardware):
        for name in _CLOUD_INIT:
            source = getattr(volume, name)
            if source is not None:
                yield source, (*path, name)


@check(
    "kubevirt/V65",
    given=(
        "spec.volumes[].cloudInitNoCloud.userDataBase64",
        "spec.volumes[].cloudInitNoCloud.networkDataBase64",
        "spec.volumes[].cloudInitConfigDrive.userDataBase64",
        "spec.volumes[].cloudInitConfigDrive.networkDataBase64",
    ),
)
def cloud_init_is_base64(hardware: HardwareContext) -> Iterator[Finding]:
    """Encoded user data and network data can be decoded."""
    for source, path in cloud_init(hardware):
        for name in ("userDataBase64", "networkDataBase64"):
            text = getattr(source, name)
            if text and _decoded(text) is None:
                yield finding.secret_invalid((*path, name), "not valid base64", "kubevirt/V65")


def _decoded(text: str) -> bytes | None:
    try:
        # Line breaks are no part of the alphabet, and everybody's tools write them.
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return None


def _sources(source: CloudInitSource, names: tuple[str, str, str]) -> list[str]:
    """Return the given forms of the user data, or of the network data: plain, encoded, in a Secret."""
    reference = getattr(source, names[2])
    given = [name for name in names[:2] if getattr(source, name)]
    return [*given, names[2]] if reference is not None and reference.name else given


@check("kubevirt/V66", given=("spec.volumes[].cloudInitNoCloud", "spec.volumes[].cloudInitConfigDrive"))
def cloud_init_has_one_source(hardware: HardwareContext) -> Iterator[Finding]:
    """User data and network data come from one source each, and at least one of them is there."""
    for source, path in cloud_init(hardware):
        user, network = _sources(source, _USER_DATA), _sources(source, _NETWORK_DATA)
        for given in (user, network):
            if len(given) > 1:
                message = f"Invalid value: give only one of {', '.join(given)}"
                yield Finding(path=path, message=message, rule="kubevirt/V66")
        if not user and not network:
            why = "Invalid value: give at least one of userData, userDataBase64, secretRef, networkData, networkDataBase64 and "
            yield Finding(path=path, message=f"{why}networkDataSecretRef", rule="kubevirt/V66")


@check("kubevirt/V67", given=("spec.volumes[].cloudInitNoCloud", "spec.volumes[].cloudInitConfigDrive"))
def cloud_init_is_short(hardware: HardwareContext) -> Iterator[Finding]:
    """Inline data is short; longer data belongs into a Secret."""
    for source, path in cloud_init(hardware):
        for kind, secret in (("userData", "secretRef"), ("networkData", "networkDataSecretRef")):
            for name in (kind, f"{kind}Base64"):
                text = getattr(source, name)
                data = (_decoded(text) if name != kind else text.encode(errors="surrogatepass")) if text else None
                if data is not None and len(data) > _INLINE_BYTES:
                    message = f"Invalid value: {kind} exceeds {_INLINE_BYTES} byte limit; put it into a Secret and name it in {secret}"
                    yield standing(Finding(path=path, message=message, rule="kubevirt/V67"), (*path, name))


@check("kubevirt/cloud-init", warns=True, given=("spec.volumes[].cloudInitNoCloud", "spec.volumes[].cloudInitConfigDrive"))
def cloud_init_is_readable(hardware: HardwareContext) -> Iterator[Finding]:
    """User data is a document that cloud-init knows, with keys that it reads; network data has a version (warnings)."""
    from paddock.kubernetes.meta import cloudconfig  # noqa: PLC0415 - loads YAML, which a server without machines does without

    for source, path in cloud_init(hardware):
        for name, text in (("userData", source.userData), ("userDataBase64", _text(source.userDataBase64))):
            for problem in cloudconfig.user_data_problems(text) if text else ():
                yield finding.warning((*path, name), problem, "kubevirt/cloud-init")
        for name, text in (("networkData", source.networkData), ("networkDataBase64", _text(source.networkDataBase64))):
            problem = cloudconfig.network_problem(text) if text else ""
            if problem:
                yield finding.warning((*path, name), f"cloud-init may ignore it: {problem}", "kubevirt/cloud-init")


def _text(encoded: str | None) -> str:
    """Decode a value, as far as it can be read as text."""
    data = _decoded(encoded) if encoded else None
    return data.decode(errors="ignore") if data is not None and not data.startswith(_GZIP) else ""


@check("kubevirt/V68", given=("spec.volumes[].hostDisk",))
def host_disks_are_allowed(hardware: HardwareContext) -> Iterator[Finding]:
    """Files of the host are used only where the operator allows it."""
    for volume, path in volumes(hardware):
        if volume.hostDisk is not None:
            yield from _host_disk(hardware, volume.hostDisk, path)


def _host_disk(hardware: HardwareContext, disk: HostDisk, path: Path) -> Iterator[Finding]:
    at, allowed = (*path, "hostDisk"), hardware.settings.host_disk_paths
    if hardware.settings.target == "cluster":
        gates = cluster_gates(hardware.settings)
        if not gates.has("HostDisk"):
            why = f"the HostDisk feature gate is not enabled; {gates.remedy('HostDisk')}"
            yield standing(finding.forbidden(path, why, "kubevirt/V68"), at)
    elif not allowed:
        why = "HostDisk is not enabled: no directory of the host is allowed for disks; start the server with --host-disks DIRECTORY"
        yield standing(finding.forbidden(path, why, "kubevirt/V68"), at)
    elif disk.path and not any(_is_below(disk.path, directory) for directory in allowed):
        why = f"{disk.path} is in none of the directories allowed for disks of the host: {', '.join(allowed)}"
        yield standing(finding.forbidden(path, why, "kubevirt/V68"), (*at, "path"))
    if not disk.path:
        yield finding.required((*at, "path"), "kubevirt/V68")
    if disk.type == "Disk" and disk.capacity is not None:
        why = "a capacity is for a file that may be created: type DiskOrCreate"
        yield finding.invalid((*at, "capacity"), disk.capacity, why, "kubevirt/V68")


def _is_below(path: str, directory: str) -> bool:
    """Return whether a file is in a directory, by its name alone: the opener of the file checks links."""
    clean = posixpath.normpath(path)
    return clean.startswith(posixpath.normpath(directory).rstrip("/") + "/") and ".." not in path.split("/")


@check("kubevirt/V69", given=("spec.volumes[].configMap", "spec.volumes[].secret", "spec.volumes[].serviceAccount"))
def named_volumes_have_names(hardware: HardwareContext) -> Iterator[Finding]:
    """Volumes made of another object name it."""
    for volume, path in volumes(hardware):
        for kind, member in _NAMED.items():
            source = getattr(volume, kind)
            if source is not None and not getattr(source, member):
                yield finding.required((*path, kind, member), "kubevirt/V69")


@check("kubevirt/V70", given=("spec.volumes[].serviceAccount", "spec.volumes[].downwardMetrics", "spec.volumes[].memoryDump"))
def some_volumes_come_once(hardware: HardwareContext) -> Iterator[Finding]:
    """There is at most one volume with the service account, the metrics, the memory dump."""
    for kind in _SINGLE:
        given = [path for volume, path in volumes(hardware) if getattr(volume, kind) is not None]
        if len(given) > 1:
            message = f"Invalid value: must have max one {kind} volume set, got {len(given)}"
            yield standing(Finding(path=hardware.at("volumes"), message=message, rule="kubevirt/V70"), given[1])


def credentials(hardware: HardwareContext) -> Iterator[tuple[AccessCredential, Path]]:
    """The access credentials with their places."""
    for index, credential in enumerate(hardware.spec.accessCredentials or ()):
        yield credential, hardware.at("accessCredentials", index)


_RESERVED = ("/var/run/kubevirt", "/var/run/libvirt")


@check("kubevirt/V115", given=("spec.volumes[].containerPath",))
def container_paths_are_shared(hardware: HardwareContext) -> Iterator[Finding]:
    """A directory of the launcher's container is shared as a filesystem of a running machine, is no disk, and is not KubeVirt's own."""
    if not hardware.running:
        return
    devices = hardware.spec.domain.devices
    shared = {filesystem.name for filesystem in devices.filesystems or ()}
    attached = {disk.name for disk in devices.disks or ()}
    for index, volume in enumerate(hardware.spec.volumes or ()):
        if volume.containerPath is None:
            continue
        # KubeVirt calls the list a member of the domain.
        path, at = hardware.at("domain", "volumes", index), hardware.at("volumes", index)
        if volume.name in attached:
            yield standing(finding.invalid(path, volume.name, "a containerPath is a filesystem, not a disk", "kubevirt/V115"), at)
        if volume.name not in shared:
            why = "a containerPath needs an entry of this name in domain.devices.filesystems"
            yield standing(finding.invalid(path, volume.name, why, "kubevirt/V115"), at)
        if volume.containerPath.path.startswith(_RESERVED):
            why = f"the directories below {' and '.join(_RESERVED)} are KubeVirt's own"
            found = finding.invalid((*path, "containerPath", "path"), volume.containerPath.path, why, "kubevirt/V115")
            yield standing(found, (*at, "containerPath", "path"))


@check("kubevirt/V71", given=("spec.accessCredentials",))
def credentials_are_one_thing(hardware: HardwareContext) -> Iterator[Finding]:
    """Credentials have one type, one source and one way to the guest."""
    for credential, path in credentials(hardware):
        given = [name for name in ("sshPublicKey", "userPassword") if getattr(credential, name) is not None]
        if len(given) != 1:
            yield finding.invalid(path, given, "must have exactly one access credential type set", "kubevirt/V71")
        for name in given:
            yield from _credential(getattr(credential, name), (*path, name))


def _credential(credential: SSHPublicKey | UserPassword, path: Path) -> Iterator[Finding]:
    if credential.source.secret is None:
        message = "Invalid value: must have exactly one source set"
        yield Finding(path=(*path, "source"), message=message, rule="kubevirt/V71")
    method = credential.propagationMethod
    ways = [name for name in method.__struct_fields__ if getattr(method, name) is not None]
    if len(ways) != 1:
        why = "must have exactly one propagationMethod set"
        yield finding.invalid((*path, "propagationMethod"), ways, why, "kubevirt/V71")


@check("kubevirt/V72", given=("spec.accessCredentials",))
def keys_reach_the_guest(hardware: HardwareContext) -> Iterator[Finding]:
    """The way that keys take to the guest exists."""
    given = {name for volume, _ in volumes(hardware) for name in _CLOUD_INIT if getattr(volume, name) is not None}
    for credential, path in credentials(hardware):
        if credential.sshPublicKey is None:
            continue
        method, path = credential.sshPublicKey.propagationMethod, (*path, "sshPublicKey", "propagationMethod")
        for name, volume in (("noCloud", _CLOUD_INIT[0]), ("configDrive", _CLOUD_INIT[1])):
            if getattr(method, name) is not None and volume not in given:
                why = f"Invalid value: {name} needs a volume of the type {volume}"
                yield standing(Finding(path=path, message=why, rule="kubevirt/V72"), (*path, name))
        if method.qemuGuestAgent is not None and not method.qemuGuestAgent.users:
            yield finding.required((*path, "qemuGuestAgent", "users"), "kubevirt/V72", "name at least one user of the guest")


CHECKS = (
    container_paths_are_files,
    volumes_have_one_source,
    data_volumes_are_named,
    cloud_init_is_base64,
    cloud_init_has_one_source,
    cloud_init_is_short,
    cloud_init_is_readable,
    host_disks_are_allowed,
    named_volumes_have_names,
    some_volumes_come_once,
    container_paths_are_shared,
    credentials_are_one_thing,
    keys_reach_the_guest,
)
