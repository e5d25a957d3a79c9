"""The controller of VirtualMachineInstances and what runs beside it."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.environment import ControllerEnvironment
from paddock.controllers.networkattachments.attachments import NetworkAttachments
from paddock.controllers.virtualmachineinstance.assembly import NodeIdentity, assembled
from paddock.engine.engine import Engine
from paddock.runtime.program import ControllerManager


def wire(
    program: ControllerManager, engine: Engine, around: ControllerEnvironment, attachments: NetworkAttachments
) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controller to the program; what is to run beside it, by name."""
    made = assembled(program, engine, NodeIdentity(around.node, around.domain, around.authority), attachments.resolve)
    attachments.wake(made.controller)
    return [("sweeper", made.sweeper.run()), ("upgrades", made.upgrades.run())]
