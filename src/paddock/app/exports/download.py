"""Fetching what is exported: a disk as it is or compressed, a snapshot, the manifests of the machine. Whoever has the token may."""

import base64
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import orjson

from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.exports.sources import ExportSource, ExportSources, ExportUnavailable
from paddock.kubevirt.controllers.exports.targets import EXPORTS, SECRETS
from paddock.kubevirt.kinds.export import VirtualMachineExport
from paddock.kubevirt.plan.storage import exports as plan
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, StreamSink

PREFIX = plan.PREFIX.encode() + b"/"
_BINARY, _JSON, _PLAIN = "application/octet-stream", "application/json", "text/plain; charset=utf-8"


class Downloads:
    """Answers requests of the export paths."""

    def __init__(self, client: Client, sources: ExportSources, volumes: Volumes) -> None:
        self._client = client
        self._sources = sources
        self._volumes = volumes

    async def answer(self, request: HttpRequest) -> Answer:
        """The handler of these paths."""
        if request.method not in ("GET", "HEAD"):
            return _refused(405, "fetch with GET")
        words = request.path.removeprefix(f"{plan.PREFIX}/").split("/")
        if len(words) < 3:
            return _refused(404, "there is no such export")
        key, rest = Key(words[0], words[1]), words[2:]
        try:
            export = await self._client.get(EXPORTS, key)
            if not await self._may(request, export):
                return _refused(401, f"the header {plan.TOKEN_HEADER} has no token that opens this export")
            found = await self._sources.find(export)
        except NotFound:
            return _refused(404, f"there is no export {key}")
        if isinstance(found, ExportUnavailable):
            return _refused(503, found.message)
        return self._found(request, export, found, rest)

    async def _may(self, request: HttpRequest, export: VirtualMachineExport) -> bool:
        given = request.headers.get(plan.TOKEN_HEADER, "")
        try:
            secret = await self._client.get(SECRETS, Key(export.metadata.namespace or "", plan.secret_name(export)))
        except NotFound:
            # There is no token yet, so nobody has it.
            return False
        wanted = base64.b64decode((secret.data or {}).get("token", ""))
        return bool(wanted) and hmac.compare_digest(given.encode(), wanted)

    def _found(self, request: HttpRequest, export: VirtualMachineExport, export_source: ExportSource, rest: list[str]) -> Answer:
        if rest[0] == "manifests" and export_source.machine is not None and len(rest) == 2:
            return _manifest(export, export_source, rest[1])
        volume = next((each for each in export_source.volumes if len(rest) == 3 and rest[0] == "volumes" and each.name == rest[1]), None)
        names = {plan.FORMATS[name]: name for name in volume.formats} if volume is not None else {}
        if volume is None or rest[-1] not in names:
            return _refused(404, f"the export {export.metadata.name} has nothing of this name")
        if request.method == "HEAD":
            return HttpResponse(200, b"", (("content-type", _BINARY),))
        return StreamResponse(200, self._sender(volume, names[rest[-1]]), (("content-type", _BINARY),))

    def _sender(self, volume: plan.ExportedVolume, format: str) -> Callable[[StreamSink], Awaitable[None]]:
        async def send(sink: StreamSink) -> None:
            pieces: AsyncIterator[bytes]
            pieces = self._volumes.export_snapshot(volume.id, format) if volume.is_snapshot else self._volumes.export(volume.id, format)
            async with aclosing(pieces) as open_pieces:  # type: ignore[type-var]  # an asynchronous generator
                async for piece in open_pieces:
                    sink.write(piece)
                    await sink.drained()
                    if sink.closed:
                        return

        return send


def _manifest(export: VirtualMachineExport, export_source: ExportSource, name: str) -> Answer:
    if name == "all":
        body = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": [export_source.machine]})
        return HttpResponse(200, body, (("content-type", _JSON),))
    if name == "secret":
        metadata = {"name": f"header-secret-{export.metadata.name}", "namespace": export.metadata.namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": f"{plan.TOKEN_HEADER}:"}}
        return HttpResponse(200, orjson.dumps(secret), (("content-type", _JSON),))
    return _refused(404, "there is no such manifest")


def _refused(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, text.encode(), (("content-type", _PLAIN),))
