"""The controllers of VirtualMachineInstances and of their migrations, and what runs beside them."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.engine.engine import Engine
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.migration import evacuation, moves
from paddock.kubevirt.controllers.networkattachments.attachments import NetworkAttachments
from paddock.kubevirt.controllers.shares import controller as cpushares
from paddock.kubevirt.controllers.virtualmachineinstance import controller as instances
from paddock.kubevirt.controllers.virtualmachineinstance.controller import NodeIdentity


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
