"""A console in front of a whole API server, both in this process, and a browser that a test steers."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from paddock.app.options.settings import ServerSettings
from paddock.app.server.server import ServerHandle
from paddock.base.clock import SystemClock
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.web.assets import PageAssets
from paddock.web.server import ConsoleServer, ConsoleSettings
from paddock.web.signin import SignInMethod
from tests.unit.app.served import Answered

VIEWER, TOKENS = "viewer-token", 'viewer-token,ada,1,"looking"\nadmin-token,root,2,"system:masters"\n'
FILES = {"index.html": b"<!doctype html>", "main-3K2PXQ5A.js": b"export {};\n"}
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"


class Browser:
    """One that has a cookie, or none. Every request is on a connection of its own."""

    def __init__(self, console: ConsoleServer) -> None:
        self.console = console
        self.host = f"127.0.0.1:{console.port}"
        self.cookie = ""

    def headers(self, method: str) -> dict[str, str]:
        """What the page of the console sends."""
        found = {"host": self.host, "connection": "close"}
        if self.cookie:
            found["cookie"] = self.cookie
        if method not in ("GET", "HEAD"):
            found |= {"origin": f"http://{self.host}", "x-paddock-console": "1", "content-type": "application/json"}
        return found

    async def ask(self, method: str, path: str, body: Any = None, change: Mapping[str, str | None] | None = None) -> Answered:
        """Return an answer. `change` sets headers; None takes one away."""
        headers: dict[str, str | None] = {**self.headers(method), **(change or {})}
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items() if value is not None)]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.console.port)
        try:
            writer.write(("\r\n".join([*lines, f"content-length: {len(content)}"]) + "\r\n\r\n").encode() + content)
            return _parsed(await reader.read())
        finally:
            writer.close()

    async def follow(self, link: str) -> Answered:
        """Open an address of the console and keep the cookie that it sets."""
        answer = await self.ask("GET", "/" + link.partition("://")[2].partition("/")[2])
        self._keep(answer)
        return answer

    async def sign_in(self, token: str) -> Answered:
        """Send a token."""
        answer = await self.ask("POST", "/console/v1/login", {"token": token})
        self._keep(answer)
        return answer

    def _keep(self, answer: Answered) -> None:
        if header := answer.headers.get("set-cookie"):
            self.cookie = header.partition(";")[0]

    @asynccontextmanager
    async def stream(self, topics: str) -> AsyncIterator[asyncio.StreamReader]:
        """An open stream, past its head."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.console.port)
        try:
            lines = [
                f"GET /console/v1/stream?topics={topics} HTTP/1.1",
                *(f"{name}: {value}" for name, value in self.headers("GET").items()),
            ]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            await reader.readuntil(b"\r\n\r\n")
            yield reader
        finally:
            writer.close()


def _parsed(raw: bytes) -> Answered:
    """An answer that came whole, with the values of its headers as they are: a cookie is one."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    return Answered(int(first.split(" ")[1]), dict(line.split(": ", 1) for line in rest), body)


class ConsoleScene(msgspec.Struct, frozen=True):
    """A console, its server, and a client with all rights there."""

    console: ConsoleServer
    server: ServerHandle
    admin: Client

    def browser(self) -> Browser:
        """Return a browser without a cookie."""
        return Browser(self.console)

    async def signed_in(self) -> Browser:
        """Return a browser that has followed a link."""
        found = self.browser()
        assert (await found.follow(self.console.link())).status == 200
        return found


@asynccontextmanager
async def consoles(root: Path, login: SignInMethod = "link", assets: Mapping[str, bytes] = FILES) -> AsyncIterator[ConsoleScene]:
    """A console whose API server knows the administrator and ada, who may look and nothing else."""
    tokens = root / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(TOKENS)
    settings = ServerSettings(root=root / "data", port=0, in_memory=True, controllers=False, token_file=tokens, drain_seconds=0.1)
    server = ServerHandle(settings)
    await server.start()
    try:
        access = kubeconfig.find({}, SystemClock(), explicit=root / "data" / "kubeconfig")
        async with Client(Https(access)) as admin:
            await _let_look(admin)
            console = ConsoleServer(ConsoleSettings(login=login), access, PageAssets(assets))
            await console.start()
            try:
                yield ConsoleScene(console, server, admin)
            finally:
                await console.close()
    finally:
        await server.stop()


async def _let_look(admin: Client) -> None:
    group = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{group}/v1", "metadata": {"name": "look"}}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    await _post(admin, f"/apis/{group}/v1/clusterroles", {**head, "kind": "ClusterRole", "rules": rules})
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": "look"}
    subjects = [{"kind": "User", "apiGroup": group, "name": "ada"}]
    binding = {**head, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": subjects}
    await _post(admin, f"/apis/{group}/v1/clusterrolebindings", binding)


async def _post(admin: Client, path: str, document: Any) -> None:
    await admin.request("POST", path, body=json.dumps(document).encode())


async def make_machine(admin: Client, name: str = "web") -> None:
    """Create a machine that is off."""
    template = {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}
    head = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}}
    await _post(admin, MACHINES, {**head, "spec": {"runStrategy": "Halted", "template": template}})


async def make_snapshot(admin: Client, name: str = "before") -> None:
    """Create a snapshot, which without controllers stays on its way."""
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    head = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "metadata": {"name": name}}
    path = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots"
    await _post(admin, path, {**head, "spec": {"source": source}})
