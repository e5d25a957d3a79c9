"""An index, in memory, of the snapshots and volumes that have a frozen layer below them.

It is loaded once and kept where records are written, so that a merge or a removal reads no other volume's record. A user stands in it
before its record is on the disk and until its record is gone: a layer without users has none, and nobody can become one.
Only the event loop changes it.

A record that cannot be read may name any layer as the one below. While there is one, nobody knows that a layer has no users.
"""

import contextlib
import logging
from pathlib import Path

from paddock.engine.storage import records
from paddock.engine.storage.errors import VolumeBroken
from paddock.engine.storage.paths import RECORD, VolumePaths
from paddock.engine.storage.records import FrozenBase, VolumeRecord

_LOG = logging.getLogger(__name__)
# No id of a volume has a slash.
_SNAPSHOT = "snapshot/"


class LayerUsers:
    """The users of each volume's layers, and the deleted volumes that stay for their sake."""

    def __init__(self) -> None:
        self._bases: dict[str, FrozenBase] = {}
        # by the volume that has the layers
        self._users: dict[str, set[str]] = {}
        self._deleted: dict[str, Path] = {}
        # records that cannot be read
        self._damaged: set[Path] = set()

    @classmethod
    def load(cls, places: VolumePaths) -> "LayerUsers":
        """Read all records of volumes and snapshots. Blocking."""
        users = cls()
        for path in (*places.volume_records(), *places.snapshot_records()):
            try:
                users._read(path)
            except VolumeBroken as error:
                _LOG.error("record damaged; what uses it waits, and no layer is merged or removed", extra={"error": str(error)})
                users._damaged.add(path)
        return users

    def has_damage(self, *, apart_from: Path | None = None) -> bool:
        """Return whether a record, apart from one, cannot be read. One that was mended, or is gone, is damaged no more."""
        for path in tuple(self._damaged):
            with contextlib.suppress(VolumeBroken):
                self._read(path)
                self._damaged.discard(path)
        return bool(self._damaged - {apart_from})

    def _read(self, path: Path) -> None:
        """Enter what a record says. Raises `VolumeBroken`."""
        if path.name == RECORD:
            if (record := records.read(path)) is not None:
                self.put(path.parent, record)
        elif (frozen := records.read_snapshot(path)) is not None:
            self.put_snapshot(path.stem, FrozenBase(frozen.volume, frozen.layer))

    def put(self, directory: Path, record: VolumeRecord) -> None:
        """Enter what the record of a volume says."""
        self._enter(directory.name, record.base if isinstance(record.base, FrozenBase) else None)
        if record.deleted:
            self._deleted[directory.name] = directory
        else:
            self._deleted.pop(directory.name, None)

    def put_snapshot(self, id: str, base: FrozenBase) -> None:
        """Enter the layer that a snapshot keeps."""
        self._enter(_SNAPSHOT + id, base)

    def forget(self, volume: str) -> None:
        """Remove a volume whose record is gone."""
        self._enter(volume, None)
        self._deleted.pop(volume, None)

    def forget_snapshot(self, id: str) -> None:
        """Remove a snapshot whose record is gone."""
        self._enter(_SNAPSHOT + id, None)

    def layers(self, volume: str) -> set[str]:
        """Return the names of a volume's layers that have users."""
        return {self._bases[user].layer for user in self._users.get(volume, ())}

    def volumes(self, volume: str) -> list[str]:
        """Return the volumes that are laid over one."""
        return sorted(user for user in self._users.get(volume, ()) if not user.startswith(_SNAPSHOT))

    def unneeded(self) -> Path | None:
        """Return the directory of a deleted volume without users; None when there is none."""
        return next((directory for volume, directory in self._deleted.items() if self.is_unneeded(volume)), None)

    def is_unneeded(self, volume: str) -> bool:
        """Return whether a volume is deleted and has no users."""
        return volume in self._deleted and volume not in self._users

    def _enter(self, user: str, base: FrozenBase | None) -> None:
        before = self._bases.pop(user, None)
        if before is not None:
            self._users[before.volume].discard(user)
            if not self._users[before.volume]:
                del self._users[before.volume]
        if base is not None:
            self._bases[user] = base
            self._users.setdefault(base.volume, set()).add(user)
