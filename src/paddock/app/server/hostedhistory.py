"""The history of use of a server with machines: its questions to them, and their owners."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from paddock.app.history.files import HistoryFiles
from paddock.app.history.history import HistoryOwners, UsageHistory
from paddock.app.history.samples import HistoryReading
from paddock.app.metrics.queries import PendingQueries
from paddock.base.clock import SystemClock
from paddock.engine.engine import Engine
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import identity
from paddock.server.context import ServerParts

_INSTANCES, _MACHINES = "virtualmachineinstances.kubevirt.io", "virtualmachines.kubevirt.io"
FOLDER = "usage"


class HostedHistory:
    """The history of one engine's machines, and the questions to them that are open."""

    def __init__(self, parts: ServerParts, engine: Engine, root: Path) -> None:
        self._parts = parts
        self._engine = engine
        self._queries = PendingQueries(agents=False)
        self.history = UsageHistory(HistoryFiles(root / FOLDER), self._read, self._owners, SystemClock())

    def start(self) -> None:
        """Begin to sample. The engine has started."""
        self.history.start()

    async def close(self) -> None:
        """Write what is not on disk, and ask no machine any more."""
        await self.history.close()
        await self._queries.close()

    async def _read(self) -> Mapping[str, HistoryReading]:
        used = await self._queries.ask(self._engine.machines)
        moment = asyncio.get_running_loop().time()
        runs = {machine.id: machine.observed.run for machine in self._engine.machines}
        return {machine: HistoryReading(moment, runs[machine], each) for machine, each in used.items() if machine in runs}

    def _owners(self) -> HistoryOwners:
        instances = dict(value for _, value in self._parts.view.noted(_INSTANCES, _instance))
        machines = {value for _, value in self._parts.view.noted(_MACHINES, _uid)}
        return HistoryOwners(instances, frozenset((*machines, *instances.values())))


def _instance(data: dict[str, object]) -> tuple[str, str]:
    instance = from_data(data, VirtualMachineInstance)
    return instance.metadata.uid or "", identity.owner_of(instance)


def _uid(data: dict[str, dict[str, str]]) -> str:
    return data["metadata"].get("uid", "")
