"""The controllers of the life of machines: machines, pools, replica sets, migrations, and the installation itself."""

from collections.abc import Sequence

from paddock.kubernetes import releases
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.installation import controller as installation
from paddock.kubevirt.controllers.migration import controller as migration
from paddock.kubevirt.controllers.migration.controller import MigrationOthers
from paddock.kubevirt.controllers.pool import controller as pool
from paddock.kubevirt.controllers.replicaset import controller as replicaset
from paddock.kubevirt.controllers.virtualmachine import controller as virtualmachine


def wire(
    program: ControllerManager,
    release: int = 0,
    others: MigrationOthers = MigrationOthers(),  # noqa: B008 - frozen
    addresses: Sequence[str] = (),
) -> None:
    """Add them to the program, with the minor of the release of KubeVirt that the server is to be.

    `others` carry migrations out; `addresses` are where other servers hand running guests over.
    """
    virtualmachine.wire(program)
    pool.wire(program)
    replicaset.wire(program)
    migration.wire(program, others)
    installation.wire(program, releases.name_of(release), addresses)
