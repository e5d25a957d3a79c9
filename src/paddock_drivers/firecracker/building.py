"""Making a machine's files. Each step may be repeated: what is there stays, and a file has its name when it is complete."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from paddock.base import reasons
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.firecracker import files, machinespecs, runs
from paddock_drivers.firecracker.configuration import INITRD, KERNEL, SEED
from paddock_drivers.firecracker.records import (
    READY,
    ROOT_DISK,
    ImageOrigin,
    KeptImage,
    MicroVmDisk,
    MicroVmFolder,
    MicroVmRecord,
    MicroVmSpec,
)
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.kit import cloudinit, foreign, refusals
from paddock_drivers.kit.cloudinit import GuestDocuments


class KernelChoice(msgspec.Struct, frozen=True):
    """The kernel of a machine, and its initial file system, if it has one."""

    kernel: Path
    initrd: Path | None = None


class MicroVmBuilder:
    """Makes the files of machines."""

    def __init__(self, store: MicroVmStore, settings: FirecrackerSettings) -> None:
        self._store = store
        self._settings = settings

    # --- finding ----------------------------------------------------------------------------------------------------------

    def resolved(self, origin: ImageOrigin) -> ImageOrigin:
        """Return where an image really is; raises NotFound."""
        if origin.file:
            if not Path(origin.file).is_file():
                raise refusals.not_found("the image's file does not exist", reason=reasons.TEMPLATE_MISSING)
            return origin
        if (self._store.images / origin.image / "disk.raw").is_file():
            return origin
        if (self._store.disks / f"{origin.image}.json").is_file():
            return msgspec.structs.replace(origin, image="", imported=origin.image)
        raise refusals.not_found(
            f"there is no image {origin.image[:64]}",
            fix="prepare it, or put it into the provider's directory",
            reason=reasons.TEMPLATE_MISSING,
        )

    def kernel(self, origin: ImageOrigin) -> KernelChoice:
        """Return the kernel of a machine; raises NotFound."""
        own = self._store.images / origin.image if origin.image else None
        initrd = self._file(origin.initrd) if origin.initrd else None
        if origin.kernel:
            return KernelChoice(self._file(origin.kernel), initrd)
        if own is not None and (own / KERNEL).is_file():
            beside = own / INITRD
            return KernelChoice(own / KERNEL, initrd or (beside if beside.is_file() else None))
        if not self._settings.kernel:
            fix = "set extraConfig firecracker.kernel in the VMClass, or PROVIDER_FIRECRACKER_KERNEL"
            raise refusals.not_found("the machine has no kernel, which Firecracker starts itself", fix=fix)
        return KernelChoice(self._file(self._settings.kernel, trusted=True), initrd)

    def _file(self, name: str, *, trusted: bool = False) -> Path:
        if name.startswith("/"):
            allowed = trusted or any(machinespecs.is_below(name, str(each)) for each in self._settings.files)
            if not allowed:
                raise refusals.not_supported("the kernel's path is out of reach", fix="put it into the directory kernels of the provider")
            path = Path(name)
        elif "/" in name or name.startswith("."):
            raise refusals.invalid("the kernel's name is none")
        else:
            path = self._store.kernels / name
        if not path.is_file():
            raise refusals.not_found(
                f"there is no kernel {name[:64]}", "put it into the directory kernels of the provider", reason=reasons.TEMPLATE_MISSING
            )
        return path

    # --- making -----------------------------------------------------------------------------------------------------------

    async def build(self, folder: MicroVmFolder, record: MicroVmRecord) -> MicroVmRecord:
        """Make the files of a new machine, and return its record, complete."""
        if record.origin.file and not folder.disk(record.spec.disks[0]).exists():
            await self._unpack(folder, record)
        return await asyncio.to_thread(self._build, folder, record)

    async def _unpack(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Take over a disk of the administrator's, whatever its format."""
        target = folder.disk(record.spec.disks[0])
        with files.failures("make a machine's disk"):
            target.parent.mkdir(mode=0o700, exist_ok=True)
            part = target.with_name(".unpacked.part")
            part.unlink(missing_ok=True)
        await foreign.unpack(Path(record.origin.file), record.origin.format, part)
        with files.failures("make a machine's disk"):
            os.rename(part, target)

    def _build(self, folder: MicroVmFolder, record: MicroVmRecord) -> MicroVmRecord:
        spec, origin = record.spec, record.origin
        choice = self.kernel(origin)
        with files.failures("make a machine"):
            files.link(choice.kernel, folder.path / KERNEL)
            if choice.initrd is not None:
                files.link(choice.initrd, folder.path / INITRD)
            root = self._root_disk(folder, spec.disks[0], origin)
            disks = (root, *(self.disk(folder, each) for each in spec.disks[1:]))
        spec = msgspec.structs.replace(spec, disks=disks, initrd=choice.initrd is not None)
        return self.finish(folder, msgspec.structs.replace(record, spec=spec))

    def finish(self, folder: MicroVmFolder, record: MicroVmRecord) -> MicroVmRecord:
        """Write the disk that the guest reads first, give the VMM's user its files, and call the machine complete."""
        self.write_seed(folder, record)
        runs.give(record.user, *(folder.disk(each) for each in record.spec.disks))
        record = msgspec.structs.replace(record, state=READY)
        folder.write(record)
        return record

    def _root_disk(self, folder: MicroVmFolder, disk: MicroVmDisk, origin: ImageOrigin) -> MicroVmDisk:
        path = folder.disk(disk)
        if not path.exists():
            if origin.imported:
                self._take(origin.imported, path)
            else:
                files.copy(self._store.images / origin.image / "disk.raw", path)
        files.grow(path, disk.size)
        return MicroVmDisk(ROOT_DISK, path.stat().st_size, disk.thick, origin.imported)

    def disk(self, folder: MicroVmFolder, disk: MicroVmDisk) -> MicroVmDisk:
        """Make a data disk, or take the imported one."""
        path = folder.disk(disk)
        if path.exists():
            files.grow(path, disk.size)
        elif disk.imported:
            self._take(disk.imported, path)
            files.grow(path, disk.size)
        else:
            files.create_disk(path, disk.size, thick=disk.thick)
        return msgspec.structs.replace(disk, size=path.stat().st_size)

    def _take(self, name: str, path: Path) -> None:
        source = self._store.disks / f"{name}.raw"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            files.move(source, path)
        except FileNotFoundError:
            raise refusals.not_found(
                f"there is no imported disk {name[:64]}", fix="import it again", reason=reasons.VOLUME_MISSING
            ) from None
        (self._store.disks / f"{name}.json").unlink(missing_ok=True)

    def give_back(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Put imported disks back where a machine that could not be made took them from."""
        root = msgspec.structs.replace(record.spec.disks[0], imported=record.origin.imported)
        for disk in (root, *record.spec.disks[1:]):
            path = folder.disk(disk)
            if disk.imported and path.exists():
                kept = KeptImage(name=disk.imported, size=path.stat().st_size)
                os.chown(path, os.geteuid(), os.getegid())
                files.move(path, self._store.disks / f"{disk.imported}.raw")
                files.write(self._store.disks / f"{disk.imported}.json", kept)

    def write_seed(self, folder: MicroVmFolder, record: MicroVmRecord) -> None:
        """Write the NoCloud disk: it has the guest's documents, and a name for a guest that has none."""
        files.put(folder.path / SEED, cloudinit.image(documents(folder, record)))
        if record.user:
            os.chown(folder.path / SEED, os.geteuid(), record.user)
            os.chmod(folder.path / SEED, 0o440)

    def replaced(self, folder: MicroVmFolder, spec: MicroVmSpec, copy_of: Callable[[MicroVmDisk], Path]) -> None:
        """Put copies in the place of a machine's disks: all are complete before the first one is replaced."""
        waiting = [(copy_of(each), folder.disk(each)) for each in spec.disks]
        for source, path in waiting:
            files.copy(source, path.with_name(f"{path.name}.new"))
        for _, path in waiting:
            with files.failures("replace a disk"):
                os.rename(path.with_name(f"{path.name}.new"), path)


def documents(folder: MicroVmFolder, record: MicroVmRecord) -> GuestDocuments:
    """Return the documents of the disk that the guest reads."""
    guest = folder.guest()
    given = {each.name: each for each in guest.networks}
    cards = tuple(
        msgspec.structs.replace(given.get(each.name, NetworkPayload(name=each.name)), mac_address=each.mac) for each in record.spec.nics
    )
    return GuestDocuments(
        instance=record.token,
        hostname=guest.hostname or record.name,
        networks=tuple(msgspec.structs.replace(each, name=nic.name) for each, nic in zip(cards, record.spec.nics, strict=True)),
        user_data=guest.user_data,
        meta_data=guest.meta_data,
    )
