"""The controller of exports: a token, addresses, and an end."""

import base64
import secrets
import string
from collections.abc import Callable

import msgspec

from paddock.base.clock import Clock
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.exports.sources import ExportSource, ExportSources, ExportUnavailable
from paddock.kubevirt.controllers.exports.targets import EXPORTS, SECRETS
from paddock.kubevirt.kinds.export import ExportStatus, VirtualMachineExport
from paddock.kubevirt.plan.storage import exports as plan

_TOKEN_LENGTH = 20
_LETTERS = string.ascii_letters + string.digits
# A machine that stops is heard of; that its QEMU has let go of the disk is not.
_BUSY_SECONDS = 2.0


class ExportReconciler(KindReconciler):
    def __init__(
        self, client: Client, informer: Informer, sources: ExportSources, clock: Clock, address: Callable[[], str], authority: str
    ) -> None:
        super().__init__(informer)
        self._client = client
        self._informer = informer
        self._statuses = StatusWriter(client, EXPORTS, informer.expectations)
        self._sources = sources
        self._clock = clock
        self._address = address
        self._authority = authority

    async def work(self, seen: CachedObject) -> Outcome:
        """Open an export, or end it."""
        export = seen.read(EXPORTS)
        left = (ages.seconds_of(plan.expires(export)) or 0.0) - self._clock.seconds()
        if left <= 0:
            await self._end(seen)
            return DONE
        await self._token(seen, export)
        found = await self._sources.find(export)
        now, before = ages.timestamp(self._clock.seconds()), export.status or ExportStatus()
        if isinstance(found, ExportUnavailable):
            await self._statuses.write(seen, plan.waiting(before, export, found.reason, found.message, now))
            return again(min(left, _BUSY_SECONDS) if found.reason == "InUse" else left)
        await self._statuses.write(seen, self._ready(before, export, found, now))
        return again(left)

    def _ready(self, before: ExportStatus, export: VirtualMachineExport, export_source: ExportSource, now: str) -> ExportStatus:
        if not export_source.volumes:
            return plan.ready(before, export, None, now)
        links = plan.links(export, export_source.volumes, self._address(), self._authority, manifests=export_source.machine is not None)
        name = export.spec.source.name if export.spec.source.kind == "VirtualMachine" else ""
        return plan.ready(before, export, links, now, machine=name, note=export_source.left_out)

    async def _token(self, seen: CachedObject, export: VirtualMachineExport) -> None:
        """A token of our own, where none was given."""
        if export.spec.tokenSecretRef is not None:
            return
        token = "".join(secrets.choice(_LETTERS) for _ in range(_TOKEN_LENGTH))
        owner = {"apiVersion": EXPORTS.api_version, "kind": EXPORTS.kind, "name": seen.key.name, "uid": seen.meta.uid, "controller": True}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": plan.secret_name(export), "namespace": seen.key.namespace, "ownerReferences": [owner]},
            "data": {"token": base64.b64encode(token.encode()).decode()},
        }
        if (export.status or ExportStatus()).tokenSecretRef is None:
            try:
                await self._client.request("POST", SECRETS.path(seen.key.namespace), body=msgspec.json.encode(body))
            except AlreadyExists:
                return

    async def _end(self, seen: CachedObject) -> None:
        try:
            await self._client.delete(EXPORTS, seen.key, DeletionOptions(uid=seen.meta.uid))
        except NotFound:
            return


def wire(program: ControllerManager, volumes: Volumes, address: Callable[[], str], authority: str) -> ExportSources:
    """Add the controller to a program; what is returned finds what is fetched."""
    informer, sources = program.informers.of(EXPORTS), ExportSources(program.client, program.informers, volumes)
    exports = ExportReconciler(program.client, informer, sources, program.machinery.clock, address, authority)
    controller = Controller("virtualmachineexports", informer, exports.reconcile, machinery=program.machinery, recorder=program.recorder)

    def here(change: CacheChange) -> list[Key]:
        return [seen.key for seen in informer.cache.by("namespace", change.seen.key.namespace)]

    for each in (sources.claims, sources.machines, sources.snapshots, sources.volume_snapshots):
        controller.watch(each, here)
    program.add(controller)
    return sources
