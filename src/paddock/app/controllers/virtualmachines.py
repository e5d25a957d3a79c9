"""The controllers of the life of machines: machines, pools, replica sets, migrations, and the installation itself."""

from paddock.controllers.installation import controller as installation
from paddock.controllers.migration import controller as migration
from paddock.controllers.pool import controller as pool
from paddock.controllers.replicaset import controller as replicaset
from paddock.controllers.virtualmachine import controller as virtualmachine
from paddock.dialects.kubevirt import releases
from paddock.runtime.program import ControllerManager


def wire(program: ControllerManager, release: int = 0, *, moves: bool = False) -> None:
    """Add them to the program, with the minor of the release of KubeVirt that the server is to be.

    `moves`: somebody else carries migrations out, as there are several nodes.
    """
    virtualmachine.wire(program)
    pool.wire(program)
    replicaset.wire(program)
    migration.wire(program, moves=moves)
    installation.wire(program, releases.name_of(release))
