"""A running operator: the controllers of other dialects, and the endpoints for health and metrics.

endpoints listen -> required kinds are served and ours -> caches synced -> (leader elected) -> controllers run        in reverse at the end
"""

import asyncio
import logging
import socket
from collections.abc import Sequence

from paddock.app.operator import definitions, metricscertificate, neededrights
from paddock.app.operator.metricsaccess import MetricsAccess
from paddock.app.operator.metricscertificate import MetricsCertificate
from paddock.app.operator.rights import MissingRights
from paddock.app.operator.settings import ListenAddress, MetricsSecurity, OperatorSettings
from paddock.app.server.probes import HEALTH, METRICS, Probes
from paddock.base import together
from paddock.base.errors import PaddockError, Terminal
from paddock.dialects import fronts
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.election import LeaseTerms
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager

_LOG = logging.getLogger(__name__)
COMPONENT = "paddock-operator"
# How often it is asked for kinds that are missing.
_AGAIN_SECONDS = 5.0
# How often it is asked whether rights were cut.
_RIGHTS_SECONDS = 60.0


class Operator:
    """The controllers that are wanted, against one API, or two when the front objects are in another."""

    def __init__(
        self, settings: OperatorSettings, client: Client, machinery: Machinery, *, identity: str, front: Client | None = None
    ) -> None:
        self._settings = settings
        self.program = ControllerManager(
            client, component=COMPONENT, instance=identity, machinery=machinery, terms=_terms(settings, identity)
        )
        self._missing = [MissingRights(client, "", neededrights.of(settings), settings.fronts.resync_seconds or _RIGHTS_SECONDS)]
        self._programs = [self.program]
        other = None
        if front is not None:
            other = ControllerManager(front, component=COMPONENT, instance=identity, machinery=machinery, api="front")
            self.program.join(other)
            self._programs.append(other)
            self._missing.append(MissingRights(front, "front: "))
        fronts.wire(self.program, settings.fronts, other)
        self._lacking = "required resources not checked yet"
        self.program.health.add_ready("definitions", lambda: self._lacking)
        self.program.health.add_ready("rights", lambda: "; ".join(filter(None, (each.problem for each in self._missing))))
        self._probes: list[Probes] = []
        self._certificate: MetricsCertificate | None = None
        # where the pages are: /metrics, then the others; None where they are not served
        self.ports: tuple[int | None, int | None] = (None, None)

    async def run(self) -> None:
        """Work until cancelled. Raises `Foreign`, and what a controller or the election ended with."""
        await self._serve()
        try:
            work = [self._control(), *(each.watch() for each in self._missing)]
            if self._certificate is not None:
                work.append(metricscertificate.keep_fresh(self._certificate))
            await together.run(work, until=asyncio.FIRST_COMPLETED)
        finally:
            for each in self._probes:
                await each.close()

    async def _control(self) -> None:
        await self._wait_for_definitions()
        await self.program.run()

    async def _serve(self) -> None:
        metrics, health = self._settings.metrics, self._settings.health
        if metrics is not None and metrics == health and self._settings.security is None:
            port = await self._listen(metrics, HEALTH | METRICS, "METRICS_BIND_ADDRESS")
            self.ports = (port, port)
        else:
            ports = (
                await self._listen(metrics, METRICS, "METRICS_BIND_ADDRESS"),
                await self._listen(health, HEALTH, "HEALTH_PROBE_BIND_ADDRESS"),
            )
            self.ports = ports
        _LOG.info("metrics and health endpoints listening", extra={"metrics": self.ports[0], "health": self.ports[1]})

    async def _listen(self, address: ListenAddress | None, pages: frozenset[str], variable: str) -> int | None:
        if address is None:
            return None
        security = self._settings.security
        probes = self._secure(security, pages) if pages == METRICS and security is not None else Probes(self.program.health, pages)
        self._probes.append(probes)
        try:
            return await probes.listen(address.host, address.port)
        except OSError as error:
            place = f"{address.host or 'all addresses'}, port {address.port}"
            raise Terminal(f"cannot serve pages on {place}", why=str(error), fix=f"choose another address with {variable}") from error

    def _secure(self, security: MetricsSecurity, pages: frozenset[str]) -> Probes:
        clock = self.program.machinery.clock
        self._certificate = metricscertificate.find(security, socket.gethostname(), clock)
        access = MetricsAccess(self.program.client, clock)
        return Probes(self.program.health, pages, tls=self._certificate.context, guard=access.refusal)

    async def _wait_for_definitions(self) -> None:
        """Until every kind that is needed is served and, where it is a front kind, is the one that is known here."""
        reported: Sequence[str] = ()
        while True:
            lacking = await self._missing_definitions()
            self._lacking = "; ".join(lacking)
            if not lacking:
                _LOG.info("all required resources available")
                return
            if lacking != reported:
                for each in lacking:
                    _LOG.warning("operator not ready", extra={"problem": each})
                reported = lacking
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _missing_definitions(self) -> Sequence[str]:
        found: list[str] = []
        for each in self._programs:
            where = "" if each is self.program else "front: "
            try:
                for target, version in await definitions.older(each.client, each.informers.needed()):
                    _LOG.info("using an older API version", extra={"resource": f"{where}{target.qualified}", "version": version})
                    each.informers.settle(target, version)
                found += [f"{where}{said}" for said in await definitions.problems(each.client, each.informers.needed())]
            except definitions.ForeignDefinition:
                raise
            except PaddockError as problem:
                found.append(f"{where}{problem}")
        return found


def _terms(settings: OperatorSettings, identity: str) -> dict[str, LeaseTerms]:
    lease = settings.lease
    if not lease.wanted:
        return {}
    return {
        dialect: LeaseTerms(
            key=Key(settings.namespace, f"{lease.name}-{dialect}"),
            identity=identity,
            duration=lease.duration,
            deadline=lease.deadline,
            retry=lease.retry,
        )
        for dialect in sorted(settings.fronts.wanted)
    }
