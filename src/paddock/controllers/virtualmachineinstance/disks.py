"""Where the data of each volume is: a layer for the engine, made where it has to be made, or the reason why it is not there yet."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from paddock.base import quantity
from paddock.base.errors import PaddockError
from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance import prerequisites
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.controllers.virtualmachineinstance.pulls import Pulls
from paddock.controllers.virtualmachineinstance.seeder import Seeder
from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.core.secret import decoded
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.volumes import ContainerDisk, HostDisk, Volume
from paddock.engine.images.library import Image, ImageLibrary
from paddock.engine.images.sources import RegistryImage
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage.volume import StoredVolume as VolumeOnHost
from paddock.engine.storage.volumes import Volumes
from paddock.plan.instance.volumes import claim_of

# Volumes that are no disks: their content is read, or written, elsewhere.
_NO_DISK = ("memoryDump", "downwardMetrics", "containerPath")


class PendingPulls(NamedTuple):
    """What is being pulled: disks, and the files of kernels."""

    disks: Pulls[Image]
    kernels: Pulls[dict[str, Path]]

    def forget(self, machine: str) -> None:
        """The machine is gone."""
        self.disks.forget(machine)
        self.kernels.forget(machine)


class DiskLayers:
    """Finds and makes the layers of volumes."""

    def __init__(self, images: ImageLibrary, volumes: Volumes, lookups: Lookups, seeder: Seeder, pulls: PendingPulls) -> None:
        self._images = images
        self._volumes = volumes
        self._lookups = lookups
        self._seeder = seeder
        self._pulls = pulls
        # claims in use by machines that live, so that two of them never write the same
        self.users: Callable[[Key], str] = lambda claim: ""
        # claims with one writer, by UID, and the machine that is just being started with each
        self._beginning: dict[str, str] = {}
        self.allowed_host_paths: tuple[Path, ...] = ()

    async def layer(self, instance: VirtualMachineInstance, volume: Volume) -> DiskLayer | None:
        """The layer of a volume; None for one that is no disk. Raises `NotYet`."""
        if any(getattr(volume, name) is not None for name in _NO_DISK):
            return None
        if volume.containerDisk is not None:
            return await self._container(instance, volume.name, volume.containerDisk)
        if volume.ephemeral is not None:
            below = self._claimed(instance, volume)
            return await self._volumes.overlay(self._scratch(instance, volume.name), below.layer, below.size)
        if claim_of(volume):
            return await self._open_to_others(instance, volume, self._claimed(instance, volume))
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

        return await self._pulls.kernels.fetched(instance.metadata.uid or "", "kernel", given.image, fetch)

    async def directory(self, instance: VirtualMachineInstance, volume: Volume) -> Path:
        """The directory of a volume that the guest mounts."""
        files = await self._seeder.files(instance, volume)
        path = self._scratch(instance, volume.name).with_suffix(".d")
        if files is not None:
            _written(path, files)
            return path
        if not claim_of(volume):
            raise prerequisites.failed("FailedMount", f"volume {volume.name} has no files that a guest could mount")
        held = self._claimed(instance, volume)
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

    def begun(self, machine: str) -> None:
        """The machine runs, or is not started now: its claims are looked at for what they are."""
        self._beginning = {claim: uid for claim, uid in self._beginning.items() if uid != machine}

    def forget(self, machine: str) -> None:
        """The machine is gone."""
        self.begun(machine)
        self._pulls.forget(machine)

    # --- container disks --------------------------------------------------------------------------------------------------

    async def _container(self, instance: VirtualMachineInstance, name: str, disk: ContainerDisk) -> DiskLayer:
        source = self._registry(instance, disk.image, disk.imagePullSecret, disk.imagePullPolicy, disk.path or "")
        namespace = instance.metadata.namespace or ""
        image = await self._pulls.disks.fetched(
            instance.metadata.uid or "", name, disk.image, lambda: self._images.fetch(source, _nobody, owner=namespace)
        )
        below = DiskLayer(image.path, image.format)
        return await self._volumes.overlay(self._scratch(instance, name), below, image.virtual_size)

    def _registry(
        self, instance: VirtualMachineInstance, image: str, secret: str | None, policy: str | None, path: str = ""
    ) -> RegistryImage:
        configs: tuple[str, ...] = ()
        if secret:
            found = self._lookups.secret(_key(instance), secret)
            if found is None:
                raise prerequisites.failed("ErrImagePull", f"the pull secret {secret} of {image} does not exist")
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

    def _claimed(self, instance: VirtualMachineInstance, volume: Volume) -> VolumeOnHost:
        who, name = _key(instance), claim_of(volume)
        claim = self._lookups.claim(who, name)
        if volume.dataVolume is not None:
            self._filled(who, volume.dataVolume.name, claim)
        if claim is None:
            raise prerequisites.failed("FailedPvcNotFound", f"PVC {who.namespace}/{name} does not exist, waiting for it to appear")
        if claim.status is None or claim.status.phase != "Bound":
            raise prerequisites.volumes("PVCNotBound", f"PVC {name} is not bound yet")
        other = self.users(Key(who.namespace, name))
        if other not in ("", instance.metadata.name) and not _shared(claim) and not _shareable(instance, volume.name):
            raise prerequisites.failed(
                "PVCInUse",
                f"PVC {name} is used by the running machine {other}, and allows one writer (its access mode is not ReadWriteMany)",
            )
        if not _shared(claim) and not _shareable(instance, volume.name):
            self._begin_alone(instance, claim)
        found = self._volumes.get(claim.metadata.uid or "")
        if found is None:
            raise prerequisites.volumes("VolumeNotReady", f"the volume of PVC {name} is not there yet", again=0.25)
        return found

    def _begin_alone(self, instance: VirtualMachineInstance, claim: PersistentVolumeClaim) -> None:
        """Of two machines that begin at the same moment the second waits until it is seen whether the first runs."""
        uid = instance.metadata.uid or ""
        if self._beginning.setdefault(claim.metadata.uid or "", uid) != uid:
            raise prerequisites.volumes("PVCInUse", f"PVC {claim.metadata.name} is wanted by a machine that is being started", again=0.25)

    async def _open_to_others(self, instance: VirtualMachineInstance, volume: Volume, held: VolumeOnHost) -> DiskLayer:
        """The layer; one that several machines write at the same time has to be one plain file."""
        if held.layer.format == "raw" or not _shareable(instance, volume.name):
            return held.layer
        try:
            return (await self._volumes.flatten(held.id)).layer
        except PaddockError as error:
            raise prerequisites.failed("VolumeNotShareable", f"volume {volume.name} cannot be shared: {error}", again=10.0) from error

    def _filled(self, who: Key, name: str, claim: PersistentVolumeClaim | None) -> None:
        """A DataVolume has to have its data. One that is gone while its claim is there was filled once."""
        volume = self._lookups.data_volume(who, name)
        if volume is None:
            if claim is None:
                raise prerequisites.failed("FailedPvcNotFound", f"neither DataVolume nor PVC {who.namespace}/{name} exists")
            return
        phase = volume.status.phase if volume.status is not None else ""
        if phase != "Succeeded":
            raise prerequisites.volumes("DataVolumeNotReady", f"DataVolume {name} is not ready: {phase or 'Pending'}")

    # --- files of the host ------------------------------------------------------------------------------------------------

    async def _host(self, name: str, disk: HostDisk) -> DiskLayer:
        path = Path(disk.path)
        resolved = path.parent.resolve() / path.name
        if not any(resolved.is_relative_to(each) for each in self.allowed_host_paths):
            raise prerequisites.failed(
                "HostDiskNotAllowed", f"volume {name}: {path} is in no directory that hostDisk volumes are allowed in"
            )
        if disk.type == "DiskOrCreate" and disk.capacity is not None:
            return await self._volumes.blank(resolved, quantity.whole(disk.capacity))
        if not resolved.is_file():
            raise prerequisites.failed("HostDiskNotFound", f"volume {name}: there is no file {path}", again=10.0)
        return DiskLayer(resolved, "raw")

    def _scratch(self, instance: VirtualMachineInstance, name: str) -> Path:
        return self._volumes.scratch(instance.metadata.uid or "", name)


def _key(instance: VirtualMachineInstance) -> Key:
    return Key(instance.metadata.namespace or "", instance.metadata.name)


def _shared(claim: PersistentVolumeClaim) -> bool:
    modes = claim.spec.accessModes if claim.spec is not None else None
    return any(each in ("ReadWriteMany", "ReadOnlyMany") for each in modes or ())


def _shareable(instance: VirtualMachineInstance, name: str) -> bool:
    return any(each.name == name and each.shareable for each in instance.spec.domain.devices.disks or ())


def _nobody(_: object) -> None:
    """Nobody looks at the progress of a pull."""


def _written(directory: Path, files: Mapping[str, bytes]) -> None:
    """Files and nothing else, each whole or as it was."""
    directory.mkdir(mode=0o755, exist_ok=True)
    for left in directory.iterdir():
        if left.name not in files:
            left.unlink()
    for name, data in files.items():
        path = directory / name
        if not path.exists() or path.read_bytes() != data:
            fresh = directory / f".{name}"
            fresh.write_bytes(data)
            fresh.chmod(0o644)
            fresh.replace(path)
