"""Two ways to talk to a Kubernetes API server: many quick JSON requests, and the real kubectl.

`Api` keeps one connection per thread, so thousands of dry-run requests cost little more than the server's own work. It works
against any Kubernetes API server. `Kubectl` runs the program with a home, a cache and a configuration of its own, so that
nothing of the user's set-up reaches the tests.
"""

import http.client
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.reference.server import Access

# What comes over the wire is any JSON; the tests look at the few members they know.
Json = dict[str, Any]

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@dataclass(frozen=True)
class Answer:
    """The server's answer; `body` is the decoded object, or empty for an answer that is not JSON."""

    status: int
    body: Json
    warnings: tuple[str, ...] = ()
    request: str = ""

    @property
    def ok(self) -> bool:
        """True if the request succeeded."""
        return self.status < 300

    @property
    def message(self) -> str:
        """The text of an error."""
        return str(self.body.get("message", f"HTTP {self.status} to {self.request}"))


@dataclass(frozen=True)
class Resource:
    """A served resource, as discovery names it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Its collection in a namespace, or one object of it, or a subresource of one."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = ("namespaces", namespace) if self.namespaced and namespace else ()
        parts = [*scope, self.plural, name, subresource]
        return "/".join([root, *(quote(part, safe="") for part in parts if part)])

    def collection_of(self, thing: Json) -> str:
        """The path to which an object is posted; one that names no namespace belongs to `default`."""
        metadata = thing.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
        return self.path(namespace if isinstance(namespace, str) and namespace else "default")


class Unreachable(ConnectionError):
    """The server closed a connection twice without an answer."""


@dataclass
class Api:
    """The API of one server, spoken to as its administrator."""

    access: Access
    _local: threading.local = field(default_factory=threading.local, repr=False)
    _connections: list[http.client.HTTPSConnection] = field(default_factory=list, repr=False)

    def request(
        self, method: str, path: str, body: Json | Sequence[Any] | None = None, *, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        """Sends one request and reads its answer; an error of the server is an answer too."""
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        send = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.access.token}",
            **(headers or {}),
        }
        for _ in range(2):
            connection = self._connection()
            try:
                connection.request(method, target, data, send)
                reply = connection.getresponse()
                return _answer(f"{method} {target}", reply, reply.read())
            except (http.client.HTTPException, ConnectionError, ssl.SSLEOFError):
                # The server may close an idle connection; a second refusal is a fact. Either way the next use connects anew.
                connection.close()
        raise Unreachable(f"no answer to {method} {target}")

    def close(self) -> None:
        """Closes every thread's connection; only when no thread uses one any more."""
        for connection in self._connections:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        connection = getattr(self._local, "connection", None)
        if not isinstance(connection, http.client.HTTPSConnection):
            url = urlsplit(self.access.url)
            connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=self.access.tls(), timeout=60)
            self._local.connection = connection
            self._connections.append(connection)
        return connection


def _answer(request: str, reply: http.client.HTTPResponse, body: bytes) -> Answer:
    try:
        decoded = json.loads(body)
    except ValueError:
        decoded = {}
    # 299 - "text": the text stands between the first and the last quotation mark.
    warnings = tuple(value.partition('"')[2].rpartition('"')[0] for value in reply.headers.get_all("Warning") or ())
    return Answer(reply.status, decoded if isinstance(decoded, dict) else {}, warnings, request)


@dataclass(frozen=True)
class Ran:
    """The results of a finished kubectl."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl, with nothing of the user's in its way."""

    program: Path
    access: Access
    home: Path
    # what an editor, say, has to be found by
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: str = "") -> Ran:
        """Runs one command to its end."""
        environment = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.access.kubeconfig),
            "KUBECACHEDIR": str(self.home / "cache"),
            **self.environment,
        }
        done = subprocess.run([str(self.program), *arguments], input=stdin, capture_output=True, text=True, env=environment, timeout=120)
        return Ran(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """Runs a command that has to succeed; what it printed."""
        ran = self.run(*arguments, stdin=stdin)
        if ran.code:
            raise AssertionError(f"{self.program.name} {' '.join(arguments)}: exit {ran.code}\n{ran.errors}{ran.output}")
        return ran.output
