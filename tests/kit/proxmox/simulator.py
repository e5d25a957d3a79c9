"""The simulated API without a network: a request comes in, a response goes out, in the order of checks of the real one."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.kit.proxmox import (
    accounts,
    cloning,
    configuration,
    contents,
    guests,
    machines,
    moves,
    nodes,
    power,
    releases,
    schema,
    snapshots,
    storages,
)
from tests.kit.proxmox.access import Access
from tests.kit.proxmox.context import Context, Handler, Park, Upload
from tests.kit.proxmox.errors import ApiError, TaskFailure, failed, forbidden, parameters
from tests.kit.proxmox.inventory import GIB, Clock, Cluster, Machine, Storage
from tests.kit.proxmox.schema import Value
from tests.kit.proxmox.tasks import Tasks

BASE = "/api2/json"
HANDLERS: Mapping[str, Handler] = {
    name: handler
    for each in (nodes, accounts, machines, configuration, cloning, power, snapshots, guests, moves, storages, contents)
    for name, handler in each.routes.handlers.items()
}
_CONFLICT = "duplicate parameter (already defined in URI) with conflicting values!"


@dataclass(frozen=True)
class Request:
    """A request. Names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """An answer; its reason stands in the status line."""

    status: int
    reason: str
    body: bytes
    type: str = "application/json;charset=UTF-8"

    @property
    def data(self) -> Any:
        """What the body holds under `data`."""
        return json.loads(self.body)["data"] if self.body else None


class Simulator:
    """A cluster and its API. It is cheap: make one for each test."""

    def __init__(self, nodes: tuple[str, ...] = ("pve1",), *, speed: float = 1.0, monotonic: Callable[[], float] | None = None) -> None:
        self.clock = Clock(speed, monotonic) if monotonic else Clock(speed)
        self.cluster = Cluster(self.clock, nodes)
        self.access = Access(self.clock)
        self.access.pool_of = self.cluster.pool_of
        self.tasks = Tasks(self.clock)
        self.park = Park(self.cluster, self.access, self.tasks)
        # Requests that came, as "POST /nodes/pve1/qemu".
        self.calls: list[str] = []
        for storage in default_storages():
            self.cluster.storages[storage.name] = storage

    def use_release(self, release: str) -> None:
        """Be an older release, as far as `releases` knows what it lacks."""
        self.park.release = release
        releases.use(self.access, releases.parse(release))

    def machine(self, vmid: int) -> Machine:
        """Return a machine, after what is due is done."""
        self.advance()
        return self.cluster.machines[vmid]

    def advance(self) -> None:
        """Finish the tasks whose time has come."""
        self.tasks.advance(lambda node: self.cluster.nodes[node].online)

    def settle(self) -> None:
        """Finish all tasks, whatever time they would take."""
        while any(task.is_running for task in self.tasks.all.values()):
            latest = max(task.due for task in self.tasks.all.values() if task.is_running)
            self.clock.skip(max(0.0, latest - self.clock()) + 0.001)
            self.advance()

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        self.advance()
        split = urlsplit(request.target)
        if not split.path.startswith(BASE + "/"):
            return _answer(ApiError(501, "no such uri"), plain=True)
        path = "/" + "/".join(part for part in unquote(split.path.removeprefix(BASE)).split("/") if part)
        self.calls.append(f"{request.method} {path}")
        try:
            caller = self.access.identify(request.method, path, request.headers)
        except ApiError as error:
            return _answer(error, plain=True)
        try:
            values, upload = _parameters(request, split.query)
            return _answer(self._call(request.method, path, caller, values, upload))
        except ApiError as error:
            return _answer(error)
        except TaskFailure as error:
            return _answer(failed(str(error)))

    def _call(self, method: str, path: str, caller: Any, values: dict[str, Value], upload: Upload | None) -> dict[str, Any]:
        found = schema.catalog().find(method, path)
        if found is None:
            raise ApiError(501, f"Method '{method} {path}' not implemented")
        call, named = found
        if conflicts := {name: _CONFLICT for name, value in named.items() if values.get(name, value) != value}:
            raise parameters(conflicts)
        values |= named
        if caller is not None and caller.is_token and not call.token:
            raise forbidden(f"URI '{path}' not available with API token, need proper ticket.")
        self.access.check_call(call.permission, caller, values)
        self._check_node(named.get("node", ""))
        if upload is not None and path.endswith("/upload"):
            values.setdefault("filename", upload.filename)
        if errors := call.check(values) or releases.errors(releases.parse(self.park.release), call.name, values):
            raise parameters(errors)
        handler = HANDLERS.get(call.name)
        if handler is None:
            raise ApiError(501, f"the simulator does not model '{call.name}'")
        context = Context(self.park, call, caller, {name: _plain(value) for name, value in values.items()}, upload)
        data = handler(context)
        self.advance()
        return {"data": data, **context.totals}

    def _check_node(self, name: str) -> None:
        if not name or name in ("localhost", self.park.entry):
            return
        node = self.cluster.nodes.get(name)
        if node is None:
            raise failed(f"hostname lookup '{name}' failed - failed to get address info for: {name}: Name or service not known")
        if not node.online:
            raise ApiError(595, "No route to host")


