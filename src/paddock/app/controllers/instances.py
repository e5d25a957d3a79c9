"""The controller of VirtualMachineInstances and what runs beside it."""

from collections.abc import Coroutine
from typing import Any

from paddock.app.controllers.surroundings import Surroundings
from paddock.controllers.networkattachments.attachments import Attachments
from paddock.controllers.virtualmachineinstance.assembly import Place, assembled
from paddock.engine.engine import Engine
from paddock.runtime.program import Program


def wire(program: Program, engine: Engine, around: Surroundings, attachments: Attachments) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controller to the program; what is to run beside it, by name."""
    made = assembled(program, engine, Place(around.node, around.domain, around.authority), attachments.resolve)
    attachments.wake(made.controller)
    return [("sweeper", made.sweeper.run()), ("upgrades", made.upgrades.run())]
