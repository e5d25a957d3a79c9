"""The controllers of snapshots, restores and clones."""

from collections.abc import Coroutine
from typing import Any

from paddock.controllers.clones import controller as clones
from paddock.controllers.snapshots.assembly import assemble
from paddock.engine.engine import Engine
from paddock.runtime.program import ControllerManager


def wire(program: ControllerManager, engine: Engine) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    """Add the controllers to the program."""
    assemble(program, engine)
    clones.wire(program)
    return []
