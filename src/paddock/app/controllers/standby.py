"""The standby: controllers that need no engine, and the conditions that give users the reason, while the host cannot run machines.

Machines are translated, started and stopped as objects meanwhile, so that every one of them has an instance, and a condition with
the reason.
"""

import asyncio
import logging

from paddock.app.controllers import virtualmachines
from paddock.app.localtransport import door
from paddock.dialects import fronts
from paddock.dialects.fronts import FrontSettings
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import InvolvedObject
from paddock.kubevirt.controllers.migration.controller import MigrationOthers
from paddock.kubevirt.controllers.outage import controller as outage
from paddock.server.builtin.trust import CONTROLLER, CONTROLLER_GROUPS
from paddock.server.edge.http import Handler
from paddock.server.housekeeping.node import NodeProblem

_LOG = logging.getLogger(__name__)


class OutageReporter:
    """Tells users what is wrong with a host, from the first report until the end."""

    def __init__(self, api: Handler, node: str, release: int = 0) -> None:
        """`release` is the minor of the release of KubeVirt that the server is to be."""
        machinery = Machinery()
        client = Client(LocalTransport(door(api, CONTROLLER, CONTROLLER_GROUPS)), observe=machinery.observe_request)
        self.program = ControllerManager(client, component="paddock", instance=node, machinery=machinery)
        self._node = node
        self._problem = NodeProblem("", "")
        self._instances = outage.wire(self.program, lambda: self._problem.message)
        # A guest may be on its way to another server: nobody says how that ends before the engine is back.
        virtualmachines.wire(self.program, release, MigrationOthers(servers=True))
        fronts.wire(self.program, FrontSettings())
        self._task: asyncio.Task[None] | None = None

    async def report(self, problem: NodeProblem) -> None:
        """Log this from now on, each reason once."""
        if problem != self._problem:
            self._problem = problem
            # As kubelets name their node: its name stands for its UID.
            about = InvolvedObject("v1", "Node", "", self._node, self._node)
            self.program.recorder.tell(about, "Warning", problem.reason, problem.message)
            for seen in self.program.informers.of(outage.INSTANCES).cache:
                self._instances.offer(seen.key)
        if self._task is None:
            self._task = asyncio.create_task(self.program.run(), name="standby")
            self._task.add_done_callback(_ended)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("conditions of unmanaged machines are no longer updated", exc_info=task.exception())
