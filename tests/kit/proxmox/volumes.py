"""What storages do with volumes: make, copy, clone, snapshot, grow and free them, by the rules of each kind of storage."""

import re
import shutil
from collections.abc import Mapping

from tests.kit.proxmox.content import Content
from tests.kit.proxmox.errors import TaskFailure, failed
from tests.kit.proxmox.inventory import Cluster, Storage, Volume

# What a volume can do: by kind of storage, feature, and whether the volume is a base, current or at a snapshot; formats or "*".
_FILES = {
    "snapshot": {"current": "qcow2", "snap": "qcow2"},
    "clone": {"base": "qcow2 raw vmdk"},
    "template": {"current": "qcow2 raw vmdk"},
    "copy": {"base": "qcow2 raw vmdk", "current": "qcow2 raw vmdk", "snap": "qcow2"},
}
FEATURES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("dir", "nfs", "cifs"), _FILES),
    "lvmthin": {
        "snapshot": {"current": "raw"},
        "clone": {"base": "raw", "snap": "raw"},
        "template": {"current": "raw"},
        "copy": {"base": "raw", "current": "raw", "snap": "raw"},
    },
    "zfspool": {
        "snapshot": {"current": "raw", "snap": "raw"},
        "clone": {"base": "raw"},
        "template": {"current": "raw"},
        "copy": {"base": "raw", "current": "raw"},
    },
    "lvm": {"copy": {"base": "raw", "current": "raw"}},
}
_FULL = {"lvmthin": "lvcreate error: free space in the thin pool is exhausted", "zfspool": "zfs error: out of space"}


