"""The controllers of one server and the engine below them: constructed, started and stopped in order.

The engine looks at the host and takes over the machines that run before they start; machines go on after they end.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, cast

from msgspec.structs import replace

from paddock.app.controllers import kubevirt, virtualmachines
from paddock.app.controllers.environment import ControllerEnvironment
from paddock.app.controllers.migrationauthorities import MigrationAuthorities
from paddock.app.controllers.usage import in_use
from paddock.app.localtransport import door
from paddock.app.options.settings import MachineSettings
from paddock.base.errors import Terminal
from paddock.base.images.settings import ImageSettings
from paddock.dialects import fronts
from paddock.dialects.fronts import FrontSettings
from paddock.engine.engine import Engine, EngineSettings
from paddock.engine.networks.networks import NetworkSettings
from paddock.kubernetes import catalog
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.schema.dialect import Dialect
from paddock.kubevirt.controllers.exports import controller as exports
from paddock.kubevirt.controllers.exports.sources import ExportSources
from paddock.kubevirt.controllers.migration.controller import MigrationOthers
from paddock.kubevirt.controllers.migration.liveparts import PeerAccess
from paddock.kubevirt.controllers.migration.peers import MigrationPort, dial
from paddock.kubevirt.controllers.migration.servers import MigrationDoor
from paddock.kubevirt.controllers.storage.assembly import StorageServices
from paddock.server.builtin.trust import CONTROLLER, CONTROLLER_GROUPS
from paddock.server.edge.http import Handler
from paddock.server.store.contract import Store

# Their modules are loaded on first use: otherwise they would double the time of a start, and take 12 MB.
_DIALECTS = tuple(each for each in catalog.every_dialect() if each.wiring)


async def _load(module: str) -> None:
    await asyncio.to_thread(importlib.import_module, module)


class Closer(Protocol):
    """What a dialect has besides its controllers: programs, connections."""

    async def close(self) -> None: ...


class EmbeddedControllers:
    """Controllers that reach the server through its own door, and machines that outlive them."""

    def __init__(
        self,
        engine: Engine,
        client: Client,
        machinery: Machinery,
        around: ControllerEnvironment,
        store: Store,
        load: Callable[[str], Awaitable[None]] = _load,
    ) -> None:
        """`load` imports a module that is needed later, while the program runs."""
        self.engine = engine
        self.program = ControllerManager(client, component="paddock", instance=around.node, machinery=machinery)
        self._around = around
        self._store = store
        self._load = load
        # there when the controllers have started
        self.storage: StorageServices | None = None
        self.exports: ExportSources | None = None
        # what the controllers of a dialect leave to be closed
        self._closers: list[Closer] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._late: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to look after everything. The engine has started."""
        self.storage = kubevirt.wire_storage(self.program, self.engine, self._around)
        given = self._around.machines
        door = await self.open_door()
        if door is not None:
            self._closers.append(door)
        addresses = door.port.addresses if door is not None else ()
        others = MigrationOthers(nodes=given.guests == "simulated", servers=door is not None)
        virtualmachines.wire(self.program, given.kubevirt_release, others, addresses)
        self.exports = exports.wire(self.program, self.engine.volumes, self._around.address, self._around.authority.decode())
        attachments = kubevirt.wire_networks(self.program, self.engine, self._around)
        more = kubevirt.wire_instances(self.program, self.engine, self._around, attachments, door)
        kubevirt.wire_snapshots(self.program, self.engine)
        for name, work in (("controllers", self.program.run()), *more):
            self._tasks.append(asyncio.create_task(work, name=name))
        self._late.extend(asyncio.create_task(self._run_late(dialect), name=dialect.name) for dialect in _DIALECTS)

    async def open_door(self) -> MigrationDoor | None:
        """Listen where other servers hand guests over. Raises `Terminal`."""
        if (place := self._around.machines.migrations) is None:
            return None
        authorities = MigrationAuthorities(self._around.directory / "migrations" / "authority", self.program.client)
        port = MigrationPort(*place, authorities)
        try:
            await port.open()
        except OSError as error:
            fix = "name an address of this host and a port that is free: --migrations ADDRESS:PORT"
            raise Terminal(f"cannot listen on {place[0]} port {place[1]}", why=error.strerror or str(error), fix=fix) from error
        self._tasks.append(asyncio.create_task(authorities.keep(), name="migration authorities"))
        return MigrationDoor(port, PeerAccess(partial(dial, authorities), authorities.credentials))

    async def _run_late(self, dialect: Dialect) -> None:
        """Load and run the controllers of a dialect once somebody uses it."""
        await in_use(self._store, dialect.stored, dialect.group)
        await self._load(dialect.embedding or dialect.wiring)
        await self.program.run_later(dialect.name, partial(self._wire_dialect, dialect))

    def _wire_dialect(self, dialect: Dialect) -> None:
        if dialect.embedding:
            self._closers.append(importlib.import_module(dialect.embedding).wire(self.program, self.engine, self._around))
        else:
            fronts.WIRES[dialect.name](self.program, FrontSettings(), self.program)

    async def watch(self) -> None:
        """Return, or raise, when a part ends: they run as long as the server, so that one that ends has a defect."""
        ended, _ = await asyncio.wait(self._tasks + self._late, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()

    async def stop(self) -> None:
        """Controllers finish what they do, and programs of Providers end; machines go on."""
        # The late ones stand on the program.
        for tasks in (self._late, self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for closer in self._closers:
            await closer.close()
        if self.storage is not None:
            await self.storage.close()
        await self.engine.stop()


def beside(api: Handler, around: ControllerEnvironment, store: Store) -> EmbeddedControllers:
    """The controllers of a server in this process."""
    machinery = Machinery()
    settings = replace(engine_settings(around.machines, around.services), private=(around.directory.parent,))
    client = Client(LocalTransport(door(api, CONTROLLER, CONTROLLER_GROUPS)), observe=machinery.observe_request)
    if around.machines.guests != "simulated":
        return EmbeddedControllers(Engine(around.directory, settings), client, machinery, around, store)
    from paddock.app.controllers import simulated  # noqa: PLC0415 - real guests do without

    engine = simulated.engine(around, settings)
    # tests/unit/engine/simulated/test_port.py compares the two.
    controllers = EmbeddedControllers(cast(Engine, engine), client, machinery, around, store)
    simulated.connect(engine, controllers.program)
    return controllers


def engine_settings(machine_settings: MachineSettings, services: str) -> EngineSettings:
    """Return the start options as settings of the engine."""
    images = ImageSettings(
        allow=machine_settings.image_hosts,
        mirrors=machine_settings.mirrors,
        url_mirrors=machine_settings.url_mirrors,
        insecure_registries=frozenset(machine_settings.insecure_registries),
        archives=machine_settings.archives,
        keep_seconds=machine_settings.image_retention * 86400.0,
    )
    networking = NetworkSettings(mode=machine_settings.network, pod_network=machine_settings.pod_network, service_network=services)  # type: ignore[arg-type]  # a choice
    return EngineSettings(
        images=images,
        networks=networking,
        pools=machine_settings.pools,
        host_paths=machine_settings.host_paths,
        shares=machine_settings.shares,
        memory_overcommit=machine_settings.memory_overcommit,
    )
