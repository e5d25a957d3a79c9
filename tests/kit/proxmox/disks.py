"""Drives in parameters: what is wrong with them, who may use them, and how their volumes come to be."""

from collections.abc import Mapping

from tests.kit.proxmox import cloudinit, drives, formats
from tests.kit.proxmox.content import Content, UnreadableImage
from tests.kit.proxmox.context import Context
from tests.kit.proxmox.drives import Drive
from tests.kit.proxmox.errors import ApiError, TaskFailure, failed, parameters
from tests.kit.proxmox.formats import FormatError
from tests.kit.proxmox.inventory import GIB, Machine, Volume

EFI_SIZE, TPM_SIZE = 540672, 4 << 20


def parsed(values: Mapping[str, str]) -> dict[str, Drive]:
    """Return the drives of parameters; refuse what cannot be one."""
    found = {}
    for key in sorted(values):
        if not formats.is_drive(key):
            continue
        try:
            drive = drives.parse(key, values[key], allocate=True)
        except FormatError:
            raise parameters({key: "unable to parse drive options"}) from None
        if "import-from" in drive.options and (drive.new is None or drive.new[1] != 0):
            raise parameters({key: "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>"})
        if drive.storage and drive.new is None and ":iso/" in drive.file and not drive.is_cdrom:
            raise parameters({key: "explicit 'media=cdrom' is required for iso images"})
        found[key] = drive
    return found


def check_access(context: Context, vmid: int, wanted: Mapping[str, Drive], default: str = "") -> None:
    """Refuse the caller who may not use the storages and volumes of drives."""
    for key, drive in wanted.items():
        _check_file(context, vmid, drive, default)
        source = drive.options.get("import-from", "")
        if source:
            _check_source(context, vmid, key, source)


def _check_file(context: Context, vmid: int, drive: Drive, default: str) -> None:
    if drive.file == "none" or drive.is_cloudinit or drive.file == "cloudinit":
        return
    if drive.is_cdrom and drive.file == "cdrom":
        context.demand("/", "Sys.Console")
    elif not drive.is_cdrom and drive.new is not None:
        name = drive.new[0] or default
        if not name:
            raise failed("no storage ID specified (and no default storage)")
        context.demand(f"/storage/{name}", "Datastore.AllocateSpace")
        if "images" not in context.cluster.storage(name).content:
            raise parameters({"storage": f"storage '{name}' does not support vm images"})
    else:
        check_volume(context, vmid, drive.file)


def _check_source(context: Context, vmid: int, key: str, source: str) -> None:
    if source.startswith("/"):
        if not context.is_root:
            raise failed("Only root can pass arbitrary filesystem paths.")
        return
    context.cluster.storage(source.partition(":")[0])
    volume = context.cluster.volume(source, context.node)
    kind = volume.kind if volume else "import" if ":import/" in source else "iso" if ":iso/" in source else "images"
    if kind not in ("images", "import"):
        raise parameters({key: f"{source} has wrong type '{kind}' - needs to be 'images' or 'import'"})
    if volume is not None and volume.vmid:
        context.demand(f"/vms/{volume.vmid}", "VM.Clone")
    else:
        check_volume(context, vmid, source)


def check_volume(context: Context, vmid: int, volid: str) -> None:
    """Refuse the caller who may not read a volume."""
    if volid.startswith("/"):
        if not context.is_root:
            raise failed("Only root can pass arbitrary filesystem paths.")
        return
    name = volid.partition(":")[0]
    context.cluster.storage(name)
    if context.may(f"/storage/{name}", "Datastore.Allocate"):
        return
    volume = context.cluster.volume(volid, context.node)
    kind = volume.kind if volume else ""
    if kind in ("iso", "vztmpl", "import"):
        context.demand(f"/storage/{name}", "Datastore.AllocateSpace", "Datastore.Audit", any_of=True)
    elif volume is not None and volume.vmid == vmid:
        return
    elif volume is not None and volume.vmid:
        context.demand(f"/storage/{name}", "Datastore.Audit")
        context.demand(f"/vms/{volume.vmid}", "VM.Config.Disk")
    else:
        raise failed(f"missing privileges to access {volid}")


def create(context: Context, machine: Machine, wanted: Mapping[str, Drive], default: str = "") -> dict[str, str]:
    """Make or find the volumes of drives; return their strings. If one fails, those that were made are removed."""
    made: list[str] = []
    found: dict[str, str] = {}
    try:
        for key, drive in wanted.items():
            found[key] = str(_create_one(context, machine, drive, default, made, found))
    except (TaskFailure, ApiError):
        for volid in made:
            context.park.volumes.free(volid, machine.node)
        raise
    return found