class Volumes:
    """The volumes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def has_feature(self, volume: Volume, feature: str, snapshot: str = "") -> bool:
        """Return True if the storage can do it with the volume, or with a snapshot of it."""
        kind = self.cluster.storages[volume.volid.partition(":")[0]].kind
        state = "snap" if snapshot else "base" if volume.is_base else "current"
        return volume.format in FEATURES[kind].get(feature, {}).get(state, "").split()

    def get(self, volid: str, node: str) -> Volume:
        """Return a volume that must be there."""
        volume = self.cluster.volume(volid, node)
        if volume is None:
            raise TaskFailure(f"volume '{volid}' does not exist")
        return volume

    def add(self, volume: Volume, node: str) -> Volume:
        """Keep a volume; its storage must have room for the data."""
        name = volume.volid.partition(":")[0]
        storage = self.cluster.activate(name, node)
        thick = storage.kind == "lvm"
        needed = volume.size if thick or volume.file is not None else volume.content.allocated
        if self.cluster.used(storage, node) + needed > storage.total:
            raise TaskFailure(_FULL.get(storage.kind, "No space left on device"))
        volume.created = int(self.cluster.clock())
        self.cluster.volumes[self.cluster.scope(name, node), volume.volid] = volume
        self._appear(storage, volume)
        return volume

    def change(self, volume: Volume, content: Content) -> None:
        """Replace the data of a volume."""
        volume.content = content
        self._appear(self.cluster.storages[volume.volid.partition(":")[0]], volume)

    def allocate(self, storage: Storage, node: str, vmid: int, content: Content, format: str = "", name: str = "") -> Volume:
        """Make a volume of a machine with the data."""
        if (kind := format or "raw") not in storage.formats:
            raise TaskFailure(f"unsupported format '{kind}'")
        name = name or self._free_name(storage, node, vmid, f".{kind}" if storage.is_file_based else "")
        path = f"{vmid}/{name}" if storage.is_file_based else name
        volid = f"{storage.name}:{path}"
        if self.cluster.volume(volid, node) is not None:
            raise TaskFailure(f"disk image '{path}' already exists")
        return self.add(Volume(volid, "images", kind, content, vmid), node)

    def _free_name(self, storage: Storage, node: str, vmid: int, suffix: str) -> str:
        names = {each.name.rpartition("/")[2] for each in self.cluster.volumes_of(storage.name, node) if each.vmid == vmid}
        numbers = {int(match[1]) for each in names if (match := re.match(rf"(?:vm|base)-{vmid}-disk-(\d+)", each))}
        return f"vm-{vmid}-disk-{next(number for number in range(1000) if number not in numbers)}{suffix}"

    def clone(self, base: Volume, node: str, vmid: int) -> Volume:
        """Make a linked clone of a base volume."""
        storage = self.cluster.activate(base.volid.partition(":")[0], node)
        name = self._free_name(storage, node, vmid, ".qcow2" if storage.is_file_based else "")
        path = {"zfspool": f"{base.name}/{name}", "lvmthin": name}.get(storage.kind, f"{base.name}/{vmid}/{name}")
        kind = "qcow2" if storage.is_file_based else "raw"
        return self.add(Volume(f"{storage.name}:{path}", "images", kind, base.content, vmid, parent=base.volid), node)

    def to_base(self, volume: Volume, node: str) -> Volume:
        """Turn a volume into a base, which gets another name."""
        head, slash, name = volume.name.rpartition("/")
        storage = volume.volid.partition(":")[0]
        self.free(volume.volid, node)
        volume.volid = f"{storage}:{head}{slash}{re.sub('^vm-', 'base-', name)}"
        return self.add(volume, node)

    def is_used(self, volume: Volume, node: str) -> bool:
        """Return True if linked clones stand on the volume. Thin volumes of LVM are independent of their origin."""
        if self.cluster.storages[volume.volid.partition(":")[0]].kind == "lvmthin":
            return False
        return any(each.parent == volume.volid for each in self.cluster.volumes_of(volume.volid.partition(":")[0], node))

    def free(self, volid: str, node: str) -> None:
        """Remove a volume."""
        name = volid.partition(":")[0]
        volume = self.get(volid, node)
        self.cluster.activate(name, node)
        if volume.is_base and self.is_used(volume, node):
            raise TaskFailure(f"base volume '{volume.name}' is still in use by linked clones")
        del self.cluster.volumes[self.cluster.scope(name, node), volid]
        if (directory := self.cluster.storages[name].directory) is not None:
            path = directory / file_path(volume)
            path.unlink(missing_ok=True)
            if volume.kind == "images" and path.parent.exists() and not any(path.parent.iterdir()):
                shutil.rmtree(path.parent)

    def copy(self, source: Content, destination: tuple[str, str], vmid: int, format: str = "") -> Volume:
        """Make a volume with the data on (storage, node), as a full clone or an import does."""
        name, node = destination
        storage = self.cluster.activate(name, node)
        if "images" not in storage.content:
            raise failed(f"storage '{name}' does not support vm images")
        return self.allocate(storage, node, vmid, source, format if format in storage.formats else "")

    def snapshot(self, volume: Volume, name: str) -> None:
        """Keep the data as it is."""
        volume.snapshots[name] = volume.content

    def rollback(self, volume: Volume, name: str) -> None:
        """Bring the data of a snapshot back. ZFS knows only the newest one."""
        kind = self.cluster.storages[volume.volid.partition(":")[0]].kind
        newest = next(reversed(volume.snapshots), "")
        if name not in volume.snapshots:
            raise TaskFailure(f"snapshot '{name}' of volume '{volume.volid}' does not exist")
        if kind == "zfspool" and name != newest:
            raise TaskFailure(f"can't rollback, '{name}' is not most recent snapshot on '{volume.volid}'")
        self.change(volume, volume.snapshots[name])

    def _appear(self, storage: Storage, volume: Volume) -> None:
        """Write the file that a storage with a directory really has."""
        if storage.directory is None:
            return
        path = storage.directory / file_path(volume)
        path.parent.mkdir(parents=True, exist_ok=True)
        if volume.file is not None:
            path.write_bytes(volume.file)
        elif volume.format == "qcow2":
            path.write_bytes(volume.content.qcow2())
        else:
            with path.open("wb") as file:
                for number, block in sorted(volume.content.blocks.items()):
                    file.seek(number * (64 << 10))
                    file.write(block)
                file.truncate(volume.content.size)


def file_path(volume: Volume) -> str:
    """Return the path of a volume's file below the directory of its storage."""
    if volume.kind == "images":
        return f"images/{'/'.join(volume.name.split('/')[-2:])}"
    kind, _, name = volume.name.partition("/")
    return f"{'template/' if kind in ('iso', 'vztmpl') else ''}{kind if kind != 'vztmpl' else 'cache'}/{name}"
