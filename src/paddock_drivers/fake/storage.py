"""Images and disks: preparation, information, export and import."""

import asyncio
import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake import diskfiles, specs
from paddock_drivers.fake.inventory import IMAGE_BYTES, FakeImage, FakeInventory, shown
from paddock_drivers.fake.machines import FakeDisk, FakeMachine

_CHUNK = 16 << 20
_URL = re.compile(r"(pvc|s3|nfs)://([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)/([^\0?]+)(\?[a-z0-9=&]*)?")
_PVC = "pvc"
_RELAY = ("", "auto", "relay")


class FakeStorage:
    """The calls about images and disks."""

    def __init__(self, inventory: FakeInventory) -> None:
        self._inventory = inventory

    # --- images -----------------------------------------------------------------------------------------------------------

    def prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Make an image. Nothing is downloaded: its data is its source's name, and so is its checksum's origin."""
        self._inventory.require("supports_image_import")
        specs.check_name("target_name", request.target_name)
        source = _source(request.image_json)
        known = self._inventory.images.get(request.target_name)
        path = f"/fake/images/{request.target_name}.qcow2"
        if known is not None and known.source == request.image_json:
            running = not self._inventory.tasks.status(known.task).done
            return m.ImagePrepareResponse(
                prepared_image_id=request.target_name, prepared_image_path=path, task=m.TaskRef(id=known.task) if running else None
            )
        disk = FakeDisk(self._inventory.next_id("disk"), request.target_name, IMAGE_BYTES, "thin", path, source.encode())
        image = FakeImage(request.image_json, disk)
        task = self._inventory.work(None, lambda: self._add_image(request.target_name, image))
        image.task = task.id
        return m.ImagePrepareResponse(prepared_image_id=request.target_name, prepared_image_path=path, task=task)

    def _add_image(self, name: str, image: FakeImage) -> None:
        self._inventory.images[name] = image

    # --- disks ------------------------------------------------------------------------------------------------------------

    def info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """The size of a disk, now or in a snapshot."""
        machine = self._inventory.machine(request.vm_id)
        disk = self._disk(machine, request.disk_id, request.snapshot_id)
        return m.GetDiskInfoResponse(
            disk_id=disk.id,
            format="qcow2",
            virtual_size_bytes=disk.size,
            actual_size_bytes=len(disk.data),
            path=disk.path,
            is_bootable=disk.name == "root",
            snapshots=tuple(each.id for each in machine.snapshots),
            backing_file=disk.backing,
            metadata={"name": disk.name, "type": disk.type}
            | ({"storageClass": disk.storage_class} if disk.storage_class else {})
            | ({"scsi": disk.scsi} if disk.scsi else {}),
        )

    def _disk(self, machine: FakeMachine, id: str, snapshot: str) -> FakeDisk:
        disks = machine.disks
        if snapshot:
            found = machine.snapshot(snapshot)
            if found is None:
                raise ProviderError(ErrorKind.NOT_FOUND, f"machine {machine.id} has no snapshot {shown(snapshot)}")
            disks = found.disks
        if not id:
            return disks[0]
        disk = next((each for each in disks if id in (each.id, each.name, each.path)), None)
        if disk is None:
            raise ProviderError(ErrorKind.NOT_FOUND, f"machine {machine.id} has no disk {shown(id)}")
        return disk

    async def export(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Write a disk to a staging claim. The file has its name when the task ends."""
        self._inventory.require("supports_disk_export")
        if request.compress:
            self._inventory.require("supports_export_compression")
        machine = self._inventory.machine(request.vm_id)
        disk = self._disk(machine, request.disk_id, request.snapshot_id)
        file_format = _format(request.format)
        asked = (disk.id, request.snapshot_id, request.format, request.compress)
        if (known := self._known_export(request, asked)) is not None:
            return known
        target = self.staged("destination_url", request.destination_url, request.backend_type, request.transfer_mode)
        partial = target.with_name(f".{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            diskfiles.write(partial, file_format, diskfiles.DiskFile(disk.size, disk.data))
            checksum = await _sha256(partial)
        except OSError as error:
            raise ProviderError(ErrorKind.UNAVAILABLE, "cannot write the export", why=error.strerror or str(error)) from error
        task = self._inventory.work(machine, lambda: self._exported(partial, target), lambda: partial.unlink(missing_ok=True))
        answer = m.ExportDiskResponse(
            export_id=self._inventory.next_id("export"), task=task, estimated_size_bytes=partial.stat().st_size, checksum=checksum
        )
        self._inventory.exports[request.destination_url] = (asked, answer)
        return answer

    def _exported(self, partial: Path, target: Path) -> None:
        _move(partial, target)
        self._inventory.exported.append(target.name)

    def _known_export(self, request: m.ExportDiskRequest, asked: object) -> m.ExportDiskResponse | None:
        """The answer to the same request: its task while it is under way, the result while the file is there."""
        known = self._inventory.exports.get(request.destination_url)
        if known is None or known[0] != asked:
            return None
        if self._inventory.tasks.recall(known[1].task):
            return known[1]
        target = self.staged("destination_url", request.destination_url, request.backend_type, request.transfer_mode)
        return msgspec.structs.replace(known[1], task=None) if target.exists() else None

    async def import_(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Read a disk from a staging claim. With a wrong checksum nothing is imported."""
        self._inventory.require("supports_disk_import")
        specs.check_name("target_name", request.target_name)
        file_format = _format(request.format)
        source = self.staged("source_url", request.source_url, request.backend_type, request.transfer_mode)
        asked = (request.source_url, request.format, request.expected_checksum)
        if (known := self._known_import(request.target_name, asked)) is not None:
            return known
        try:
            checksum = await _sha256(source)
            if request.verify_checksum and checksum != request.expected_checksum.lower():
                raise ProviderError(ErrorKind.INVALID_SPEC, "the disk is damaged", why=f"its SHA-256 is {checksum}, not the expected one")
            content = diskfiles.read(source, file_format)
        except FileNotFoundError:
            raise ProviderError(ErrorKind.NOT_FOUND, "there is no disk at the source's URL") from None
        except diskfiles.UnreadableDisk as error:
            raise ProviderError(ErrorKind.INVALID_SPEC, f"the disk cannot be read as {file_format}", why=str(error)) from error
        except OSError as error:
            raise ProviderError(ErrorKind.UNAVAILABLE, "cannot read the disk", why=error.strerror or str(error)) from error
        answer = self._add_disk(request.target_name, content, checksum)
        self._inventory.imports[request.target_name] = (asked, answer)
        return answer

    def _known_import(self, name: str, asked: object) -> m.ImportDiskResponse | None:
        """The answer to the same request: its task while it is under way, the disk while no machine has taken it."""
        known = self._inventory.imports.get(name)
        if known is None or known[0] != asked:
            return None
        if self._inventory.tasks.recall(known[1].task):
            return known[1]
        return msgspec.structs.replace(known[1], task=None) if known[1].path in self._inventory.disks else None

    def _add_disk(self, name: str, content: diskfiles.DiskFile, checksum: str) -> m.ImportDiskResponse:
        disk = FakeDisk(self._inventory.next_id("disk"), name, content.virtual_size, "thin", f"/fake/imported/{name}.qcow2", content.data)

        def add() -> None:
            self._inventory.disks[disk.path] = disk
            self._inventory.imported.append(name)

        task = self._inventory.work(None, add)
        return m.ImportDiskResponse(disk_id=disk.id, path=disk.path, task=task, actual_size_bytes=content.virtual_size, checksum=checksum)

    def staged(self, member: str, url: str, backend: str, mode: str) -> Path:
        """The file of a staging URL."""
        has = self._inventory.settings.backends
        if (backend or _PVC) not in has:
            what = f"this provider does not have the staging backend {shown(backend)}"
            raise ProviderError(ErrorKind.NOT_SUPPORTED, what, why=f"it has {', '.join(has)}")
        if mode not in _RELAY:
            raise ProviderError(ErrorKind.NOT_SUPPORTED, f"this provider does not have the transfer mode {shown(mode)}", why="it has relay")
        matched = _URL.fullmatch(url)
        if matched is None or matched[1] != (backend or _PVC):
            # The URL may hold credentials.
            raise specs.invalid(member, f"it does not have the form {backend or _PVC}://NAME/PATH")
        parts = matched[4].split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise specs.invalid(member, "its path has an empty part, or leads elsewhere")
        return Path(self._inventory.settings.directory, *((matched[1],) if matched[1] != _PVC else ()), matched[2], *parts)


def _format(word: str) -> str:
    if word and word not in diskfiles.FORMATS:
        raise ProviderError(ErrorKind.NOT_SUPPORTED, f"this provider does not have the format {shown(word)}", why="it has qcow2 and raw")
    return word or diskfiles.QCOW2


def _move(partial: Path, target: Path) -> None:
    try:
        partial.replace(target)
    except OSError as error:
        raise ProviderError(ErrorKind.UNAVAILABLE, "cannot write the export", why=error.strerror or str(error)) from error


async def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            await asyncio.sleep(0)
    return digest.hexdigest()


def _source(image_json: str) -> str:
    """The name of an image's source. Raises `ProviderError` for none, and for a checksum that is not of that name."""
    spec: dict[str, Any] = specs.decoded("image_json", lambda: payloads.decode_manifest(image_json))
    blocks = spec.get("source")
    blocks = {name: block for name, block in blocks.items() if isinstance(block, dict)} if isinstance(blocks, dict) else {}
    if not blocks:
        raise specs.invalid("image_json", "its source is empty")
    kind, block = next(iter(blocks.items()))
    name = next((str(block[key]) for key in ("url", "ovaURL", "image", "path", "templateName", "name") if block.get(key)), kind)
    prepare = spec.get("prepare")
    validates = not isinstance(prepare, dict) or prepare.get("validateChecksum", True)
    expected, algorithm = block.get("checksum"), block.get("checksumType") or "sha256"
    if expected and validates and algorithm in ("md5", "sha1", "sha256", "sha512"):
        found = hashlib.new(algorithm, name.encode(), usedforsecurity=False).hexdigest()
        if found != str(expected).lower():
            raise ProviderError(
                ErrorKind.INVALID_SPEC, "the image is damaged", why=f"its {algorithm} checksum is {found}, not the expected one"
            )
    return name
