"""The parts of a server that runs machines, beside its API: controllers, subresources of machines, uploads, downloads."""

import logging

from paddock.app.controllers import control
from paddock.app.controllers.environment import ControllerEnvironment
from paddock.app.exports import download
from paddock.app.exports.download import Downloads
from paddock.app.metrics import wiring as metrics
from paddock.app.metrics.collector import MetricsCollector
from paddock.app.resourcemetrics import endpoint as resourcemetrics
from paddock.app.server.hostchecks import HostLimits
from paddock.app.server.hostedhistory import HostedHistory
from paddock.app.subresources import wiring as subresources
from paddock.app.uploads import endpoint
from paddock.app.uploads import wiring as uploads
from paddock.app.uploads.endpoint import Uploads
from paddock.engine.host.errors import QemuMissing
from paddock.engine.networks.errors import NetworkUnusable
from paddock.kubernetes import releases
from paddock.server.api import Api
from paddock.server.context import ServerParts
from paddock.server.edge.http import Answer, Handler, HttpRequest, StreamingRoutes
from paddock.server.edge.server import Server

_LOG = logging.getLogger(__name__)


class HostedEngine:
    """Starts when the API answers; clients are served meanwhile, and controllers reconcile their writes as soon as they run."""

    def __init__(self, api: Api, edge: Server, parts: ServerParts, around: ControllerEnvironment, host: HostLimits) -> None:
        self._host = host
        self._edge = edge
        self._parts = parts
        self._api = api
        self._control = control.beside(api, around, parts.store)
        engine = self._control.engine
        self._history = HostedHistory(parts, engine, around.directory)
        self._release = around.machines.kubevirt_release
        recorder, usage = self._control.program.recorder, self._history.history
        self._subresources = subresources.install(api, parts, engine, recorder, usage, self._release)
        if around.machines.guests == "simulated":
            from paddock.app.subresources import eviction  # noqa: PLC0415 - real guests do without

            eviction.serve(api, parts)
        resourcemetrics.install(api, parts, lambda: engine.machines if hasattr(engine, "machines") else None)
        self._uploads: Uploads | None = None
        self._metrics: MetricsCollector | None = None
        # as they are without machines
        self._page, self._doors = api.paths[metrics.PATH], edge.doors

    async def prepare(self) -> None:
        """Look at the host and take over its machines; raises when it cannot run machines."""
        try:
            await self._control.engine.start()
        finally:
            # Also of a host that cannot run machines, users hear what it lacks.
            await self._host.examine()
        _LOG.info("running machines adopted", extra={"running": sum(each.observed.live for each in self._control.engine.machines)})

    async def start(self) -> None:
        """Begin to look after everything."""
        await self._control.start()
        control = self._control
        sessions, version = self._subresources.sessions, releases.name_of(self._release)
        self._metrics = MetricsCollector(control.program, control.engine, sessions, lambda: control.storage is not None, version)
        metrics.install(self._api, self._metrics)
        self._history.start()
        if self._control.storage is not None and self._control.exports is not None:
            self._uploads = uploads.install(self._api, self._parts, self._control.storage.receiving)
            downloads = Downloads(self._control.program.client, self._control.exports, self._control.engine.volumes)
            self._edge.doors = StreamingRoutes((*endpoint.PREFIXES, download.PREFIX), _either(self._uploads, downloads))

    async def watch(self) -> None:
        """Return, or raise, when a part ends that has to run."""
        await self._control.watch()

    async def stop(self) -> None:
        """End what is under way; machines go on."""
        self._api.paths[metrics.PATH] = self._page
        self._edge.doors = self._doors
        if self._metrics is not None:
            await self._metrics.close()
        await self._history.close()
        await self._subresources.close()
        await self._control.stop()
        if self._uploads is not None:
            await self._uploads.close()


def reason(error: Exception) -> str:
    """The word for why machines cannot be looked after."""
    return type(error).__name__ if isinstance(error, (NetworkUnusable, QemuMissing)) else "EngineFailed"


def _either(sending: Uploads, fetching: Downloads) -> Handler:
    async def answer(request: HttpRequest) -> Answer:
        prefix = download.PREFIX.decode()
        return await (fetching.answer(request) if request.path.startswith(prefix) else sending.answer(request))

    return answer
