"""Volumes of storages: list, look at, make and remove them; files that come by upload or from a URL."""

import hashlib
import re
from typing import Any

from tests.kit.proxmox import disks, formats
from tests.kit.proxmox.content import Content, UnreadableImage
from tests.kit.proxmox.context import Context, Routes
from tests.kit.proxmox.errors import ApiError, TaskFailure, failed, invalid
from tests.kit.proxmox.inventory import Storage, Volume
from tests.kit.proxmox.tasks import Task

routes = Routes()
PATH = "/nodes/{node}/storage/{storage}"
_EXTENSIONS = {
    "iso": r"[^/]+\.(iso|img)",
    "vztmpl": r"[^/]+\.tar(\.(gz|xz|zst|bz2))?",
    "import": r"[a-zA-Z0-9.+=_-]+\.(ova|qcow2|raw|vmdk)",
}


@routes.on(f"GET {PATH}/content")
def contents(context: Context) -> Any:
    name = context.text("storage")
    context.cluster.activate(name, context.node)
    kind, vmid = context.text("content"), context.number("vmid", 0)
    found = [each for each in context.cluster.volumes_of(name, context.node) if kind in ("", each.kind) and vmid in (0, each.vmid)]
    return [_entry(each) for each in found if _readable(context, each)]


def _readable(context: Context, volume: Volume) -> bool:
    try:
        disks.check_volume(context, 0, volume.volid)
    except ApiError:
        return False
    return True


def _entry(volume: Volume) -> dict[str, Any]:
    entry: dict[str, Any] = {"volid": volume.volid, "content": volume.kind, "size": volume.size, "ctime": volume.created}
    entry["format"] = "iso" if volume.kind == "iso" else volume.format
    if volume.vmid:
        entry["vmid"] = volume.vmid
    if volume.parent:
        entry["parent"] = volume.parent.rpartition("/")[2].partition(":")[2] or volume.parent.rpartition("/")[2]
    return entry


def _volume(context: Context) -> tuple[Storage, Volume | None, str]:
    name, given = context.text("storage"), context.text("volume")
    volid = given if ":" in given else f"{name}:{given}"
    if volid.partition(":")[0] != name:
        raise invalid(volume=f"storage ID mismatch ({volid.partition(':')[0]} != {name})\n")
    return context.cluster.activate(name, context.node), context.cluster.volume(volid, context.node), volid


@routes.on(f"GET {PATH}/content/{{volume}}")
def attributes(context: Context) -> Any:
    _, volume, volid = _volume(context)
    disks.check_volume(context, 0, volid)
    if volume is None:
        raise failed(f"volume_size_info on '{volid}' failed - no format")
    return {"path": f"/dev/{volid.replace(':', '/')}", "size": volume.size, "used": volume.content.allocated, "format": volume.format}


@routes.on(f"POST {PATH}/content")
def allocate(context: Context) -> Any:
    storage = context.cluster.activate(context.text("storage"), context.node)
    size = re.fullmatch(r"(\d+)([MG])?", context.text("size"))
    if size is None:
        raise invalid(size=f"unable to parse size '{context.text('size')}'")
    length = int(size[1]) * {None: 1 << 10, "M": 1 << 20, "G": 1 << 30}[size[2]]
    if not re.match(rf"(vm-|subvol-|basevol-)?{context.vmid}|vm-{context.vmid}-", context.text("filename")):
        raise failed(f"illegal name '{context.text('filename')}' - should be 'vm-{context.vmid}-*'")
    suffix = re.search(r"\.(raw|qcow2|vmdk)$", context.text("filename"))
    kind = context.text("format") or (suffix[1] if suffix else "raw")
    volume = context.park.volumes.allocate(storage, context.node, context.vmid, Content(length), kind, context.text("filename"))
    return volume.volid


@routes.on(f"DELETE {PATH}/content/{{volume}}")
def remove(context: Context) -> Any:
    storage, volume, volid = _volume(context)
    owner = volume.vmid if volume else 0
    context.demand(f"/storage/{storage.name}", "Datastore.Allocate")

    def work(task: Task) -> None:
        found = context.cluster.volume(volid, context.node)
        if found is None:
            raise TaskFailure(f"volume '{volid}' does not exist")
        context.park.volumes.free(volid, context.node)
        task.write(f"Removed volume '{volid}'")

    return context.awaited(context.worker("imgdel", f"{owner}@{storage.name}" if owner else storage.name, work), "delay", "")


