"""Looks for an operator that reconciles a dialect at the target, as far as the user may see."""

import contextlib

from paddock.cli.machines.kinds import MachineKind
from paddock.cli.moves import objectcalls
from paddock.cli.moves.sides import MoveSide
from paddock.client.errors import Forbidden
from paddock.client.options import EVERYTHING, Selection
from paddock.client.target import LEASES, Data
from paddock.plan.moves import operators
from paddock.plan.moves.moveplan import Hindrance


async def missing(target: MoveSide, kind: MachineKind) -> Hindrance:
    """Return a hindrance if no operator serves a kind. KubeVirt's kinds and `paddock up` need none; the dry run names a missing kind."""
    client = target.client
    if not kind.front or await client.is_paddock() or not await objectcalls.serves(client, kind.target):
        return Hindrance()
    try:
        leases: list[Data] | None = (await client.list(LEASES, EVERYTHING)).items
    except Forbidden:
        leases = None
    machines: list[Data] = []
    for selection in (EVERYTHING, Selection(namespace=target.namespace)):
        with contextlib.suppress(Forbidden):
            machines += (await client.list(kind.target, selection)).items
            break
    return operators.missing(kind.qualified, kind.dialect, leases, machines, target.session.clock.seconds())
