"""Windows' answer files: a disk labelled `unattendCD`."""

from collections.abc import Mapping

from paddock.base.seeds.errors import SeedError
from paddock.base.seeds.seed import Seed

LABEL = "unattendCD"
# Windows does not tell capitals apart.
_WANTED = frozenset({"autounattend.xml", "unattend.xml"})


def seed(files: Mapping[str, bytes]) -> Seed:
    """The disk with the keys of a ConfigMap or Secret, one of which must be an answer file."""
    if not any(name.lower() in _WANTED for name in files):
        raise SeedError(
            "cannot make a sysprep disk",
            why="there is neither autounattend.xml nor unattend.xml",
            fix="add one of these keys",
        )
    return Seed(LABEL, dict(files))
