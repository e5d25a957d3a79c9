"""The directories of volumes at a start: it closes pools that are not mounted, and removes what a sudden end left half made."""

import logging
import os
import shutil

import msgspec

from paddock.engine.storage import chains, errors, files, pools
from paddock.engine.storage.layerusers import LayerUsers
from paddock.engine.storage.paths import VolumePaths
from paddock.engine.storage.pools import PoolMarkers

_LOG = logging.getLogger(__name__)


def opened(places: VolumePaths, markers: PoolMarkers) -> VolumePaths:
    """Make the directories, and clear them of what is half made; return the places with those pools closed that are not mounted."""
    places = msgspec.structs.replace(places, closed=markers.load(places.configured))
    for closed in places.closed:
        _LOG.error("pool is not mounted", extra={"error": str(pools.not_mounted(closed))})
    for directory in (*places.every_pool, places.snapshots, places.scratch):
        with errors.spoken("cannot use the directory of volumes", directory):
            directory.mkdir(mode=0o711, parents=True, exist_ok=True)
            # A QEMU with a user of its own passes through, and sees only what it was given the name of.
            directory.chmod(0o711)
            for left in directory.glob(".*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    if os.geteuid() == 0:
        chains.close_to_others(places)
    for pool in {path.parent.parent for path in places.volume_records()}:
        with errors.spoken("cannot mark the directory of volumes", pool):
            markers.mark(pool)
    return places


def cleared(places: VolumePaths) -> LayerUsers:
    """Remove deleted volumes that nothing needs; return the users of the layers that are there."""
    users = LayerUsers.load(places)
    # What is in a pool that is not mounted, or has a record that cannot be read, may need any of them.
    while not (places.closed or users.has_damage()) and (unneeded := users.unneeded()) is not None:
        files.remove(unneeded)
        users.forget(unneeded.name)
    return users
