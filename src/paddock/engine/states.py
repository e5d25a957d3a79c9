"""The state of a machine over its starts besides disks: firmware variables and the TPM's memory. A directory for each owner."""

import asyncio
import shutil
from collections.abc import Collection
from pathlib import Path


class States:
    """Directories by owner."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def prepare(self) -> None:
        """Once, at the start."""
        _passable(self._root)

    def variables(self, owner: str) -> Path:
        return self._directory(owner) / "variables.fd"

    def tpm(self, owner: str) -> Path:
        """The directory of the TPM's memory."""
        return _passable(self._directory(owner) / "tpm")

    def _directory(self, owner: str) -> Path:
        return _passable(self._root / owner)

    async def keep_only(self, owners: Collection[str]) -> None:
        """Remove what belongs to others."""
        gone = [each for each in self._root.iterdir() if each.name not in owners]
        for each in gone:
            await asyncio.to_thread(shutil.rmtree, each, True)


def _passable(directory: Path) -> Path:
    """Made, and whatever the umask is: the user of a machine passes through, and sees only what it has the name of."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o711)
    return directory
