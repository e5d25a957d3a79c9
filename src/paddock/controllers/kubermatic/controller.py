"""Kubermatic's front door, wired to two programs.

`front` has what users wrote, `back` is the cluster. The controllers run in `back`, under its leadership; `front` watches and tells events,
needs no leadership, and has to be run beside it: `TaskGroup(front.run(), back.run())`.
"""

from paddock.controllers.kubermatic.settings import Settings
from paddock.runtime.program import Program


def wire(
    front: Program,
    back: Program,
    settings: Settings = Settings(),  # noqa: B008 - frozen
) -> None:
    """Add the controllers to the programs."""
