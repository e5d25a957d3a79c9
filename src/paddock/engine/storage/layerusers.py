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
        self._bases: dict[str, tuple[FrozenBase, ...]] = {}
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
        self._enter(directory.name, *(chain.base for chain in record.chains if isinstance(chain.base, FrozenBase)))
        if record.deleted:
            self._deleted[directory.name] = directory
        else:
            self._deleted.pop(directory.name, None)

    def put_snapshot(self, id: str, base: FrozenBase) -> None:
        """Enter the layer that a snapshot keeps."""
        self._enter(_SNAPSHOT + id, base)

    def forget(self, volume: str) -> None:
        """Remove a volume whose record is gone."""
        self._enter(volume)
        self._deleted.pop(volume, None)

    def forget_snapshot(self, id: str) -> None:
        """Remove a snapshot whose record is gone."""
        self._enter(_SNAPSHOT + id)

    def layers(self, volume: str) -> set[str]:
        """Return the names of a volume's layers that have users. A volume that was reverted may be one of its own."""
        return {base.layer for user in self._users.get(volume, ()) for base in self._bases[user] if base.volume == volume}

    def layers_of_others(self, volume: str) -> set[str]:
        """Return the names of a volume's layers that snapshots and other volumes use."""
        return {base.layer for user in self._others(volume) for base in self._bases[user] if base.volume == volume}

    def volumes(self, volume: str) -> list[str]:
        """Return the other volumes that are laid over one."""
        return sorted(user for user in self._others(volume) if not user.startswith(_SNAPSHOT))

    def _others(self, volume: str) -> set[str]:
        return self._users.get(volume, set()) - {volume}

    def unneeded(self) -> Path | None:
        """Return the directory of a deleted volume that nothing needs, the topmost first; None when there is none."""
        found = [volume for volume in self._deleted if self.is_unneeded(volume)]
        return self._deleted[min(found, key=lambda volume: len(self._others(volume)))] if found else None

    def is_unneeded(self, volume: str) -> bool:
        """Return whether a volume is deleted, and no snapshot and no volume that stays needs it.

        Two volumes that were reverted to each other's snapshots have layers of each other below theirs.
        """
        seen, reached = {volume}, [volume]
        while reached:
            user = reached.pop()
            if user not in self._deleted:
                return False
            reached += self._users.get(user, set()) - seen
            seen.update(reached)
        return True

    def _enter(self, user: str, *bases: FrozenBase) -> None:
        for volume in {base.volume for base in self._bases.pop(user, ())}:
            self._users[volume].discard(user)
            if not self._users[volume]:
                del self._users[volume]
        if bases:
            self._bases[user] = bases
        for base in bases:
            self._users.setdefault(base.volume, set()).add(user)
