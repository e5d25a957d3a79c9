"""The layers of volumes: found on a claim or the host, pulled from a registry, made as a seed, or the reason why there is none yet.

A pull that failed is reported as ErrImagePull at first, and as ImagePullBackOff until another attempt succeeds or goes on for a
while.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from paddock.base import quantity, reasons
from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError
from paddock.base.images.errors import ImageError
from paddock.base.images.library import Image
from paddock.base.images.sources import RegistryImage
from paddock.engine.engine import Engine
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage.errors import VolumeBroken
from paddock.engine.storage.volume import StoredVolume
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, is_bound
from paddock.kubernetes.core.secret import decoded
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubevirt.controllers.virtualmachineinstance.reader import InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.seeder import Seeder, replace_file
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES, key_of
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.volumes import ContainerDisk, HostDisk, Volume
from paddock.kubevirt.plan.instance import prerequisites, volumemoves
from paddock.kubevirt.plan.instance.brief import BY_CLAIM, claim_places
from paddock.kubevirt.plan.instance.volumes import claim_of
from paddock.kubevirt.plan.storage import lostvolumes
from paddock.kubevirt.plan.storage.hostdirectories import HostImage
from paddock.kubevirt.translate.firmware import IGNITION_DATA

T = TypeVar("T")
# Volumes that are no disks: their content is read, or written, elsewhere.
_NO_DISK = ("memoryDump", "downwardMetrics", "containerPath")
# The place of a kernel among the pulls of a machine: no name that a volume can have.
_KERNEL = "kernel boot"
_PULL_AGAIN = Backoff(first=10.0, longest=300.0)
# An image that is in the library is there within this time, and the machine starts without another reconcile.
_PULL_SECONDS = 0.2
# A failure is reported as an error for so long, and then as a back-off.
_ERROR_SECONDS = 1.0
# Another attempt that has not failed within this time is reported as a pull; until then its machine shows the last failure.
_ATTEMPT_SECONDS = 10.0


class ImagePull:
    """One pull for one machine, with its failures so far."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._failures = 0
        self._failed_at = 0.0
        self._error: ImageError | None = None
        self._begun_at = 0.0
        # 0.0: the task runs, or its failure was not counted yet
        self._again_at = 0.0

    @property
    def due(self) -> bool:
        """Return true if it failed and its back-off is over."""
        return self._task.done() and bool(self._again_at) and asyncio.get_running_loop().time() >= self._again_at

    def restart(self, task: asyncio.Task[Any]) -> None:
        """Go on with another attempt."""
        self._task, self._again_at = task, 0.0
        self._begun_at = asyncio.get_running_loop().time()

    def cancel(self) -> None:
        self._task.cancel()

    async def result(self, what: str, chance: random.Random) -> Any:
        """The image; raises `MissingPrerequisite` while it is pulled, and when it failed."""
        await asyncio.wait((self._task,), timeout=_PULL_SECONDS)
        now = asyncio.get_running_loop().time()
        if not self._task.done():
            if self._error is not None and now < self._begun_at + _ATTEMPT_SECONDS:
                raise _backing_off(what, self._error, self._begun_at + _ATTEMPT_SECONDS - now)
            raise prerequisites.volumes("Pulling", f"{what} is being pulled")
        error = self._task.exception()
        if error is None:
            return self._task.result()
        if not isinstance(error, ImageError):
            raise error
        if not self._again_at:
            self._failures += 1
            self._failed_at, self._error = now, error
            self._again_at = now + _PULL_AGAIN.pause(self._failures, chance)
        if now < self._failed_at + _ERROR_SECONDS:
            remaining = self._failed_at + _ERROR_SECONDS - now
            raise prerequisites.failed("ErrImagePull", f"failed to pull image {_cause(what, error)}", remaining, code=error.reason_code)
        raise _backing_off(what, error, self._again_at - now)


def _cause(what: str, error: ImageError) -> str:
    """The image and why it was not pulled. The registry's errors name the image, those of names and settings do not."""
    return f"{what}: {error.without_pull(what)}"


def _backing_off(what: str, error: ImageError, again: float) -> prerequisites.MissingPrerequisite:
    return prerequisites.failed("ImagePullBackOff", f"Back-off pulling {_cause(what, error)}", again, code=error.reason_code)


