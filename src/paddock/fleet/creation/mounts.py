"""Directories of the host for a new machine: `--mount HOST:GUEST[:ro]`, and the objects that it becomes.

An administrator's PersistentVolume names the directory, a claim is bound to it, and the machine shares the claim by virtiofs
(docs/use/storage.md). Objects of one machine have its name, so that `paddock rm` finds them by the label.
"""

import os
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from paddock.base import ownnames
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data

_ENDINGS = {"ro": True, "rw": False}
# A directory has no size; the API wants one.
_SIZE = "1Gi"


class BadMount(Terminal):
    """A directory that no machine can have."""


class HostMount(msgspec.Struct, frozen=True):
    """A directory of the host, and its place in the guest."""

    host: str
    guest: str
    readonly: bool = False


def read(text: str) -> HostMount:
    """Return the mount of `HOST:GUEST`, with `:ro` for one that the guest only reads. Raises `BadMount`."""
    words, readonly = text.split(":"), False
    if words[-1] in _ENDINGS:
        readonly = _ENDINGS[words.pop()]
    host, guest = ":".join(words[:-1]), words[-1] if words else ""
    if not host or not guest.startswith("/"):
        raise BadMount(f'"{text}" is no mount', fix="write HOST:GUEST such as ./src:/src, or ./src:/src:ro; GUEST is an absolute path")
    path = PurePosixPath(guest)
    if ".." in path.parts or len(path.parts) == 1 or any(each.isspace() or each in '",\\' for each in guest):
        why = "a place in the guest is no root directory, and has no spaces, quotes, commas and .."
        raise BadMount(f'cannot mount {host} at "{guest}"', why=why, fix="name a directory such as /src")
    return HostMount(host, str(path), readonly)


def on_this_host(mount: HostMount) -> HostMount:
    """Return the mount with the directory as the server sees it, free of links. Raises `BadMount`."""
    path = os.path.realpath(os.path.expanduser(mount.host))
    if not os.path.isdir(path):
        why = "it is no directory" if os.path.exists(path) else "there is no such directory"
        raise BadMount(f"cannot share {mount.host} with the guest", why=why, fix=f"make it: mkdir -p {path}")
    return msgspec.structs.replace(mount, host=path)


def tag(index: int) -> str:
    """Return the name of a volume, which is the tag that the guest mounts."""
    return f"share-{index + 1}"


def claim(machine: str, index: int) -> str:
    """Return the name of a claim."""
    return f"{machine}-{tag(index)}"


def entries(mounts: Sequence[HostMount]) -> list[list[str]]:
    """Return the `mounts` of cloud-init."""
    return [
        [tag(index), each.guest, "virtiofs", "ro,nofail" if each.readonly else "rw,nofail", "0", "0"] for index, each in enumerate(mounts)
    ]


def objects(machine: str, namespace: str, mounts: Sequence[HostMount]) -> list[Data]:
    """Return the PersistentVolumes and claims of a machine. Deleting them deletes no file."""
    made: list[Data] = []
    for index, each in enumerate(mounts):
        name, modes = claim(machine, index), ["ReadOnlyMany" if each.readonly else "ReadWriteMany"]
        # A namespace has no dot, so no two machines have one name here.
        volume = f"{namespace}.{name}"
        labels = {ownnames.MOUNT_OF.name: machine}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume, "labels": labels},
                "spec": {
                    "hostPath": {"path": each.host, "type": "Directory"},
                    "accessModes": modes,
                    "capacity": {"storage": _SIZE},
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": namespace, "name": name},
                },
            }
        )
        spec = {"accessModes": modes, "resources": {"requests": {"storage": _SIZE}}, "storageClassName": "", "volumeName": volume}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        made.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return made


def add(machine: Data, mounts: Sequence[HostMount]) -> None:
    """Have a VirtualMachine share the claims."""
    if not mounts:
        return
    spec, name = machine["spec"]["template"]["spec"], machine["metadata"]["name"]
    spec["domain"]["devices"]["filesystems"] = [{"name": tag(index), "virtiofs": {}} for index in range(len(mounts))]
    for index, each in enumerate(mounts):
        source = {"claimName": claim(name, index), **({"readOnly": True} if each.readonly else {})}
        spec["volumes"].append({"name": tag(index), "persistentVolumeClaim": source})
