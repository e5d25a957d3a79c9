"""The controller of VirtualMachineInstances and what runs beside it."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.controllers.networkattachments.attachments import NetworkAttachments
from paddock.controllers.virtualmachineinstance import controller as instances
from paddock.controllers.virtualmachineinstance.controller import NodeIdentity
from paddock.engine.engine import Engine
from paddock.runtime.program import ControllerManager


def wire(
    program: ControllerManager, engine: Engine, around: ControllerEnvironment, attachments: NetworkAttachments
) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controller to the program; what is to run beside it, by name."""
    made = instances.wire(program, engine, NodeIdentity(around.node, around.domain, around.authority), attachments.resolve)
    attachments.wake(made.controller)
    return [("sweeper", made.sweeper.run()), ("upgrades", made.upgrades.run())]
