"""Uploads and admission of the reference cluster, as CDI has them: tokens from an aggregated API, a proxy that writes a disk into a claim,
and the webhooks for DataVolumes (`cdiwebhooks.py`).

`python -m tests.reference.cluster.uploads DIRECTORY` listens on the node's network. A pod with that network stands for CDI's pods, so
Services and port forwards lead here. As in CDI, a raw disk may come compressed with gzip, may be no larger than what the claim leaves
after the filesystem's overhead, and is refused once the claim has one.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import ssl
import sys
import threading
import zlib
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

from paddock.kubernetes.storage import claimsizes
from paddock.server.security.pki import Authority
from tests.reference import cdiwebhooks
from tests.reference.client import Api
from tests.reference.cluster import content, control
from tests.reference.cluster.forward import python
from tests.reference.cluster.namespace import ADDRESS, Machine
from tests.reference.cluster.storage import guest_size
from tests.reference.server import Access, write_kubeconfig

NAMESPACE, PROXY = "cdi", "cdi-uploadproxy"
PROXY_PORT, _API_PORT = 8443, 8444
_GROUP, _VERSION = "upload.cdi.kubevirt.io", "v1beta1"
_LABELS = {"cdi.kubevirt.io": PROXY}
_TOKENS = re.compile(rf"/apis/{_GROUP}/{_VERSION}/namespaces/([^/]+)/uploadtokenrequests")
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
Data = dict[str, Any]


def install(machine: Machine) -> None:
    """Start the server, and the objects that lead to it."""
    folder = machine.directory / "files" / "cdi"
    services = [f"{name}.{NAMESPACE}.svc" for name in (PROXY, "cdi-api")]
    authority = Authority(folder)
    authority.server(services)
    access = control.access(machine)
    write_kubeconfig(folder / "kubeconfig", control.URL, access.token, access.authority)
    start(machine)
    control.apply(machine, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    control.wait("the ServiceAccount of CDI", lambda: bool(control.kubectl(machine, "get", "sa", "default", "-n", NAMESPACE, "-o", "name")))
    control.apply(machine, *_objects(authority.certificate.decode()))


def start(machine: Machine) -> None:
    """Start the server, also again after it was killed."""
    machine.start_outside("uploads", *python(__name__, str(machine.directory)), on_network=True)


def kill(machine: Machine) -> None:
    """Kill the server."""
    machine.run("kill", "-9", _pid_file(machine.directory).read_text())


def _pid_file(directory: Path) -> Path:
    return directory / "files" / "cdi" / "pid"


def _objects(authority: str) -> list[Data]:
    metadata = {"name": PROXY, "namespace": NAMESPACE, "labels": _LABELS}
    container = {"name": PROXY, "image": control.PAUSE, "imagePullPolicy": "Never", "ports": [{"containerPort": PROXY_PORT}]}
    service = {"name": "cdi-api", "namespace": NAMESPACE, "port": 443}
    tls: Data = {"caBundle": base64.b64encode(authority.encode()).decode(), "service": service}
    registration = {"group": _GROUP, "version": _VERSION, "groupPriorityMinimum": 1000, "versionPriority": 15, **tls}
    status = {"uploadProxyCA": authority, "filesystemOverhead": {"global": claimsizes.OVERHEAD}}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"hostNetwork": True, "containers": [container]}},
        _service(PROXY, PROXY_PORT),
        _service("cdi-api", _API_PORT),
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{_VERSION}.{_GROUP}"},
            "spec": registration,
        },
        # KubeVirt reads the overhead of file systems from the second only where the first is.
        {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": {"name": "cdi"}, "spec": {}},
        {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDIConfig", "metadata": {"name": "config"}, "spec": {}, "status": status},
        *cdiwebhooks.configurations(lambda path: {**tls, "service": {**service, "path": path}}),
    ]


def _service(name: str, port: int) -> Data:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"cdi.kubevirt.io": name}}
    spec = {"selector": _LABELS, "ports": [{"port": 443, "targetPort": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: Data | str = "") -> None:
        """Answer with JSON or text."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it was sent: in chunks, or with a length. Raises `EOFError` where it ends too early."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            yield from self._exactly(int(self.headers.get("Content-Length", "0")))
            return
        while size := int(self.rfile.readline() or b"-1", 16):
            yield from self._exactly(size)
            self.rfile.readline()
        self.rfile.readline()

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            if not (piece := self.rfile.read(min(size, _PIECE)) if size > 0 else b""):
                raise EOFError("the body ended too early")
            size -= len(piece)
            yield piece


