"""One running server: everything constructed, wired, started and stopped in order."""

import asyncio
import errno
import gc
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

import orjson

from paddock.apiserver.api import Api
from paddock.apiserver.builtin import namespaces, served, services
from paddock.apiserver.custom import assembly
from paddock.apiserver.edge import connection
from paddock.apiserver.edge.server import Server
from paddock.apiserver.housekeeping import bootstrap, heartbeat, presence
from paddock.apiserver.housekeeping.house import House
from paddock.apiserver.parts import Parts
from paddock.apiserver.resources.registry import Registry
from paddock.apiserver.security import issuer as issuing
from paddock.apiserver.security.audit import policy as audit_policy
from paddock.apiserver.security.audit.file import AuditFile, Nowhere, Rotation
from paddock.apiserver.security.audit.log import AuditLog
from paddock.apiserver.security.deadlines import Deadlines
from paddock.apiserver.security.flow.control import FlowControl
from paddock.apiserver.security.flow.metrics import Metrics
from paddock.apiserver.security.guard import Guard
from paddock.apiserver.security.issuer import Issuer
from paddock.apiserver.security.rbac import Rbac
from paddock.apiserver.security.reviewing import Reviews
from paddock.app import loop
from paddock.app.credentials import RENEW_SECONDS, Credentials
from paddock.app.places import Places
from paddock.app.settings import Limits, Settings
from paddock.base.errors import Terminal
from paddock.schema.kind import Settings as AdmissionSettings
from paddock.store.contract import Key, Store
from paddock.store.memory import MemoryStore
from paddock.store.sqlite import open_store

if TYPE_CHECKING:
    from paddock.app.hosting import Hosting

_LOG = logging.getLogger(__name__)
_INSTANCES = "virtualmachineinstances.kubevirt.io"


