"""Looks for an operator that reconciles a dialect at the target, as far as the user may see."""

import contextlib

from paddock.base.jsondata import Data
from paddock.fleet.kinds import MachineKind
from paddock.fleet.moves import objectcalls
from paddock.fleet.moves.plan import operators
from paddock.fleet.moves.plan.moveplan import Hindrance
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.errors import Forbidden
from paddock.kubernetes.client.options import EVERYTHING, Selection
from paddock.kubernetes.client.target import LEASES


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