def _target(context: Context, name: str) -> tuple[Storage, str, str]:
    """Return the storage, the kind and the name of a file that comes."""
    kind = context.text("content")
    storage = context.cluster.storage(context.text("storage"), context.node)
    if not storage.is_file_based:
        raise failed(f"can't upload to storage type '{storage.kind}'")
    name = re.sub(r"[^a-zA-Z0-9_.-]", "_", name.rpartition("/")[2].rpartition("\\")[2])
    if kind not in _EXTENSIONS:
        raise invalid(content=f"upload content type '{kind}' not allowed")
    if not re.fullmatch(_EXTENSIONS[kind], name, re.IGNORECASE if kind == "iso" else 0):
        raise invalid(filename="invalid filename or wrong extension" if kind == "import" else "wrong file extension")
    if kind not in storage.content:
        raise failed(f"storage '{storage.name}' does not support '{kind}' content")
    if not storage.active:
        raise failed(f"storage '{storage.name}' is not online")
    return storage, kind, name


def _keep(context: Context, storage: Storage, kind: str, name: str, data: bytes) -> None:
    """Check a file and keep it; it replaces one of the same name."""
    form = name.rpartition(".")[2] if kind == "import" else "raw"
    if kind == "import" and form != "ova":
        try:
            Content.of_file(data, form)
        except UnreadableImage as error:
            raise TaskFailure(str(error)) from None
    volid = f"{storage.name}:{kind}/{name}"
    if context.cluster.volume(volid, context.node) is not None:
        context.park.volumes.free(volid, context.node)
    context.park.volumes.add(Volume(volid, kind, form, Content(len(data)), file=data), context.node)


def _check_sum(context: Context, data: bytes, end: str = "") -> None:
    algorithm, wanted = context.text("checksum-algorithm"), context.text("checksum")
    if algorithm and (got := hashlib.new(algorithm, data).hexdigest()) != wanted.lower():
        raise TaskFailure(f"checksum mismatch: got '{got}' != expect '{wanted}'{end}")


@routes.on(f"POST {PATH}/upload")
def upload(context: Context) -> Any:
    given = context.upload
    if given is None:
        raise failed("missing temporary file name")
    storage, kind, name = _target(context, context.text("filename"))

    def work(task: Task) -> None:
        task.write(f"starting file import from: /var/tmp/pveupload-{hashlib.md5(given.data).hexdigest()}")
        _check_sum(context, given.data)
        _keep(context, storage, kind, name, given.data)
        task.write("finished file import successfully")

    return context.worker("imgcopy", "", work)


@routes.on(f"POST {PATH}/download-url")
def download(context: Context) -> Any:
    storage, kind, name = _target(context, context.text("filename"))
    url = context.text("url")

    def work(task: Task) -> None:
        task.write(f"downloading {url} to {name}")
        existing = context.cluster.volume(f"{storage.name}:{kind}/{name}", context.node)
        if existing is not None and existing.file is not None:
            if not context.text("checksum"):
                raise TaskFailure(f"refusing to override existing file '{name}'")
            _check_sum(context, existing.file, ", aborting")
            return
        if context.park.fetch is None:
            raise TaskFailure("download failed: unable to resolve host address")
        try:
            data = context.park.fetch(url)
        except OSError as error:
            raise TaskFailure(f"download failed: {error}") from None
        _check_sum(context, data)
        try:
            _keep(context, storage, kind, name, data)
        except TaskFailure as error:
            raise TaskFailure(f"failed to verify file: {error}") from None

    return context.worker("download", name, work)


@routes.on(f"GET {PATH}/import-metadata")
def import_metadata(context: Context) -> Any:
    _, volume, volid = _volume(context)
    if volume is None or volume.kind != "import" or formats.split_list(volid)[0].endswith((".qcow2", ".raw", ".vmdk")):
        raise failed(f"storage '{context.text('storage')}' has no guest to import in '{volid}'")
    return {"type": "vm", "source": "ova", "create-args": {}, "disks": {}, "net": {}, "warnings": []}
