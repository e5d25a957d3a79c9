"""One running server: everything constructed, wired, started and stopped in order."""

import asyncio
import errno
import importlib
import os
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import orjson

from paddock.app.directory import diskformat, guestkind
from paddock.app.directory.credentials import RENEW_SECONDS, ServerCredentials
from paddock.app.directory.paths import DataPaths
from paddock.app.options.settings import ClientLimits, ServerSettings
from paddock.app.server import hostchecks, processmetrics, served
from paddock.app.server.hostchecks import HostExamination, HostLimits, SimulatedHost
from paddock.app.server.supervision import Supervisor
from paddock.app.server.watchdog import LoopWatchdog
from paddock.base.errors import Terminal
from paddock.base.metrics import MetricsRegistry as BaseMetrics
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.admission import views
from paddock.server.api import Api
from paddock.server.builtin import components, namespaces, pods
from paddock.server.context import ServerParts
from paddock.server.custom import assembly
from paddock.server.edge import limits
from paddock.server.edge.server import Server
from paddock.server.housekeeping import bootstrap, heartbeat, installation, node
from paddock.server.housekeeping.background import BackgroundControllers
from paddock.server.objects.writing import LARGEST_OBJECT
from paddock.server.resources import kubevirtsubresources
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.security import issuer as issuing
from paddock.server.security.audit import policy as audit_policy
from paddock.server.security.audit.file import AuditFile, NullAuditFile, Rotation
from paddock.server.security.audit.log import AuditLog
from paddock.server.security.deadlines import Deadlines
from paddock.server.security.flow.control import FlowControl
from paddock.server.security.flow.metrics import MetricsEndpoint
from paddock.server.security.guard import Guard
from paddock.server.security.issuer import Issuer
from paddock.server.security.rbac import Rbac
from paddock.server.security.reviewing import Reviews
from paddock.server.store.contract import Store, StoreKey
from paddock.server.store.memory import MemoryStore
from paddock.server.store.sqlite import open_store

if TYPE_CHECKING:
    from paddock.app.controllers.standby import OutageReporter
    from paddock.app.server.enginehost import HostedEngine

_INSTANCES = "virtualmachineinstances.kubevirt.io"
# What is asked of running machines; nobody answers while the engine does not run.


