"""Requests of the page and the handlers that answer them.

A pattern is the path below `/console/v1/`. Words in capitals match one segment, `PLACE` the three of a machine (`vm/default/web`), `ID`
the three of another object (`datavolumes.cdi.kubevirt.io/default/root`). Handlers read them from `parts`. Guard and session are checked
before a handler runs, and every error that a handler raises becomes a `WebErrorBody`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from paddock.base.errors import Terminal
from paddock.fleet import kinds
from paddock.fleet.kinds import MachineKind
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.target import Key
from paddock.web.answers.rows import WebAnswer
from paddock.web.session import WebSession

PREFIX = "/console/v1/"
PLACE, ID = "PLACE", "ID"
# Words of patterns that stand for more than one segment.
_SEGMENTS = {PLACE: 3, ID: 3}
T = TypeVar("T")


class WebRefusal(Terminal):
    """A request that the console itself refuses, with the HTTP status for it."""

    def __init__(self, status: int, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.status = status


class WebBytes(msgspec.Struct, frozen=True):
    """An answer that is no JSON."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


class WebMachinePlace(msgspec.Struct, frozen=True):
    """A machine as the page names it."""

    kind: MachineKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.word}/{self.key}"


class WebRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `parts` has the segments of the path that the pattern names, decoded."""

    session: WebSession
    method: str
    path: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""

    def read(self, cls: type[T]) -> T:
        """Return the JSON body as a struct. Raises `WebRefusal` (400) for a body that does not fit."""
        try:
            return msgspec.json.decode(self.body or b"{}", type=cls)
        except msgspec.MsgspecError as error:
            raise WebRefusal(400, "cannot read the body of the request", why=str(error), fix="reload the page") from error

    @property
    def place(self) -> WebMachinePlace:
        """The machine that the path names. Raises `WebRefusal` (404)."""
        return place_of(self.parts[PLACE])

    async def machine(self) -> MachineView:
        """Read the machine of the path from the server. A VirtualMachine stands for the object that it was made of, as in commands."""
        place = self.place
        return await finding.find(self.session.client, f"{place.kind.word}/{place.key.name}", place.key.namespace)


def place_of(text: str) -> WebMachinePlace:
    """Return the place that `WORD/NAMESPACE/NAME` names. Raises `WebRefusal` (404)."""
    word, _, rest = text.partition("/")
    for kind in kinds.MACHINES:
        if kind.word == word and rest.count("/") == 1 and not rest.startswith("/") and not rest.endswith("/"):
            return WebMachinePlace(kind, Key.of(rest))
    raise WebRefusal(404, f'"{text}" names no machine', fix="a machine is WORD/NAMESPACE/NAME, such as vm/default/web")


WebResult = WebAnswer | WebBytes
WebHandler = Callable[[WebRequest], Awaitable[WebResult]]


class WebRoute(msgspec.Struct, frozen=True):
    """A method and a pattern with its handler."""

    method: str
    pattern: str
    handler: WebHandler


class RouteTable:
    """All routes, found by the path below `PREFIX`."""

    def __init__(self, routes: Iterable[WebRoute]) -> None:
        self.routes = tuple(routes)

    def find(self, method: str, path: str) -> tuple[WebRoute, dict[str, str]]:
        """Return the route of a raw path (still percent-encoded) with its parts. Raises `WebRefusal` (404, 405)."""
        segments = path.split("/")
        methods: set[str] = set()
        for route in self.routes:
            parts = match(route.pattern, segments)
            if parts is None:
                continue
            if route.method == method:
                return route, parts
            methods.add(route.method)
        if methods:
            raise WebRefusal(405, f"{method} is not possible here", why=f"the console serves {', '.join(sorted(methods))} at this path")
        raise WebRefusal(404, "the console does not serve this path", fix="reload the page; it may be older than the server")


def match(pattern: str, segments: list[str]) -> dict[str, str] | None:
    """Return the named segments if the pattern matches, decoded; None if it does not."""
    parts: dict[str, str] = {}
    at = 0
    for word in pattern.split("/"):
        length = _SEGMENTS.get(word, 1)
        chosen = segments[at : at + length]
        if len(chosen) < length or (not word.isupper() and chosen != [word]):
            return None
        if word.isupper():
            decoded = [unquote(each) for each in chosen]
            if not all(map(_is_name, decoded)):
                return None
            parts[word] = "/".join(decoded)
        at += length
    return parts if at == len(segments) else None


def _is_name(segment: str) -> bool:
    """Return whether a segment names one thing: what could lead to another path of the API does not."""
    return bool(segment) and segment not in (".", "..") and segment.isprintable() and not set(segment) & set("/\\?#% ")
