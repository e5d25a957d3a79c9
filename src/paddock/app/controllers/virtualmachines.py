"""The controllers of the life of machines: machines, pools, replica sets, migrations, and the installation itself."""

from paddock.controllers.installation import controller as installation
from paddock.controllers.migration import controller as migration
from paddock.controllers.pool import controller as pool
from paddock.controllers.replicaset import controller as replicaset
from paddock.controllers.virtualmachine import controller as virtualmachine
from paddock.runtime.program import ControllerManager


def wire(program: ControllerManager, architecture: str = "amd64", *, moves: bool = False) -> None:
    """Add them to the program. `moves`: somebody else carries migrations out, as there are several nodes."""
    virtualmachine.wire(program)
    pool.wire(program)
    replicaset.wire(program)
    migration.wire(program, moves=moves)
    installation.wire(program, architecture)