class ServerHandle:
    """A server that is up."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._places = DataPaths(settings.root)
        self.port = 0
        self.has_kubeconfig = False
        self._started = False
        # keeps machines looked after, where that is wanted
        self.machines: Supervisor | None = None
        self._is_simulated = settings.controllers and settings.machines.guests == "simulated"
        self.host: HostLimits = SimulatedHost(settings.machines.nodes) if self._is_simulated else HostExamination(settings.root)

    async def start(self) -> None:
        """Come up; when this returns the server answers."""
        self.store: Store = self._open_store()
        registry = ResourceRegistry()
        rbac = Rbac(self.store, open_to_all=self._settings.open_to_all)
        registry.add(*served.resources(self._admission_settings(), rbac, *self._settings.networks))
        shown = views.VIEWS if self._settings.controllers else ()
        self.parts = ServerParts(self.store, registry, judge=rbac.answers, off=self._settings.admission_off, views=shown)
        self._lines, policy = self._audit()
        journal = AuditLog(self._lines, policy, self.parts.clock)
        credentials = ServerCredentials(self._settings)
        tokens = credentials.tokens(self.parts)
        identities = credentials.identities(tokens, self.parts)
        given = self._settings.limits
        self.parts.writer.largest = max(given.body_bytes, LARGEST_OBJECT)
        flows = FlowControl(self.store, given.requests, given.request_seconds / 4)
        self.api = Api(self.parts, Guard(identities, rbac), journal, (flows, Deadlines(given.request_seconds)))
        self._count(flows)
        self.api.subresources.update(Reviews(self.parts, identities, rbac, tokens).handlers())
        self._report_health()
        self.api.subresources["", "namespaces", "finalize", "update"] = lambda call: namespaces.finalize(self.parts, call)
        # Users' kinds are there before anybody may ask for them.
        ending = assembly.install(self.parts)
        await ending.begin()
        self._ending = asyncio.create_task(ending.run())
        await self._bootstrap()
        alone, bare = not self._settings.controllers, self._settings.bare
        self._house = BackgroundControllers(self.parts, credentials.trusted.decode(), tokens, alone=alone, bare=bare)
        if credentials.clients is not None:
            self._house.sign(credentials.clients)
        self._house.start()
        self._edge = self._server(credentials)
        self.port = await self._listen()
        issuer = Issuer(tokens, self._settings.accounts.keys_uri or self.address + issuing.KEYS)
        self.api.paths.update({issuing.CONFIGURATION: issuer.answer, issuing.KEYS: issuer.answer})
        beat = await self._announce()
        self.has_kubeconfig = credentials.write_kubeconfig(self.address)
        self._house.every(RENEW_SECONDS, credentials.renew)
        self._starting, self._started = "", True
        if self.machines is not None:
            self._authority = credentials.trusted
            self.machines.listeners.append(lambda problem: self._house.once(beat))
            self.machines.listeners.append(lambda problem: self._house.once(self._tell_installation))
            await self._tell_installation()
            self.machines.start()

    def _open_store(self) -> Store:
        """Open the store. Under its lock no other server uses the directory, so its format is noted then."""
        self._places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        store: Store = MemoryStore() if self._settings.in_memory else open_store(self._places.store)
        diskformat.check_release(store, self._settings.machines.kubevirt_release)
        if not self._settings.temporary:
            diskformat.note(self._places.root)
        if self._settings.controllers:
            guestkind.note(self._places.root, self._settings.machines.guests)
        return store

    def _admission_settings(self) -> AdmissionSettings:
        given = self._settings
        return AdmissionSettings(
            controllers=given.controllers,
            workloads=given.workloads,
            host_disk_paths=tuple(map(str, given.machines.host_paths)),
            kubevirt_release=given.machines.kubevirt_release,
        )

    def _report_health(self) -> None:
        """Serve the checks of this server, and the same as the parts of a cluster."""
        self._starting = "the server is starting"
        health = self.api.health
        health.add_ready("startup", lambda: self._starting)
        health.add_store(lambda: self.store.unavailable)
        health.add_start(lambda: "" if self._started else self._starting)
        self.api.subresources.update(components.handlers(self.parts, lambda: self.store.unavailable))
        if self._settings.workloads == "stored" or self._settings.controllers:
            self.api.subresources.update(pods.handlers(self.parts))

    async def _bootstrap(self) -> None:
        await bootstrap.ensure(self.parts)
        if self._settings.controllers:
            self._claim_guests()

    async def _listen(self) -> int:
        host, port = self._settings.host, self._settings.port
        try:
            return await self._edge.listen(host, port)
        except OSError as error:
            # asyncio puts the address into the text once more.
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            if error.errno == errno.EADDRINUSE:
                why, fix = "another program uses that port", "end it, or choose another port: --listen 127.0.0.1:0 takes one that is free"
            else:
                fix = "name an address of this host and a port that you may use: --listen ADDRESS:PORT"
            raise Terminal(f"cannot listen on {host}:{port}", why=why, fix=fix) from error

    def _claim_guests(self) -> None:
        """Guests of another store's are not touched: this start ends before anything is looked after."""
        from paddock.app.directory import guests  # noqa: PLC0415 - a server without machines does without the engine

        system = self.store.get(StoreKey("namespaces", "", "kube-system"))
        cluster = orjson.loads(system.value)["metadata"]["uid"] if system is not None else ""
        guests.claim(self._places.engine, cluster, self._knows_any)

    def _knows_any(self, machines: Collection[str]) -> bool:
        found = (orjson.loads(each.value)["metadata"]["uid"] for each in self.store.scan(_INSTANCES))
        return any(uid in machines for uid in found)

    async def _announce(self) -> Callable[[], Awaitable[None]]:
        """Make this host and its server known, and keep them so."""
        address = self._settings.advertise or self._settings.host
        if self._settings.controllers:
            self.machines = Supervisor(
                self._hosting, self._standby, self._reason, partial(importlib.import_module, "paddock.app.server.enginehost")
            )
            self.api.health.add_ready("machines", self._why_not)
            if self._is_simulated:
                self.api.health.add_ready("guests-are-simulated", lambda: "")
            self.api.unready.update(dict.fromkeys((kubevirtsubresources.GROUP, bootstrap.METRICS), self._why_not))
        hosts = self._hosts(msgspec.structs.replace(node.this_host(address), problem=self._problem()))
        host = hosts[0]
        await node.ensure(self.parts, host, self.port, self._settings.networks, bare=self._settings.bare)
        hearts = [heartbeat.Heartbeat(self.parts, each, self._problem, self.host.conditions) for each in hosts]

        async def beat() -> None:
            for heart in hearts:
                await heart.beat()

        if not self._settings.bare:
            await beat()
            self._house.every(heartbeat.SECONDS, beat)
        if self._settings.controllers:
            self._house.every(hostchecks.SECONDS, self.host.examine)
        self._node, self._nodes = host.name, tuple(each.name for each in hosts)
        return beat

    def _hosts(self, host: node.NodeFacts) -> list[node.NodeFacts]:
        """Return this host, or the nodes that simulated guests seem to run on."""
        if not self._is_simulated:
            return [host]
        from paddock.engine.simulated.host import CPUS, MEMORY  # noqa: PLC0415 - real guests do without

        return [node.simulated(host, number, CPUS, MEMORY >> 10) for number in range(1, self._settings.machines.nodes + 1)]

    def _problem(self) -> node.NodeProblem | None:
        """Return the reason why this host cannot run machines; None if it can, or if nobody wants it to."""
        return self.machines.problem if self.machines is not None else None

    async def _tell_installation(self) -> None:
        await installation.report(self.parts, self._problem())

    def _why_not(self) -> str:
        problem = self._problem()
        return problem.message if problem is not None else ""

    def _hosting(self) -> "HostedEngine":
        from paddock.app.controllers.environment import ControllerEnvironment  # noqa: PLC0415 - a server without machines does without the engine
        from paddock.app.server.enginehost import HostedEngine  # noqa: PLC0415

        given = self._settings
        around = ControllerEnvironment(
            self._places.engine,
            given.machines,
            ",".join(map(str, given.networks)),
            self._node,
            self._authority,
            lambda: self.address,
            nodes=self._nodes,
            providers=given.providers,
        )
        return HostedEngine(self.api, self._edge, self.parts, around, self.host)

    def _standby(self) -> "OutageReporter":
        from paddock.app.controllers.standby import OutageReporter  # noqa: PLC0415

        return OutageReporter(self.api, self._node, self._settings.machines.kubevirt_release)

    @staticmethod
    def _reason(error: Exception) -> str:
        from paddock.app.server import enginehost  # noqa: PLC0415

        return enginehost.reason(error)

    def _server(self, credentials: ServerCredentials) -> Server:
        made = Server(self.api, tls=credentials.serving.context, limits=_edge_limits(self._settings.limits))
        made.census.tell = self.api.refused
        return made

    def _count(self, flows: FlowControl) -> None:
        """Serve what is counted, the watchdog's findings with it."""
        counted = BaseMetrics()
        self._watchdog = LoopWatchdog(counted)

        def more() -> Iterator[str]:
            return chain(self._lines.counted(), self.api.metrics.lines(), processmetrics.lines(), counted.text().splitlines())

        self.api.paths["/metrics"] = MetricsEndpoint(flows, more).answer

    @property
    def address(self) -> str:
        """The address for clients."""
        host = self._settings.advertise or self._settings.host
        host = "127.0.0.1" if host in ("", "0.0.0.0") else "::1" if host == "::" else host
        return f"https://{f'[{host}]' if ':' in host else host}:{self.port}"

    def arm_watchdog(self) -> None:
        """End the process from now on when its event loop stands still. What a start does may take long, and comes before."""
        # The first process of a container takes its guests with it.
        if os.getpid() != 1 or not self._settings.controllers:
            self._watchdog.arm(self._places.stacks)

    async def stop(self) -> None:
        """Finish what was begun and go down."""
        self._starting = "the server is stopping"
        if self.machines is not None:
            await self.machines.stop()
        self._ending.cancel()
        await asyncio.gather(self._ending, return_exceptions=True)
        await self._house.stop()
        self.parts.following.end_all()
        await self.parts.gate.close()
        await self._edge.close(self._settings.drain_seconds)
        await self.parts.caller.close()
        await self.parts.following.close()
        await self.store.close()
        self._lines.close()
        self._watchdog.stop()

    def _audit(self) -> tuple[AuditFile | NullAuditFile, audit_policy.AuditPolicy | audit_policy.Plain]:
        given = self._settings.audit
        if given.policy is None and given.level == "None":
            return NullAuditFile(), audit_policy.Plain("None")
        rotation = Rotation(bytes=given.largest_bytes, files=given.files, days=given.days)
        lines = AuditFile(given.path or self._places.audit, rotation, strict=given.strict)
        return lines, audit_policy.Plain("Metadata") if given.policy is None else audit_policy.read(given.policy)


def _edge_limits(client_limits: ClientLimits) -> limits.ConnectionLimits:
    return limits.ConnectionLimits(
        head_bytes=client_limits.head_bytes,
        body_bytes=client_limits.body_bytes,
        bodies_bytes=client_limits.bodies_bytes,
        receive_seconds=client_limits.receive_seconds,
        idle_seconds=client_limits.idle_seconds,
        send_seconds=client_limits.send_seconds,
        connections=client_limits.connections,
        connections_per_address=client_limits.connections_per_address,
    )