def _create_one(context: Context, machine: Machine, drive: Drive, default: str, made: list[str], others: Mapping[str, str]) -> Drive:
    volumes = context.park.volumes
    if drive.file in ("none", "cdrom"):
        return drive
    if drive.file == "cloudinit" or drive.file.endswith(":cloudinit"):
        return _create_cloudinit(context, machine, drive, default, made, others)
    if drive.new is None:
        return _existing(context, machine, drive)
    name, gigabytes = drive.new[0] or default, drive.new[1]
    content = Content(int(gigabytes * GIB))
    if source := drive.options.get("import-from"):
        content = _imported(context, machine, source)
    elif drive.key == "efidisk0":
        content = Content(EFI_SIZE)
    elif drive.key == "tpmstate0":
        content = Content(TPM_SIZE)
    elif content.size < 1024:
        raise TaskFailure(f"unable to create image: '{drive.file}' has no size")
    context.cluster.activate(name, machine.node)
    volume = volumes.copy(content, (name, machine.node), machine.vmid, drive.options.get("format", ""))
    if not source and drive.options.get("format", volume.format) != volume.format:
        volumes.free(volume.volid, machine.node)
        raise TaskFailure(f"unsupported format '{drive.options['format']}' for storage type {context.cluster.storages[name].kind}")
    made.append(volume.volid)
    if machine.is_template:
        volume = volumes.to_base(volume, machine.node)
        made[-1] = volume.volid
    return drive.of(volume.volid, content.size)


def _imported(context: Context, machine: Machine, source: str) -> Content:
    if source.startswith("/"):
        raise TaskFailure(f"cannot import from '{source}' - the simulator has no files outside of storages")
    volume = context.cluster.volume(source, machine.node)
    if volume is None:
        raise TaskFailure(f"cannot import from '{source}' - volume '{source}' does not exist")
    if volume.file is not None:
        try:
            return Content.of_file(volume.file, volume.format)
        except UnreadableImage as error:
            raise TaskFailure(f"cannot import from '{source}' - {error}") from None
    owner = context.cluster.machines.get(volume.vmid)
    if owner is not None and owner.node != machine.node:
        raise TaskFailure(f"cannot import from '{source}' - owner VM {volume.vmid} not on local node")
    return volume.content


def _create_cloudinit(context: Context, machine: Machine, drive: Drive, default: str, made: list[str], others: Mapping[str, str]) -> Drive:
    name = drive.storage or default
    if not name:
        raise failed("no storage ID specified (and no default storage)")
    attached = {**machine.conf, **machine.pending, **others}
    taken = next(
        (each.key for each in drives.drives(attached) if each.is_cloudinit and each.key != drive.key and each.file != "cloudinit"), ""
    )
    if taken and not attached[taken].split(",")[0].endswith(":cloudinit"):
        raise failed(f"{drive.key} - cloud-init drive is already attached at '{taken}'")
    storage = context.cluster.activate(name, machine.node)
    kind = drive.options.get("format") or ("qcow2" if storage.is_file_based else "raw")
    suffix = f".{kind}" if storage.is_file_based else ""
    volume = context.park.volumes.allocate(
        storage, machine.node, machine.vmid, Content(cloudinit.SIZE), kind, f"vm-{machine.vmid}-cloudinit{suffix}"
    )
    made.append(volume.volid)
    return drive.of(volume.volid, media="cdrom")


def _existing(context: Context, machine: Machine, drive: Drive) -> Drive:
    if drive.file.startswith("/"):
        return drive
    volume = context.park.volumes.get(drive.file, machine.node)
    if volume.kind not in ("images", "iso"):
        raise failed(f"cannot use volume {drive.file} - content type needs to be 'images' or 'iso'")
    return drive.of(drive.file, volume.size)


def owned(context: Context, machine: Machine, volid: str) -> Volume | None:
    """Return a volume that belongs to the machine."""
    volume = context.cluster.volume(volid, machine.node)
    return volume if volume is not None and volume.vmid == machine.vmid else None


def add_unused(context: Context, machine: Machine, volid: str) -> None:
    """Keep a volume that the machine no longer uses as unusedN; a cloud-init drive is removed."""
    volume = owned(context, machine, volid)
    if volume is None:
        return
    if "cloudinit" in volid:
        context.park.volumes.free(volid, machine.node)
        return
    used = {each.file for conf in (machine.conf, *machine.snapshots.values()) for each in (*drives.drives(conf), *drives.unused(conf))}
    if volid in used:
        return
    key = next((f"unused{number}" for number in range(256) if f"unused{number}" not in machine.conf), "")
    if not key:
        raise failed("Too many unused volumes - please delete them first.")
    machine.conf[key] = volid