class Running:
    """A server that is up."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._places = Places(settings.root)
        self.port = 0
        self.has_kubeconfig = False
        self._hosting: asyncio.Task[Hosting] | None = None

    async def start(self) -> None:
        """Come up; when this returns the server answers."""
        gc.disable()
        self._places.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.store: Store = MemoryStore() if self._settings.in_memory else open_store(self._places.store)
        registry = Registry()
        rbac = Rbac(self.store, open_to_all=self._settings.open_to_all)
        host_disks = tuple(str(each) for each in self._settings.machines.host_paths)
        admission = AdmissionSettings(controllers=self._settings.controllers, host_disk_paths=host_disks)
        registry.add(*served.resources(admission, rbac, self._settings.network))
        self.parts = Parts(self.store, registry, judge=rbac.answers, off=self._settings.admission_off)
        self._lines, policy = self._audit()
        journal = AuditLog(self._lines, policy, self.parts.clock)
        credentials = Credentials(self._settings)
        tokens = credentials.tokens(self.parts)
        identities = credentials.identities(tokens, self.parts)
        given = self._settings.limits
        flows = FlowControl(self.store, given.requests, given.request_seconds / 4)
        self.api = Api(self.parts, Guard(identities, rbac), journal, (flows, Deadlines(given.request_seconds)))
        self.api.paths["/metrics"] = Metrics(flows, self._lines.counted).answer
        self.api.subresources.update(Reviews(self.parts, identities, rbac, tokens).handlers())
        self._starting = "the server is starting"
        self.api.health.add_ready("startup", lambda: self._starting)
        self.api.health.add_ready("store", lambda: self.store.unavailable)
        self.api.subresources["", "namespaces", "finalize", "update"] = lambda call: namespaces.finalize(self.parts, call)
        # Users' kinds are there before anybody may ask for them.
        ending = assembly.install(self.parts)
        await ending.begin()
        self._ending = asyncio.create_task(ending.run())
        await self._bootstrap()
        self._house = House(self.parts, credentials.trusted.decode(), tokens)
        if credentials.clients is not None:
            self._house.sign(credentials.clients)
        self._house.start()
        self._edge = Server(self.api, tls=credentials.serving.context, limits=_edge_limits(given))
        self._edge.census.tell = self.api.refused
        self.port = await self._listen()
        issuer = Issuer(tokens, self._settings.accounts.keys_uri or self.address + issuing.KEYS)
        self.api.paths.update({issuing.CONFIGURATION: issuer.answer, issuing.KEYS: issuer.answer})
        told = self._settings.advertise or self._settings.host
        host = presence.this_host(told)
        await presence.ensure(self.parts, host, self.port, services.own_address(self._settings.network))
        alive = heartbeat.Heartbeat(self.parts, host)
        await alive.beat()
        self._house.every(heartbeat.SECONDS, alive.beat)
        self.has_kubeconfig = credentials.write_kubeconfig(self.address)
        self._house.every(RENEW_SECONDS, credentials.renew)
        self._starting = ""
        self._host_machines(host.name, credentials.trusted)
        loop.spare_the_collector()

    async def _bootstrap(self) -> None:
        await bootstrap.ensure(self.parts)
        if self._settings.controllers:
            self._claim_guests()

    async def _listen(self) -> int:
        host, port = self._settings.host, self._settings.port
        try:
            return await self._edge.listen(host, port)
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno == errno.EADDRINUSE:
                why, fix = "another program uses that port", "end it, or choose another port: --listen 127.0.0.1:0 takes one that is free"
            else:
                fix = "name an address of this host and a port that you may use: --listen ADDRESS:PORT"
            raise Terminal(f"cannot listen on {host}:{port}", why=why, fix=fix) from error

    def _claim_guests(self) -> None:
        """Guests of another store's are not touched: this start ends before anything is looked after."""
        from paddock.app import residents  # noqa: PLC0415 - a server without machines does without the engine

        system = self.store.get(Key("namespaces", "", "kube-system"))
        cluster = orjson.loads(system.value)["metadata"]["uid"] if system is not None else ""
        residents.claim(self._places.engine, cluster, self._knows_any)

    def _knows_any(self, machines: Collection[str]) -> bool:
        found = (orjson.loads(each.value)["metadata"]["uid"] for each in self.store.scan(_INSTANCES))
        return any(uid in machines for uid in found)

    def _host_machines(self, node: str, authority: bytes) -> None:
        if self._settings.controllers:
            self._hosting = asyncio.create_task(self._begin_hosting(node, authority), name="hosting")
            self._hosting.add_done_callback(_told)

    async def _begin_hosting(self, node: str, authority: bytes) -> "Hosting":
        from paddock.app.controllers.surroundings import Surroundings  # noqa: PLC0415 - a server without machines does without the engine
        from paddock.app.hosting import Hosting  # noqa: PLC0415

        around = Surroundings(self._places.engine, self._settings.machines, self._settings.network, node, authority, lambda: self.address)
        hosting = Hosting(self.api, self._edge, self.parts, around)
        await hosting.start()
        return hosting

    @property
    def address(self) -> str:
        """Where clients find it."""
        host = self._settings.advertise or self._settings.host
        host = "127.0.0.1" if host in ("", "0.0.0.0") else "::1" if host == "::" else host
        return f"https://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def stop(self) -> None:
        """Finish what was begun and go down."""
        self._starting = "the server is stopping"
        if self._hosting is not None:
            await (await self._hosting).stop()
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

    def _audit(self) -> tuple[AuditFile | Nowhere, audit_policy.Policy | audit_policy.Plain]:
        given = self._settings.audit
        if given.policy is None and given.level == "None":
            return Nowhere(), audit_policy.Plain("None")
        rotation = Rotation(bytes=given.largest_bytes, files=given.files, days=given.days)
        lines = AuditFile(given.path or self._places.audit, rotation, strict=given.strict)
        return lines, audit_policy.Plain("Metadata") if given.policy is None else audit_policy.read(given.policy)


def _edge_limits(given: Limits) -> connection.Limits:
    return connection.Limits(
        head_bytes=given.head_bytes,
        body_bytes=given.body_bytes,
        receive_seconds=given.receive_seconds,
        idle_seconds=given.idle_seconds,
        send_seconds=given.send_seconds,
        connections=given.connections,
        connections_per_address=given.connections_per_address,
    )


def _told(task: "asyncio.Task[Hosting]") -> None:
    """A start that broke has to be seen by somebody."""
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("machines are not looked after", exc_info=task.exception())
