"""A cluster in which KubeVirt's own virt-api and virt-controller worked, as a file of answers, and the page's requests that they answer.

`tests/reference/operators/test_console.py` records the file from the real programs and holds it against them. A request that the file
does not have fails the test: record it again with `--golden-update` there.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse
from tests.scenario.web.pages import Page, Refused

FILE = Path(__file__).with_name("cluster.json")
NAMESPACE = "console"
WEB = f"machines/vm/{NAMESPACE}/web"
SHOP = f"machines/stakater/{NAMESPACE}/shop"
_SUBRESOURCES = "/apis/subresources.kubevirt.io/"
_NOT_ACCEPTABLE = 406
_TOPICS = ("images", "volumes", "networks", "snapshots", "pools", "providers", "migrations", "events")
_READS = ("me", "host", "tasks", *(f"kinds/{each}" for each in _TOPICS))
_OF_MACHINE = ("", "/why", "/usage", "/events", "/history")
_FORM = {"image": "https://images.example.com/disk.qcow2", "namespace": NAMESPACE, "name": "new", "start": False}
# of a kind in discovery: what anybody reads
_RESOURCE = ("name", "singularName", "namespaced", "kind", "shortNames")


class _Quiet(ResponseStream):
    """A watch in which nothing happens."""

    def __init__(self, closed: Callable[[], None]) -> None:
        self._closed = closed
        self.status = 200
        self.headers: dict[str, str] = {}
        self._ended = asyncio.Event()

    async def read(self) -> bytes:
        """Wait for the end."""
        await self._ended.wait()
        return b""

    def close(self) -> None:
        """End."""
        if not self._ended.is_set():
            self._ended.set()
            self._closed()


class RecordedCluster(Transport):
    """Answers from a recording. As virt-api, it gives a subresource to those alone who accept any type."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self._answers = answers
        self.asked: set[str] = set()
        self._open: Counter[str] = Counter()
        # the watches of a kind that were open at once
        self.most: dict[str, int] = {}

    @classmethod
    def of_file(cls) -> "RecordedCluster":
        """Return the committed recording."""
        return cls(json.loads(FILE.read_text()))

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """Return the recorded answer."""
        if ask.target.startswith(_SUBRESOURCES) and "*/*" not in ask.accept:
            return TransportResponse(_NOT_ACCEPTABLE, {}, b"406: Not Acceptable\n\nAvailable representations:")
        self.asked.add(_name(ask))
        assert _name(ask) in self._answers, f"{_name(ask)} was not recorded"
        status, body = self._answers[_name(ask)]
        return TransportResponse(status, {}, body.encode() if isinstance(body, str) else json.dumps(body).encode())

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """Begin a watch."""
        kind = ask.target.partition("?")[0]
        self._open[kind] += 1
        self.most[kind] = max(self._open[kind], self.most.get(kind, 0))
        return _Quiet(lambda: self._open.subtract((kind,)))

    async def close(self) -> None:
        """Do nothing."""


class Recorder(Transport):
    """Notes the first answer to each request of a real cluster."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.answers: dict[str, list[Any]] = {}

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """Ask, and note."""
        answer = await self._inner.send(ask)
        self.answers.setdefault(_name(ask), [answer.status, _body(answer.body)])
        return answer

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """Begin a watch."""
        return await self._inner.stream(ask)

    async def close(self) -> None:
        """Let go."""
        await self._inner.close()

    def text(self) -> str:
        """Return the recording, an answer a line."""
        lines = (f"{json.dumps(name)}: {json.dumps(answer, separators=(',', ':'))}" for name, answer in sorted(self.answers.items()))
        return "{\n" + ",\n".join(lines) + "\n}\n"


def _name(ask: TransportRequest) -> str:
    return " ".join(filter(None, (ask.method, ask.target, ask.body.decode())))


def _body(body: bytes) -> Any:
    try:
        found = json.loads(body)
    except ValueError:
        return body.decode()
    if isinstance(found, dict):
        _trim(found)
    return found


def _trim(found: dict[str, Any]) -> None:
    """Take away what nobody reads of an answer."""
    match found.get("kind"):
        case "APIResourceList":
            found["resources"] = [{name: each[name] for name in _RESOURCE if name in each} for each in found["resources"]]
        case "APIGroupList":
            found["groups"] = [{name: each[name] for name in ("name", "preferredVersion")} for each in found["groups"]]
    for each in found.get("items", ()):
        each["metadata"].pop("managedFields", None)


async def play(page: Page) -> dict[str, Any]:
    """Have a page ask everything, then act; return what it got, a refusal as its code and message."""
    found: dict[str, Any] = {}

    async def ask(path: str, body: Any = None) -> Any:
        try:
            found[path] = await (page.get(path) if body is None else page.post(path, body))
        except Refused as refused:
            found[path] = [refused.code, refused.message]
        return found[path]

    for path in (*_READS, *(place + each for place in (WEB, SHOP) for each in _OF_MACHINE)):
        await ask(path)
    for dialect in ("kubevirt", "virtrigaud"):
        made = await ask("compose", {**_FORM, "dialect": dialect})
        found[f"compose {dialect}"] = made
        await ask("apply", {"yaml": made["yaml"], "dryRun": True, "force": False})
        found[f"apply {dialect}"] = found["apply"]
    found["screenshot"] = (await page.read(f"{WEB}/screenshot")).status
    for verb in ("pause", "suspend", "stop"):
        await ask(f"{WEB}/actions/{verb}", {})
    return found
