"""Files that end with their machine."""

import os
import shutil
from pathlib import Path

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import files
from paddock.engine.storage.paths import VolumePaths, checked
from paddock.engine.storage.threads import blocking
from paddock.engine.storage.volume import rounded


class ScratchFiles:
    """Makes and removes layers and disks that end with their machine."""

    _places: VolumePaths

    def scratch(self, machine: str, name: str) -> Path:
        """Return the place of a layer or a disk that ends with a machine."""
        directory = self._places.scratch / checked(machine)
        directory.mkdir(parents=True, exist_ok=True)
        # Whatever the umask: the machine's own user passes through.
        directory.chmod(0o711)
        return directory / f"{checked(name)}.img"

    async def overlay(self, path: Path, below: DiskLayer, size: int) -> DiskLayer:
        """An empty layer over others; one that is there is left as it is."""
        if not path.exists():
            fresh = path.with_name(f".{path.name}")
            await blocking("cannot make a layer", fresh.parent, files.make_layer, fresh, below, rounded(size))
            await blocking("cannot make a layer", path.parent, os.replace, fresh, path)
        return DiskLayer(path, "qcow2", below)

    async def blank(self, path: Path, size: int) -> DiskLayer:
        """An empty disk; one that is there is left as it is."""
        if not path.exists():
            fresh = path.with_name(f".{path.name}")
            fresh.unlink(missing_ok=True)
            await blocking("cannot make a disk", path.parent, files.make_blank, fresh, rounded(size), allocate=False)
            await blocking("cannot make a disk", path.parent, os.replace, fresh, path)
        return DiskLayer(path, "raw")

    async def drop_scratch(self, machine: str) -> None:
        """Remove everything that ends with a machine."""
        directory = self._places.scratch / checked(machine)
        await blocking("cannot remove scratch files", self._places.scratch, shutil.rmtree, directory, True)

    def scratch_owners(self) -> set[str]:
        """Machines that have something that ends with them."""
        return {each.name for each in self._places.scratch.iterdir() if not each.name.startswith(".")}