class Tokens(_Handler):
    """The API that the API server aggregates, which has asked for the user's rights already, and the webhooks."""

    key = b""

    def __init__(self, api: Api, *arguments: Any) -> None:
        self._api = api
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer discovery."""
        resource = {"name": "uploadtokenrequests", "kind": "UploadTokenRequest", "namespaced": True, "verbs": ["create"]}
        if self.path.rstrip("/") == f"/apis/{_GROUP}/{_VERSION}":
            found = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{_GROUP}/{_VERSION}", "resources": [resource]}
            self.answer(200, found)
        else:
            self.answer(404)

    def do_POST(self) -> None:
        """Give a token, whether there is such a claim or not, or answer a review."""
        path, request = self.path.partition("?")[0], json.loads(b"".join(self.pieces()))
        if path in cdiwebhooks.WEBHOOKS:
            self.answer(200, cdiwebhooks.answer(self._api, path, request))
            return
        place = _TOKENS.fullmatch(path)
        if place is None:
            self.answer(404)
            return
        self.answer(201, {**request, "status": {"token": _signed(self.key, f"{place[1]}/{request['spec']['pvcName']}")}})


class Proxy(_Handler):
    """The upload proxy, with the upload server that CDI starts for each claim."""

    key = b""
    volumes = Path()
    busy: set[str] = set()
    lock = threading.Lock()

    def __init__(self, api: Api, *arguments: Any) -> None:
        self._api = api
        super().__init__(*arguments)

    def do_POST(self) -> None:
        """Take a disk."""
        self.close_connection = True
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        place = _opened(self.key, token)
        if self.path not in ("/v1beta1/upload", "/v1alpha1/upload"):
            self.answer(404)
        elif kind.lower() != "bearer":
            self.answer(400)
        elif not place:
            self.answer(401)
        else:
            with self.lock:
                is_first = place not in self.busy
                self.busy.add(place)
            if not is_first:
                self.answer(503, "upload in progress")
                return
            try:
                self.answer(*self._take(*place.split("/")))
            finally:
                self.busy.discard(place)

    def _take(self, namespace: str, name: str) -> tuple[int, str]:
        disk = self._api.request("GET", f"/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datavolumes/{name}")
        if disk.body.get("status", {}).get("phase") != "UploadReady":
            return 503, f"the claim {name} is not ready for an upload"
        claim = self._api.request("GET", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}").body
        file = self.volumes / claim["spec"]["volumeName"] / "disk.img"
        if file.exists():
            return 409, f"the claim {name} has been uploaded to already"
        try:
            content.write(_raw(self.pieces()), file, guest_size(claim))
        except (EOFError, OSError, zlib.error) as problem:
            return 500, f"Saving stream failed: {problem}"
        except content.TooLarge as problem:
            return 400, str(problem)
        return 200, ""


def _raw(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the raw disk of an upload."""
    first = next(pieces, b"")
    press = zlib.decompressobj(16 + zlib.MAX_WBITS) if first.startswith(_GZIP) else None
    for piece in chain((first,), pieces):
        yield from _unpacked(press, piece)
    if press is not None and not press.eof:
        raise EOFError("unexpected EOF")


def _unpacked(press: Any, piece: bytes) -> Iterator[bytes]:
    if press is None:
        yield piece
        return
    yield press.decompress(piece, _PIECE)
    while press.unconsumed_tail:
        yield press.decompress(press.unconsumed_tail, _PIECE)


def _signed(key: bytes, place: str) -> str:
    return f"{place.encode().hex()}.{hmac.new(key, place.encode(), hashlib.sha256).hexdigest()}"


def _opened(key: bytes, token: str) -> str:
    """Return the place that a token is good for; empty for another's token."""
    try:
        place = bytes.fromhex(token.partition(".")[0]).decode()
    except ValueError:
        return ""
    return place if hmac.compare_digest(token.encode(), _signed(key, place).encode()) else ""


def _serve(directory: Path) -> None:
    folder = directory / "files" / "cdi"
    written = json.loads((folder / "kubeconfig").read_text())
    authority = directory / "files" / "certificates" / "apiserver.crt"
    access = Access(control.URL, written["users"][0]["user"]["token"], authority, folder / "kubeconfig")
    Tokens.key = Proxy.key = access.token.encode()
    Proxy.volumes = directory / "volumes"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    api = Api(access)
    servers = [
        ThreadingHTTPServer((ADDRESS, _API_PORT), partial(Tokens, api)),
        ThreadingHTTPServer(("", PROXY_PORT), partial(Proxy, api)),
    ]
    for server in servers:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    _pid_file(directory).write_text(str(os.getpid()))
    threading.Event().wait()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