class ImagePulls:
    """Pulls by machine and volume. Each is a task, so that no reconcile waits for one and a deleted machine goes at once.

    `request` asks for a reconcile of a machine.
    """

    def __init__(self, chance: random.Random, request: Callable[[str], None]) -> None:
        self._chance = chance
        self._request = request
        self._pulls: dict[tuple[str, str], ImagePull] = {}

    async def pulled(self, machine: str, name: str, what: str, fetch: Callable[[], Awaitable[T]]) -> T:
        """The image for a volume; raises `MissingPrerequisite` while it is pulled, and when it failed."""
        pull = self._pulls.get((machine, name))
        if pull is None:
            pull = self._pulls[machine, name] = ImagePull(self._start(machine, fetch))
        elif pull.due:
            pull.restart(self._start(machine, fetch))
        return cast(T, await pull.result(what, self._chance))

    def forget(self, machine: str) -> None:
        """Cancel the pulls of a machine that is gone."""
        for place in [place for place in self._pulls if place[0] == machine]:
            self._pulls.pop(place).cancel()

    def _start(self, machine: str, fetch: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(fetch())

        def done(ended: asyncio.Task[T]) -> None:
            if not ended.cancelled():
                # Reading it keeps asyncio from logging a failure that nobody waits for any more.
                ended.exception()
                self._request(machine)

        task.add_done_callback(done)
        return task


class ClaimUsers:
    """The machines that use claims."""

    def __init__(self, instances: Informer, engine: Engine) -> None:
        self._instances = instances
        self._engine = engine
        instances.cache.index(BY_CLAIM, lambda seen: claim_places(seen.key.namespace, seen.raw))

    def of(self, claim: Key) -> str:
        """The name of a machine that lives, or is suspended, and has a disk on the claim; empty if there is none."""
        for seen in self._instances.cache.by(BY_CLAIM, str(claim)):
            if not self._engine.machines.holds_disks(seen.meta.uid):
                continue
            instance = seen.read(INSTANCES)
            volumes = (each for each in instance.spec.volumes or () if each.ephemeral is None)
            # A disk that moves to another claim is on its old one until it changes over.
            moved = (each.sourcePVCInfo.claimName for each in volumemoves.of(instance) if each.sourcePVCInfo is not None)
            if claim.name in (*(claim_of(each) for each in volumes), *moved):
                return seen.key.name
        return ""


class DiskLayers:
    """Finds and makes the layers of volumes."""

    def __init__(self, engine: Engine, objects: InstanceReferences, seeder: Seeder, users: ClaimUsers, pulls: ImagePulls) -> None:
        self._images = engine.images
        self._volumes = engine.volumes
        self._host_paths = engine.settings.host_paths
        self._objects = objects
        self._seeder = seeder
        self._users = users
        self._pulls = pulls
        # claims with one writer, by UID, and the machine that is being started with each
        self._starting: dict[str, str] = {}

    async def layer(self, instance: VirtualMachineInstance, volume: Volume, image: HostImage | None = None) -> DiskLayer | None:
        """The layer of a volume, `image` being its file on the host; None for one that is no disk. Raises `MissingPrerequisite`."""
        if any(getattr(volume, name) is not None for name in _NO_DISK):
            return None
        if volume.containerDisk is not None:
            return await self._container(instance, volume.name, volume.containerDisk)
        if image is not None:
            self._bound(instance, volume)
            layer = await self._image(volume.name, image)
            if volume.ephemeral is None:
                return layer
            return await self._volumes.overlay(self._scratch(instance, volume.name), layer, layer.path.stat().st_size)
        if volume.ephemeral is not None:
            below = self._claim(instance, volume)
            return await self._volumes.overlay(self._scratch(instance, volume.name), below.layer, below.size)
        if claim_of(volume):
            return await self._shareable_layer(instance, volume, self._claim(instance, volume))
        if volume.emptyDisk is not None:
            size = quantity.whole(volume.emptyDisk.capacity) // (1 << 20) * (1 << 20)
            return await self._volumes.blank(self._scratch(instance, volume.name), max(size, 1 << 20))
        if volume.hostDisk is not None:
            return await self._host(volume.name, volume.hostDisk)
        return await self._seeder.layer(instance, volume, self._scratch(instance, volume.name))

    async def kernel(self, instance: VirtualMachineInstance) -> dict[str, Path]:
        """The files of a kernel that is booted directly: `kernel` and `initrd`."""
        firmware = instance.spec.domain.firmware
        boot = firmware.kernelBoot if firmware is not None else None
        if boot is None or boot.container is None:
            return {}
        given = boot.container
        source = self._registry(instance, given.image, given.imagePullSecret, given.imagePullPolicy)
        wanted = {"kernel": given.kernelPath, "initrd": given.initrdPath}
        paths = {name: path for name, path in wanted.items() if path}

        async def fetch() -> dict[str, Path]:
            found = await self._images.fetch_files(source, tuple(paths.values()), owner=instance.metadata.namespace or "")
            return {name: image.path for name, image in zip(paths, found, strict=True)}

        return await self._pulls.pulled(instance.metadata.uid or "", _KERNEL, given.image, fetch)

    async def directory(self, instance: VirtualMachineInstance, volume: Volume) -> Path:
        """The directory of a volume that the guest mounts."""
        files = await self._seeder.files(instance, volume)
        path = self._scratch(instance, volume.name).with_suffix(".d")
        if files is not None:
            _write_directory(path, files)
            return path
        if not claim_of(volume):
            raise prerequisites.failed("FailedMount", f"volume {volume.name} has no files that a guest could mount")
        held = self._claim(instance, volume)
        if held.files is None:
            why = "the guest can have it as a disk; a claim that was filled from an archive holds files"
            raise prerequisites.failed("FailedMount", f"volume {volume.name}: claim {claim_of(volume)} holds a disk and no files: {why}")
        return held.files

    async def table(self, instance: VirtualMachineInstance, volume: Volume) -> Path:
        """The one file of a Secret with an ACPI table."""
        files = await self._seeder.files(instance, volume) or {}
        if len(files) != 1:
            raise prerequisites.failed(
                "FailedMount", f"volume {volume.name}: an ACPI table is the one value of its Secret, and it has {len(files)}"
            )
        path = self._scratch(instance, volume.name).with_suffix(".acpi")
        path.write_bytes(next(iter(files.values())))
        return path

    def ignition(self, instance: VirtualMachineInstance) -> Path | None:
        """The file with the data of its annotation that the guest's Ignition reads."""
        data = (instance.metadata.annotations or {}).get(IGNITION_DATA)
        if data is None:
            return None
        path = self._scratch(instance, "ignition").with_suffix(".ign")
        path.write_text(data, "utf-8")
        return path

    def started(self, machine: str) -> None:
        """Release the claims that the start of a machine reserved: it runs, or it could not be started."""
        self._starting = {claim: uid for claim, uid in self._starting.items() if uid != machine}

    def forget(self, machine: str) -> None:
        """Drop what a machine that is gone reserved and waits for."""
        self.started(machine)
        self._pulls.forget(machine)

    # --- container disks --------------------------------------------------------------------------------------------------

    async def _container(self, instance: VirtualMachineInstance, name: str, disk: ContainerDisk) -> DiskLayer:
        source = self._registry(instance, disk.image, disk.imagePullSecret, disk.imagePullPolicy, disk.path or "")
        namespace = instance.metadata.namespace or ""

        async def fetch() -> Image:
            return await self._images.fetch(source, owner=namespace)

        image = await self._pulls.pulled(instance.metadata.uid or "", name, disk.image, fetch)
        below = DiskLayer(image.path, image.format)
        return await self._volumes.overlay(self._scratch(instance, name), below, image.virtual_size)

    def _registry(
        self, instance: VirtualMachineInstance, image: str, secret: str | None, policy: str | None, path: str = ""
    ) -> RegistryImage:
        configs: tuple[str, ...] = ()
        if secret:
            found = self._objects.secret(key_of(instance), secret)
            if found is None:
                raise prerequisites.failed(
                    "ErrImagePull", f"the pull secret {secret} of {image} does not exist", code=reasons.SECRET_MISSING
                )
            values = decoded(found)
            configs = tuple(values[key].decode("utf-8", "replace") for key in (".dockerconfigjson", ".dockercfg") if key in values)
        return RegistryImage(
            image,
            path=path,
            architecture=instance.spec.architecture or "",
            policy=policy or "",  # type: ignore[arg-type]  # the schema allows nothing else
            docker_configs=configs,
        )

    # --- claims -----------------------------------------------------------------------------------------------------------

    def _claim(self, instance: VirtualMachineInstance, volume: Volume) -> StoredVolume:
        claim = self._bound(instance, volume)
        name = claim.metadata.name
        try:
            found = self._volumes.get(claim.metadata.uid or "")
        except VolumeBroken as error:
            # The claim says so in a moment.
            raise prerequisites.failed("FailedPvcNotFound", f"PVC {name}: {error}", again=5.0, code=error.reason_code) from error
        if found is None:
            raise prerequisites.volumes("VolumeNotReady", f"the volume of PVC {name} is not there yet", again=0.25)
        return found

    def _bound(self, instance: VirtualMachineInstance, volume: Volume) -> PersistentVolumeClaim:
        """The claim of a volume, which no other machine writes."""
        key, name = key_of(instance), claim_of(volume)
        claim = self._objects.claim(key, name)
        if volume.dataVolume is not None:
            self._check_filled(key, volume.dataVolume.name, claim)
        if claim is None:
            raise prerequisites.failed("FailedPvcNotFound", f"PVC {key.namespace}/{name} does not exist, waiting for it to appear")
        if lostvolumes.is_lost(claim):
            code, why = lostvolumes.loss_of(claim)
            raise prerequisites.failed("FailedPvcNotFound", f"PVC {name} is lost: {why}", code=code)
        if not is_bound(claim):
            raise prerequisites.volumes("PVCNotBound", f"PVC {name} is not bound yet")
        if not _shared(claim) and not _shareable(instance, volume.name):
            self._reserve(instance, claim)
        return claim

    def _reserve(self, instance: VirtualMachineInstance, claim: PersistentVolumeClaim) -> None:
        """Check that no other machine writes the claim. Of two that start at the same moment the second waits for the first."""
        uid, name = instance.metadata.uid or "", claim.metadata.name
        other = self._users.of(Key(instance.metadata.namespace or "", name))
        if other not in ("", instance.metadata.name):
            raise prerequisites.failed(
                "PVCInUse",
                f"PVC {name} is used by the running machine {other}, and allows one writer (its access mode is not ReadWriteMany)",
            )
        if self._starting.setdefault(claim.metadata.uid or "", uid) != uid:
            raise prerequisites.volumes("PVCInUse", f"PVC {name} is wanted by a machine that is being started", again=0.25)

    async def _shareable_layer(self, instance: VirtualMachineInstance, volume: Volume, held: StoredVolume) -> DiskLayer:
        """The layer of a volume; if several machines write it at the same time, it must be one plain file."""
        if held.layer.format == "raw" or not _shareable(instance, volume.name):
            return held.layer
        try:
            return (await self._volumes.flatten(held.id)).layer
        except PaddockError as error:
            raise prerequisites.failed("VolumeNotShareable", f"volume {volume.name} cannot be shared: {error}", again=10.0) from error

    def _check_filled(self, key: Key, name: str, claim: PersistentVolumeClaim | None) -> None:
        """Check that a DataVolume has its data. One that is gone while its claim is there was filled once."""
        volume = self._objects.data_volume(key, name)
        if volume is None:
            if claim is None:
                raise prerequisites.failed("FailedPvcNotFound", f"neither DataVolume nor PVC {key.namespace}/{name} exists")
            return
        phase = volume.status.phase if volume.status is not None else ""
        if phase != "Succeeded":
            raise prerequisites.volumes("DataVolumeNotReady", f"DataVolume {name} is not ready: {phase or 'Pending'}")

    # --- files of the host ------------------------------------------------------------------------------------------------

    async def _host(self, name: str, disk: HostDisk) -> DiskLayer:
        resolved = self._allowed(name, disk.path)
        if disk.type == "DiskOrCreate" and disk.capacity is not None:
            return await self._volumes.blank(resolved, quantity.whole(disk.capacity))
        if not resolved.is_file():
            raise prerequisites.failed("HostDiskNotFound", f"volume {name}: there is no file {disk.path}", again=10.0)
        return DiskLayer(resolved, "raw")

    async def _image(self, name: str, image: HostImage) -> DiskLayer:
        """The disk in a directory of the host that a claim stands for."""
        resolved = self._allowed(name, image.path)
        if image.makes_directory:
            _make_directory(resolved.parent)
        elif not resolved.parent.is_dir():
            raise prerequisites.failed("HostDiskNotFound", f"volume {name}: there is no directory {resolved.parent}", again=10.0)
        return await self._volumes.blank(resolved, image.size)

    def _allowed(self, name: str, path: str) -> Path:
        """The path of a file of the host, free of links. Raises `MissingPrerequisite`."""
        resolved = Path(path).resolve()
        if not any(resolved.is_relative_to(each) for each in self._host_paths):
            raise prerequisites.failed(
                "HostDiskNotAllowed", f"volume {name}: {path} is in no directory that hostDisk volumes are allowed in"
            )
        return resolved

    def _scratch(self, instance: VirtualMachineInstance, name: str) -> Path:
        return self._volumes.scratch(instance.metadata.uid or "", name)


def _shared(claim: PersistentVolumeClaim) -> bool:
    modes = claim.spec.accessModes if claim.spec is not None else None
    return any(each in ("ReadWriteMany", "ReadOnlyMany") for each in modes or ())


def _shareable(instance: VirtualMachineInstance, name: str) -> bool:
    return any(each.name == name and each.shareable for each in instance.spec.domain.devices.disks or ())


def _make_directory(directory: Path) -> None:
    """Make a directory as a kubelet does: guests run as users of their own, and pass through it whatever the server's umask is."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)


def _write_directory(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory hold these files and no others."""
    directory.mkdir(mode=0o755, exist_ok=True)
    for left in directory.iterdir():
        if left.name not in files:
            left.unlink()
    for name, data in files.items():
        replace_file(directory / name, data, mode=0o644)
