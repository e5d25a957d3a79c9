"""The controllers of snapshots, restores and clones."""

from collections.abc import Coroutine
from typing import Any

from paddock.engine.engine import Engine
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.clones import controller as clones
from paddock.kubevirt.controllers.snapshots.assembly import assemble


def wire(program: ControllerManager, engine: Engine) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controllers to the program."""
    assemble(program, engine)
    clones.wire(program)
    return []
