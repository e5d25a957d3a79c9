"""The controllers above running machines."""

from paddock.controllers.virtualmachine import controller as virtualmachine
from paddock.runtime.program import Program


def wire(program: Program) -> None:
    """Add the controllers to the program."""
    virtualmachine.wire(program)
