"""The checks of `paddock doctor` beside a running server: for the line that it prints at its start, and for the conditions of its Node."""

import logging
from pathlib import Path
from typing import Protocol

from paddock.app.doctor import judge
from paddock.app.doctor.check import HostCheck
from paddock.server.housekeeping.node import NodeLimit

_LOG = logging.getLogger(__name__)
# Rooms fill and groups change while a server runs; one look costs some milliseconds.
SECONDS = 300.0


class HostLimits(Protocol):
    """The checks of a host, as a server reports them."""

    async def examine(self) -> None: ...

    def conditions(self) -> tuple[NodeLimit, ...]:
        """Return the conditions of the Node."""

    def line(self) -> str:
        """Return what users have to know at the start; "" if it is nothing."""


class SimulatedHost:
    """The host of simulated guests, which lacks nothing."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes

    async def examine(self) -> None:
        """There is nothing to look at."""

    def conditions(self) -> tuple[NodeLimit, ...]:
        """Return no conditions: labels of the Node say what it is."""
        return ()

    def line(self) -> str:
        """Return that guests are simulated."""
        return f"guests are simulated on {self._nodes} {'node' if self._nodes == 1 else 'nodes'}: no machine runs, and no disk holds data"


class HostExamination:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._checks: tuple[HostCheck, ...] = ()

    async def examine(self) -> None:
        """Look at the host. What cannot be found out is no reason not to run machines."""
        from paddock.app.doctor.gather import gather  # noqa: PLC0415 - the engine, which is loaded when it is needed

        try:
            self._checks = judge.judge(await gather(self._root))
        except Exception:
            _LOG.exception("host cannot be examined")

    def conditions(self) -> tuple[NodeLimit, ...]:
        """Return a condition for each check that is not ok. Whether this server has its port is no property of a Node."""
        found = [each for each in judge.shortfalls(self._checks) if each.id != "port"]
        return tuple(NodeLimit(judge.condition_type(each.id), each.outcome.state.capitalize(), each.sentence) for each in found)

    def line(self) -> str:
        """Return what machines cannot have here, in a line; "" if nothing is missing."""
        return judge.at_start(self._checks)
