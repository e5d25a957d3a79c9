"""Directories of the host that PersistentVolumes name: which of them a machine may share or have a disk in, and how. Pure.

A PersistentVolume has no namespace, so only an administrator makes one; the starter of the server says below which directories they lie.
"""

import stat
from collections.abc import Collection
from pathlib import PurePath

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data

# The host's own, whatever the server allows: its settings, its kernel, and the sockets of its programs.
SYSTEM = tuple(map(PurePath, ("/boot", "/dev", "/etc", "/proc", "/run", "/sys")))
_ROOT = PurePath("/")
_WRITING = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
# The disk of a claim that has files, as KubeVirt and CDI call it.
_IMAGE = "disk.img"


class HostDirectory(msgspec.Struct, frozen=True):
    """A directory of the host as a volume. `path` is as the volume says, so it may lead over links."""

    path: str
    readonly: bool = False


class HostImage(msgspec.Struct, frozen=True):
    """A disk image in a directory of the host as a volume; it is made with the size of the volume where there is none."""

    path: str
    size: int
    readonly: bool = False
    # the directory is made, too
    makes_directory: bool = False


def is_static(claim: Data) -> bool:
    """Return whether a claim has a volume that an administrator made: the engine has no disk for it."""
    named = (claim.get("spec") or {}).get("volumeName")
    return bool(named) and named != f"pvc-{claim['metadata']['uid']}"


def of_volume(volume: Data) -> HostDirectory | str:
    """Return the directory of a volume that an administrator made, or the reason why the volume is none that can be shared."""
    found = _directory(volume)
    if isinstance(found, HostDirectory) and (kind := _kind(volume)) not in ("", "Directory"):
        return f"PersistentVolume {volume['metadata']['name']} has hostPath.type {kind}; only Directory can be shared"
    return found


def image_of_volume(volume: Data) -> HostImage | str:
    """Return the disk image in the directory of a volume that an administrator made, or the reason why the volume can have none."""
    found, name = _directory(volume), volume["metadata"]["name"]
    if isinstance(found, str):
        return found
    if (kind := _kind(volume)) not in ("", "Directory", "DirectoryOrCreate"):
        return f"PersistentVolume {name} has hostPath.type {kind}; a disk lies in a Directory, or DirectoryOrCreate"
    size = ((volume.get("spec") or {}).get("capacity") or {}).get("storage")
    if size is None:
        return f"PersistentVolume {name} has no capacity.storage, which is the size of its disk"
    return HostImage(f"{found.path.rstrip('/')}/{_IMAGE}", quantity.whole(size), found.readonly, kind == "DirectoryOrCreate")


def _kind(volume: Data) -> str:
    return str(volume["spec"]["hostPath"].get("type") or "")


def _directory(volume: Data) -> HostDirectory | str:
    name, spec = volume["metadata"]["name"], volume.get("spec") or {}
    given = spec.get("hostPath")
    if not given:
        return f"PersistentVolume {name} has no hostPath, and Paddock gives machines no other volumes than its own and those"
    if (spec.get("volumeMode") or "Filesystem") != "Filesystem":
        return f"PersistentVolume {name} has volumeMode {spec['volumeMode']}; a directory needs Filesystem"
    path = str(given.get("path") or "")
    if not path.startswith("/") or ".." in PurePath(path).parts:
        return f"PersistentVolume {name} has the hostPath {path}, which is no absolute path without .."
    return HostDirectory(path, readonly=not set(spec.get("accessModes") or ()) & set(_WRITING))


def is_of_system(path: PurePath) -> bool:
    """Return whether a directory is the host's own, whatever the server allows. The path is free of links."""
    return path == _ROOT or any(path.is_relative_to(each) for each in SYSTEM)


def refusal(path: PurePath, allowed: Collection[PurePath], private: Collection[PurePath]) -> str:
    """Return why a directory must not be shared; empty if it may. All paths are free of links.

    `allowed` are the directories that the server shares, `private` those in which it keeps its own data.
    """
    if is_of_system(path):
        return "it belongs to the host's system, and is never shared"
    if own := next((each for each in private if path.is_relative_to(each) or each.is_relative_to(path)), None):
        return f"the server keeps its own data in {own}, which is never shared"
    if any(path.is_relative_to(each) for each in allowed):
        return ""
    shared = f"this server shares {', '.join(map(str, allowed))} only" if allowed else "this server shares no directories"
    return f"{shared}; start it with `paddock up --share {path}` to allow it"


def is_writable(mode: int, owner: int, user: int) -> bool:
    """Return whether a share of a directory can be written. `user` is the server's; as root, it acts as the owner of each directory."""
    return bool(mode & (stat.S_IWUSR if user in (0, owner) else stat.S_IWOTH))
