"""Loopback servers that images come from: a web server that fails on command, and a container registry."""

import base64
import datetime
import gzip
import hashlib
import io
import ipaddress
import json
import re
import socket
import ssl
import struct
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Served:
    """A file as the server gives it."""

    body: bytes
    etag: str = '"one"'
    modified: str = ""
    kind: str = "application/octet-stream"
    ranges: bool = True
    chunked: bool = False


@dataclass(frozen=True)
class Fault:
    """A fault in place of one request's answer."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    # send so many bytes of the body, then: reset, close, stall (nothing more), or drip (a byte now and then)
    after: int | None = None
    then: str = "reset"


@dataclass(frozen=True)
class Seen:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
        self.server.seen.append(seen)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        faults = self.server.faults.get(urlsplit(self.path).path)
        fault = faults.pop(0) if faults else None
        if fault is not None and fault.status:
            self.answer(fault.status, fault.body, fault.headers)
        elif self.server.refuse is not None and (refused := self.server.refuse(seen)):
            self.answer(refused.status, refused.body, refused.headers)
        else:
            self.server.handle_request_of(self, seen, body, fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = _serve

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}) and status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def broken(self, body: bytes, fault: Fault) -> None:
        """The beginning of a body, and then what the fault says. The head was sent."""
        self.wfile.write(body[: fault.after])
        self.wfile.flush()
        if fault.then == "stall":
            self.server.released.wait(30)
        elif fault.then == "drip":
            for at in range(fault.after or 0, len(body)):
                if self.server.released.wait(0.02):
                    break
                self.wfile.write(body[at : at + 1])
                self.wfile.flush()
        elif fault.then == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        if fault.then == "reset":
            self.connection.close()


class Server(ThreadingHTTPServer):
    """A web server on loopback. `files` by path; `faults` by path, one for each request that comes."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), Handler)
        self.files: dict[str, Served] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.seen: list[Seen] = []
        self.refuse: Callable[[Seen], Fault | None] | None = None
        self.released = threading.Event()
        self.host = f"{host}:{self.server_address[1]}"
        self.url = f"{'https' if context else 'http'}://{self.host}"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken connections are what these tests are about."""

    def put(self, path: str, body: bytes, **more: Any) -> str:
        self.files[path] = Served(body, **more)
        return self.url + path

    def handle_request_of(self, handler: Handler, seen: Seen, body: bytes, fault: Fault | None) -> None:
        served = self.files.get(urlsplit(seen.path).path)
        if served is None:
            handler.answer(404, b"no such file")
            return
        send(handler, seen, served, fault)


def send(handler: Handler, seen: Seen, served: Served, fault: Fault | None) -> None:
    """A file, or the part that was asked for, or that it did not change."""
    headers = {"Content-Type": served.kind}
    if served.etag:
        headers["ETag"] = served.etag
    if served.modified:
        headers["Last-Modified"] = served.modified
    unchanged = served.etag and seen.headers.get("if-none-match") == served.etag
    if unchanged or (served.modified and "if-none-match" not in seen.headers and seen.headers.get("if-modified-since") == served.modified):
        handler.answer(304, b"", headers)
        return
    body, status = served.body, 200
    if served.ranges:
        headers["Accept-Ranges"] = "bytes"
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", seen.headers.get("range", ""))
    condition = seen.headers.get("if-range")
    if wanted and served.ranges and condition in (None, served.etag, served.modified):
        start = int(wanted[1])
        if start >= len(body):
            handler.answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            return
        end = min(int(wanted[2]) + 1, len(body)) if wanted[2] else len(body)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
        body, status = body[start:end], 206
    if fault is not None and fault.after is not None:
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.broken(body, fault)
    elif served.chunked:
        handler.send_response(status)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for at in range(0, len(body), 70000):
            part = body[at : at + 70000]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.wfile.write(b"0\r\n\r\n")
    else:
        handler.answer(status, body, headers)


S = TypeVar("S", bound=Server)


@contextmanager
def running(server: S) -> Iterator[S]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


# --- registry -----------------------------------------------------------------------------------------------------------------


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry(Server):
    """The distribution protocol: pull, push, tokens. `auth` is "", "basic" or "bearer"; the user is me, the password secret."""

    USER, PASSWORD, TOKEN = "me", "secret", "a-token"

    def __init__(self, auth: str = "", context: ssl.SSLContext | None = None) -> None:
        super().__init__(context)
        self.auth = auth
        self.blobs: dict[str, bytes] = {}
        # (repository, tag or digest) -> (document, media type)
        self.manifests: dict[tuple[str, str], tuple[bytes, str]] = {}
        # a server that blobs are fetched from by redirect
        self.elsewhere: Server | None = None
        self.refuse = self._refuse

    def blob(self, data: bytes) -> str:
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    def manifest(self, repository: str, tag: str, document: dict[str, Any]) -> str:
        raw = json.dumps(document).encode()
        digest = digest_of(raw)
        for version in (tag, digest):
            self.manifests[repository, version] = (raw, document["mediaType"])
        return digest

    def image(self, repository: str, tag: str, *layers: bytes) -> str:
        """An image of these layers, the lowest first; returns its digest."""
        config = b"{}"
        document = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": self.blob(config), "size": len(config)},
            "layers": [
                {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": self.blob(layer), "size": len(layer)} for layer in layers
            ],
        }
        return self.manifest(repository, tag, document)

    def index(self, repository: str, tag: str, by_architecture: Mapping[str, str]) -> str:
        entries = [
            {"mediaType": "x", "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": name}}
            for name, digest in by_architecture.items()
        ]
        return self.manifest(
            repository, tag, {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}
        )

    def _refuse(self, seen: Seen) -> Fault | None:
        if not self.auth or seen.path.startswith("/token"):
            return None
        wanted = basic(self.USER, self.PASSWORD) if self.auth == "basic" else f"Bearer {self.TOKEN}"
        if seen.headers.get("authorization") == wanted:
            return None
        challenge = 'Basic realm="r"' if self.auth == "basic" else f'Bearer realm="{self.url}/token",service="s",scope="repository:x:pull"'
        errors = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}).encode()
        return Fault(401, {"WWW-Authenticate": challenge}, errors)

    def handle_request_of(self, handler: Handler, seen: Seen, body: bytes, fault: Fault | None) -> None:
        path = urlsplit(seen.path).path
        if path == "/token":
            known = seen.headers.get("authorization") == basic(self.USER, self.PASSWORD)
            handler.answer(200 if known else 401, json.dumps({"token": self.TOKEN}).encode() if known else b"{}")
        elif found := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", path):
            self._manifest(handler, seen, (found[1], found[2]), body)
        elif found := re.fullmatch(r"/v2/(.+)/blobs/(sha256:[0-9a-f]+)", path):
            self._blob(handler, seen, found[2], fault)
        elif found := re.fullmatch(r"/v2/(.+)/blobs/uploads/(\w*)", path):
            self._upload(handler, seen, found[1], body)
        else:
            handler.answer(404, b"{}")

    def _manifest(self, handler: Handler, seen: Seen, key: tuple[str, str], body: bytes) -> None:
        if seen.method == "PUT":
            self.manifests[key] = self.manifests[key[0], digest_of(body)] = (body, seen.headers["content-type"])
            handler.answer(201, b"", {"Docker-Content-Digest": digest_of(body)})
            return
        if key not in self.manifests:
            handler.answer(404, json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}).encode())
            return
        raw, kind = self.manifests[key]
        handler.answer(200, raw, {"Content-Type": kind, "Docker-Content-Digest": digest_of(raw)})

    def _blob(self, handler: Handler, seen: Seen, digest: str, fault: Fault | None) -> None:
        if digest not in self.blobs:
            handler.answer(404, json.dumps({"errors": [{"code": "BLOB_UNKNOWN", "message": "blob unknown"}]}).encode())
        elif self.elsewhere is not None:
            self.elsewhere.put(f"/{digest}", self.blobs[digest])
            handler.answer(307, b"", {"Location": f"{self.elsewhere.url}/{digest}?signature=x"})
        else:
            send(handler, seen, Served(self.blobs[digest], etag=f'"{digest}"'), fault)

    def _upload(self, handler: Handler, seen: Seen, repository: str, body: bytes) -> None:
        if seen.method == "POST":
            handler.answer(202, b"", {"Location": f"/v2/{repository}/blobs/uploads/u1?state=x"})
            return
        digest = parse_qs(urlsplit(seen.path).query)["digest"][0]
        good = digest_of(body) == digest
        if good:
            self.blobs[digest] = body
        handler.answer(201 if good else 400, b"", {"Docker-Content-Digest": digest})


def layer(files: Mapping[str, bytes | tarfile.TarInfo], *, pack: Callable[[bytes], bytes] = gzip.compress) -> bytes:
    """A layer with these files, in this order; a TarInfo stands for itself."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return pack(stream.getvalue())


def special(kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


# --- certificates -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in PEM."""

    certificate: str
    key: str

    def server_context(self, folder: Path, client_authority: str = "") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (folder / "server.pem").write_text(self.certificate + self.key)
        context.load_cert_chain(folder / "server.pem")
        if client_authority:
            context.load_verify_locations(cadata=client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
            # In 1.3 a client learns of the refusal after it sent its request, or of a broken connection if that comes first.
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context


def authority() -> tuple[Identity, Callable[[str], Identity]]:
    """An authority of its own, and what issues certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

    def build(subject: x509.Name, public: Any, *extensions: tuple[x509.ExtensionType, bool]) -> x509.Certificate:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(name).public_key(public)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start)
        builder = builder.not_valid_after(start + datetime.timedelta(days=36500))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(key, hashes.SHA256())

    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    root = build(name, key.public_key(), (x509.BasicConstraints(True, None), True), (usage, True), (identifier, False))

    def issue(common: str) -> Identity:
        own = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
        return _identity(build(subject, own.public_key(), (names, False), (issuer, False)), own)

    return _identity(root, key), issue


def _identity(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Identity:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Identity(certificate.public_bytes(serialization.Encoding.PEM).decode(), pem.decode())
