"""Directories of the host that a machine's claims stand for, checked each time a machine is started.

A claim on such a directory is a file system of the guest, or the disk image in the directory. The check of a file system is for people: it
says what is wrong and what to do. `engine/share.py` follows the path once more, without links, and shares what it opened.
"""

import os
import stat
from pathlib import Path
from typing import TypeVar

from paddock.base.jsondata import Data
from paddock.engine.engine import EngineSettings
from paddock.kubernetes.storage import binding
from paddock.kubevirt.controllers.virtualmachineinstance.reader import InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.instance import prerequisites
from paddock.kubevirt.plan.instance.volumes import claim_of
from paddock.kubevirt.plan.storage import hostdirectories
from paddock.kubevirt.plan.storage.hostdirectories import HostDirectory, HostImage
from paddock.kubevirt.translate.resolved import ResolvedVolume

# Nobody tells when a directory comes.
_LOOK_SECONDS = 10.0
_Given = TypeVar("_Given", HostDirectory, HostImage)


class HostDirectories:
    """Finds directories of the host."""

    def __init__(self, settings: EngineSettings, objects: InstanceReferences) -> None:
        self._settings = settings
        self._objects = objects

    def find(self, instance: VirtualMachineInstance, volume: Volume) -> tuple[ResolvedVolume, str] | None:
        """Return the directory of a volume and a warning for its user; None for a volume without one. Raises `MissingPrerequisite`."""
        found = self._volume(instance, volume)
        if found is None:
            return None
        given = _meant(volume, hostdirectories.of_volume(found))
        about = f"volume {volume.name} ({given.path})"
        path, problem, mode, owner = self._check(given.path)
        if problem:
            # The directory may come, and the server may be started with other options.
            reason = "HostPathNotFound" if path is None else "HostPathNotAllowed"
            raise prerequisites.failed(reason, f"{about} cannot be shared: {problem}", again=_LOOK_SECONDS)
        claim = volume.persistentVolumeClaim
        readonly = given.readonly or bool(claim is not None and claim.readOnly)
        note = ""
        if not readonly and not hostdirectories.is_writable(mode, owner, os.geteuid()):
            note = f"{about} can only be read: user {owner} owns it, and its mode {stat.S_IMODE(mode):04o} lets the server not write"
        return ResolvedVolume(directory=path, readonly=readonly, as_owner=True), note

    def image(self, instance: VirtualMachineInstance, volume: Volume) -> HostImage | None:
        """Return the disk image in the directory of a volume; None for a volume without one. Raises `MissingPrerequisite`."""
        found = self._volume(instance, volume)
        return None if found is None else _meant(volume, hostdirectories.image_of_volume(found))

    def _volume(self, instance: VirtualMachineInstance, volume: Volume) -> Data | None:
        """Return the administrator's volume behind a claim; None without such a volume."""
        key, name = key_of(instance), claim_of(volume)
        claim = self._objects.claim(key, name) if name else None
        if claim is None or claim.spec is None or not claim.spec.volumeName or claim.status is None or claim.status.phase != "Bound":
            return None
        found = self._objects.persistent_volume(key, claim.spec.volumeName)
        if found is None or binding.is_provisioned(found):
            return None
        owner = (found.get("spec") or {}).get("claimRef") or {}
        return found if owner.get("uid") == claim.metadata.uid else None

    def _check(self, given: str) -> tuple[Path | None, str, int, int]:
        """Return the path without links, what is wrong with it, and the directory's mode and owner."""
        try:
            path = Path(given).resolve(strict=True)
            status = path.stat()
        except OSError as error:
            return None, f"{error.strerror}", 0, 0
        if not stat.S_ISDIR(status.st_mode):
            return None, "it is no directory", 0, 0
        private = [each.resolve() for each in (*self._settings.private, *self._settings.pools.values())]
        return path, hostdirectories.refusal(path, self._settings.shares, private), status.st_mode, status.st_uid


def _meant(volume: Volume, directory: _Given | str) -> _Given:
    if isinstance(directory, str):
        raise prerequisites.failed("FailedMount", f"volume {volume.name}: {directory}")
    return directory