def default_storages() -> list[Storage]:
    """Return storages as an installation and its first NFS export give them."""
    return [
        Storage("local", "dir", ("iso", "vztmpl", "backup", "import", "snippets", "images")),
        Storage("local-lvm", "lvmthin", ("images", "rootdir")),
        Storage("tank", "zfspool", ("images", "rootdir"), total=200 * GIB),
        Storage("shared", "nfs", ("images", "iso", "import", "snippets"), shared=True, total=1000 * GIB),
    ]


def _plain(value: Value) -> Value:
    return ("1" if value else "0") if isinstance(value, bool) else value


def _parameters(request: Request, query: str) -> tuple[dict[str, Value], Upload | None]:
    """Return the parameters of the body and the query, which comes last as in the real API."""
    values: dict[str, Value] = {}
    upload = None
    kind = request.headers.get("content-type", "")
    if request.body and request.method not in ("PUT", "POST"):
        raise ApiError(501, f"Unexpected content for method '{request.method}'")
    if kind.startswith("multipart/form-data"):
        values, upload = _multipart(kind, request.body)
    elif kind.startswith("application/json"):
        values = _of_json(request.body)
    elif kind and not kind.startswith("application/x-www-form-urlencoded"):
        raise ApiError(506, f"upload 'Content-Type '{kind}' not implemented")
    else:
        values = _of_form(request.body.decode())
    values |= _of_form(query)
    values.pop("_dc", None)
    return values, upload


def _of_form(text: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        old = values.get(name)
        values[name] = value if old is None else [*(old if isinstance(old, list) else [str(old)]), value]
    return values


def _of_json(body: bytes) -> dict[str, Value]:
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        raise failed("malformed JSON string") from None
    return {name: _of_member(value) for name, value in given.items() if value is not None}


def _of_member(value: Any) -> Value:
    if isinstance(value, bool):
        return value
    return [str(each) for each in value] if isinstance(value, list) else str(value)


def _multipart(kind: str, body: bytes) -> tuple[dict[str, Value], Upload | None]:
    """Read a body as the real server does: the fields first, in any order, then the file, called filename."""
    match = re.search(r"boundary=\"?([^\";]+)", kind)
    if match is None:
        raise failed(f"upload 'Content-Type '{kind}' not implemented")
    values: dict[str, Value] = {}
    for part in body.split(b"--" + match[1].encode())[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        data = data.removesuffix(b"\r\n")
        disposition = re.search(r'(?i)content-disposition: form-data; name="([^"]*)"(?:; filename="([^"]+)")?', head.decode())
        if disposition is None:
            raise failed("wrong Content-Disposition in multipart, expected 'form-data'")
        if disposition[2] is not None:
            if disposition[1] != "filename":
                raise failed(f"wrong field name '{disposition[1]}' for file upload, expected 'filename'")
            return values, Upload(disposition[2].strip(), data)
        if disposition[1] in ("content", "checksum", "checksum-algorithm"):
            values[disposition[1]] = data.decode().strip()
    raise failed("upload failed")


def _answer(given: dict[str, Any] | ApiError, *, plain: bool = False) -> Response:
    if isinstance(given, dict):
        return Response(200, "OK", json.dumps(given).encode())
    reason = " ".join(given.reason.split("\n")).strip() or _phrase(given.status)
    if plain:
        return Response(given.status, reason, b"", "text/plain")
    content: dict[str, Any] = {"data": None, "message": given.reason + "\n"}
    if given.errors:
        content["errors"] = given.errors
    return Response(given.status, reason, json.dumps(content).encode())


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error"
