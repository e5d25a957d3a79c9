"""The controllers of the life of machines: machines, pools, replica sets, migrations, and the installation itself."""

from paddock.kubernetes import releases
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.installation import controller as installation
from paddock.kubevirt.controllers.migration import controller as migration
from paddock.kubevirt.controllers.pool import controller as pool
from paddock.kubevirt.controllers.replicaset import controller as replicaset
from paddock.kubevirt.controllers.virtualmachine import controller as virtualmachine


def wire(program: ControllerManager, release: int = 0, *, moves: bool = False) -> None:
    """Add them to the program, with the minor of the release of KubeVirt that the server is to be.

    `moves`: somebody else carries migrations out, as there are several nodes.
    """
    virtualmachine.wire(program)
    pool.wire(program)
    replicaset.wire(program)
    migration.wire(program, moves=moves)
    installation.wire(program, releases.name_of(release))
