"""`paddock ui` as a process, and a browser's requests to it."""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reference.client import Json
from tests.reference.server import Access, launched, probe

API = "/console/v1/"
PATIENCE = 60.0
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_READY = re.compile(r"the console is ready at http://127\.0\.0\.1:(\d+)/")


@dataclass(frozen=True)
class Reply:
    """An answer of the console."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def error(self) -> Json:
        """The members of a refusal."""
        found: Json = self.json["error"]
        return found


@dataclass
class ConsoleProgram:
    """A console that runs, and the session of one browser."""

    process: "subprocess.Popen[bytes]"
    log: Path
    port: int = 0
    cookie: str = ""

    def wait_ready(self) -> None:
        """Wait until it listens."""
        deadline = time.monotonic() + PATIENCE
        while not (found := _READY.search(self.said())):
            assert self.process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        self.port = int(found[1])

    def said(self) -> str:
        """Everything that it wrote."""
        return self.log.read_text()

    @property
    def link(self) -> str:
        """The link that it printed."""
        return next(line for line in self.said().splitlines() if line.startswith("http"))

    @property
    def address(self) -> str:
        """The address for browsers."""
        return f"http://127.0.0.1:{self.port}/"

    def stored(self) -> Json:
        """The session as a window of Playwright takes it."""
        name, _, value = self.cookie.partition("=")
        cookie = {"name": name, "value": value, "domain": "127.0.0.1", "path": "/", "httpOnly": True, "sameSite": "Strict"}
        return {"cookies": [cookie], "origins": []}

    def follow(self) -> None:
        """Sign in by the link."""
        reply = self.ask("GET", "/" + self.link.split("/", 3)[3])
        assert reply.status == 200, reply.body

    def sign_in(self, token: str) -> Reply:
        """Sign in with a token."""
        return self.ask("POST", f"{API}login", {"token": token})

    def get(self, path: str) -> Any:
        """Read JSON."""
        reply = self.ask("GET", API + path)
        assert reply.status == 200, reply.body
        return reply.json

    def post(self, path: str, body: Json | None = None) -> Reply:
        """Send JSON."""
        return self.ask("POST", API + path, body or {})

    def ask(self, method: str, path: str, body: Json | None = None) -> Reply:
        """Send a request as the page does."""
        host = f"127.0.0.1:{self.port}"
        headers = {"Host": host, "Origin": f"http://{host}", "X-Paddock-Console": "1", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {**headers, "Cookie": self.cookie})
            answer = connection.getresponse()
            if cookie := answer.headers.get("set-cookie"):
                self.cookie = cookie.partition(";")[0]
            return Reply(answer.status, answer.read())
        finally:
            connection.close()

    @contextmanager
    def stream(self, *topics: str) -> Iterator[Iterator[tuple[str, Json]]]:
        """The events of a page that is open."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            headers = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
            connection.request("GET", f"{API}stream?topics={','.join(topics)}", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield _events(answer)
        finally:
            connection.close()


def open_watches(access: Access) -> dict[str, int]:
    """Return the number of open watches of every kind, as the API server counts them."""
    found: dict[str, int] = {}
    for line in probe(f"{access.url}/metrics", access).decode().splitlines():
        if line.startswith("apiserver_longrunning_requests{") and 'verb="WATCH"' in line:
            labels = dict(_LABEL.findall(line))
            kind = ".".join(filter(None, (labels["resource"], labels["group"])))
            found[kind] = found.get(kind, 0) + int(float(line.rpartition(" ")[2]))
    return found


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Json]]:
    name = ""
    while line := answer.readline().decode().rstrip("\n"):
        pass
    while True:
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@contextmanager
def serving_console(kubeconfig: Path, log: Path, *arguments: str) -> Iterator[ConsoleProgram]:
    """A console of the user of a kubeconfig, ready."""
    command = [sys.executable, "-m", "paddock.app", "ui", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0", *arguments]
    with launched(command, log) as process:
        program = ConsoleProgram(process, log)
        program.wait_ready()
        yield program
