"""The ways from here to what serves disks. Services inside of a cluster are reached as `kubectl port-forward` reaches them."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import entries, holds, texts
from paddock.fleet.guests import forwarding
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.errors import Forbidden
from paddock.kubernetes.client.http import websocket
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt import disklinks
from paddock.kubevirt.disklinks import DiskLink, UploadPlace

SERVICES = kind_target("", "Service")
_PODS = kind_target("", "Pod")
_MAPS = kind_target("", "ConfigMap")
_INNER = re.compile(r"([^.]+)\.([^.]+)\.svc(\..*)?")
_PROXY, _CDI = "cdi-uploadproxy", "cdi"
_BUNDLE = "cdi-uploadproxy-signer-bundle"


class NoWay(Terminal):
    """A Service of a cluster cannot be reached from here."""


@contextlib.asynccontextmanager
async def reachable(side: MoveSide, link: DiskLink) -> AsyncIterator[DiskLink]:
    """A link that works from here. One to a Service inside of the cluster goes through the API server."""
    link = msgspec.structs.replace(link, owner=side.title)
    parts = urlsplit(link.url)
    inner = _INNER.fullmatch(parts.hostname or "")
    if inner is None:
        yield link
        return
    async with _forwarded(side, Key(inner[2], inner[1]), parts.port or 443) as port:
        here = f"{parts.scheme}://127.0.0.1:{port}"
        urls = {"url": here + parts.path, "raw_url": here + urlsplit(link.raw_url).path if link.raw_url else ""}
        yield msgspec.structs.replace(link, **urls, tls_name=parts.hostname or "")


@contextlib.asynccontextmanager
async def upload(side: MoveSide, claim: str) -> AsyncIterator[DiskLink]:
    """The link for an upload into a claim."""
    place = await upload_place(side)
    async with reachable(side, await disklinks.upload_link(side.client, side.namespace, claim, place)) as link:
        yield link


async def try_uploads(side: MoveSide) -> None:
    """Raise `NoUploads` or `NoWay` if the upload proxy of a server is not there, or is inside of a cluster that does not forward."""
    place = await upload_place(side)
    async with reachable(side, DiskLink(place.address, place.authority, "", kind=disklinks.UPLOAD)):
        pass


async def upload_place(side: MoveSide) -> UploadPlace:
    """Return the upload proxy of a server: the one that its CDI names, or else its Service. Raises `NoUploads`."""
    found = await disklinks.configured_uploads(side.client)
    if found.address:
        return found
    service = await _upload_service(side)
    if service is None:
        why = "CDIConfig names no uploadProxyURL, and you may see no Service cdi-uploadproxy"
        raise disklinks.NoUploads("disks cannot be uploaded", why=why, fix="set uploadProxyURLOverride in the CDI object")
    authority = found.authority
    if not authority:
        authority = await _bundle(side, service.namespace)
    return UploadPlace(f"https://{service.name}.{service.namespace}.svc", authority)


async def _bundle(side: MoveSide, namespace: str) -> str:
    """Return the certificates of CDI's own authority; nothing if it has none."""
    try:
        return texts(await side.client.find(_MAPS, Key(namespace, _BUNDLE)), "data", "ca-bundle.crt")
    except Forbidden as error:
        why = f"you may not get ConfigMap {namespace}/{_BUNDLE}, which has the authority of CDI's upload proxy"
        fix = "ask for that right, or for uploadProxyURLOverride in the CDI object"
        raise disklinks.NoUploads("disks cannot be uploaded", why=why, fix=fix) from error


async def _upload_service(side: MoveSide) -> Key | None:
    try:
        services = (await side.client.list(SERVICES, Selection(labels=f"cdi.kubevirt.io={_PROXY}"))).items
        found = next((Key(each["metadata"]["namespace"], each["metadata"]["name"]) for each in services), None)
    except Forbidden:
        # Most installations have it here. A user who may not list may still be allowed to forward.
        found = Key(_CDI, _PROXY)
    return found


@contextlib.asynccontextmanager
async def _forwarded(side: MoveSide, service: Key, port: int) -> AsyncIterator[int]:
    """A port of this host that leads to a Service, for as long as the block lasts."""
    access, pod, inside = side.session.access, "", 0
    open_ones: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            open_ones.add(task)
            task.add_done_callback(open_ones.discard)
        try:
            async with websocket.pod_port(access, service.namespace, pod, inside) as stream:
                await forwarding.exchange(stream, reader, forwarding.writing(writer))
        except (PaddockError, OSError, asyncio.CancelledError):
            # Whoever reads at this end notices.
            pass
        finally:
            writer.close()

    try:
        pod, inside = await _endpoint(side, service, port)
        # A right that is missing fails here, where the error can name it, and not in a connection that breaks.
        async with websocket.pod_port(access, service.namespace, pod, inside):
            pass
    except Forbidden as error:
        fix = f"ask for the right to forward ports of pods in namespace {service.namespace}, or for an address from outside"
        raise NoWay(f"Service {service} is inside of the cluster only", why=str(error), fix=fix) from error
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones)


async def _endpoint(side: MoveSide, key: Key, port: int) -> tuple[str, int]:
    """Return a ready pod behind a Service, and the port of the pod that a port of the Service leads to."""
    service = await side.client.get(SERVICES, key)
    labels = ",".join(f"{name}={value}" for name, value in (service["spec"].get("selector") or {}).items())
    pods = (await side.client.list(_PODS, Selection(namespace=key.namespace, labels=labels))).items if labels else []
    pod = next((each for each in pods if holds(each, "Ready")), None)
    found = next((each for each in entries(service, "spec", "ports") if each.get("port") == port), None)
    if pod is None or found is None:
        why = f"no pod behind it is ready, or it has no port {port}"
        raise NoWay(f"Service {key} cannot be reached", why=why, fix="see its pods")
    return texts(pod, "metadata", "name"), _number(pod, found.get("targetPort") or port)


def _number(pod: Data, port: int | str) -> int:
    """Return the number of a port of a pod, which may have a name."""
    if isinstance(port, int):
        return port
    ports = [each for container in entries(pod, "spec", "containers") for each in container.get("ports") or ()]
    return next(int(each["containerPort"]) for each in ports if each.get("name") == port)
