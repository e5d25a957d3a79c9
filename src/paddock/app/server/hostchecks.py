"""The checks of `paddock doctor` beside a running server: for the line that it prints at its start, and for the conditions of its Node."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from paddock.apiserver.housekeeping.node import NodeLimit

if TYPE_CHECKING:
    from paddock.app.doctor.check import HostCheck

_LOG = logging.getLogger(__name__)
# Rooms fill and groups change while a server runs; one look costs some milliseconds.
SECONDS = 300.0


class HostExamination:
    """The latest outcome."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._checks: tuple[HostCheck, ...] = ()

    async def look(self) -> None:
        """Look at the host. What cannot be found out is no reason not to run machines."""
        from paddock.app.doctor.gather import gather  # noqa: PLC0415 - the engine, which is loaded when it is needed
        from paddock.app.doctor.judge import judge  # noqa: PLC0415 - as above

        try:
            self._checks = judge(await gather(self._root))
        except Exception:
            _LOG.exception("host cannot be examined")

    def conditions(self) -> tuple[NodeLimit, ...]:
        """Return a condition for each check that is not ok. Whether this server has its port is no property of a Node."""
        from paddock.app.doctor import judge  # noqa: PLC0415 - as above

        found = [each for each in judge.shortfalls(self._checks) if each.id != "port"]
        return tuple(NodeLimit(judge.condition_type(each.id), each.outcome.state.capitalize(), each.sentence) for each in found)

    def line(self) -> str:
        """Return what machines cannot have here, in a line; "" if nothing is missing."""
        from paddock.app.doctor import judge  # noqa: PLC0415 - as above

        return judge.at_start(self._checks)
