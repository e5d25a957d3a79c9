"""The controllers of VirtualMachineInstances and of their migrations, and what runs beside them."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.controllers.migration import evacuation, moves
from paddock.controllers.networkattachments.attachments import NetworkAttachments
from paddock.controllers.shares import controller as cpushares
from paddock.controllers.virtualmachineinstance import controller as instances
from paddock.controllers.virtualmachineinstance.controller import NodeIdentity
from paddock.engine.engine import Engine
from paddock.runtime.program import ControllerManager


def wire(
    program: ControllerManager, engine: Engine, around: ControllerEnvironment, attachments: NetworkAttachments
) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controllers to the program; what is to run beside them, by name."""
    simulated = around.machines.guests == "simulated"
    node_identity = NodeIdentity(around.node, around.domain, around.authority, around.nodes, simulated)
    made = instances.wire(program, engine, node_identity, attachments.resolve)
    attachments.wake(made.controller)
    if simulated:
        moves.wire(program, made.scheduler.target)
        evacuation.wire(program)
    else:
        cpushares.add(program, engine.machines.shares)
    return [("sweeper", made.sweeper.run()), ("upgrades", made.upgrades.run())]
