"""A console over a server without controllers, whose objects have a program in every text that the server takes.

Nothing corrects what is stored, so statuses, conditions and reports of guests can be as hostile as specs.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import asynccontextmanager, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import orjson
import yaml

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import ApiError
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.schema import shape
from paddock.web import assets
from paddock.web.live import kindtable, objectrows
from paddock.web.live.machinerows import MACHINE_TARGETS
from tests.kit.declarations import documents
from tests.scenario.web.browsers import consoles

# Programs in three disguises: an element, an element that ends what it stands in, and an address.
PROGRAMS = (
    "<img src=x onerror='globalThis.ran=1;alert(1)'>",
    "\"'></script><script>globalThis.ran=1;alert(2)</script><svg onload=alert(3)>",
    "javascript:globalThis.ran=1;alert(4)",
)
NAME = "example"
SPECS: dict[str, Data] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


class StockedConsole(msgspec.Struct, frozen=True):
    """The facts of a stocked console that a test knows."""

    link: str
    # the kind of each object, with how many of its texts are programs
    texts: dict[str, int]


@contextmanager
def stocked(root: Path) -> Iterator[StockedConsole]:
    """A console in a thread of its own, up for the length of a `with` block."""
    ready: queue.SimpleQueue[StockedConsole | None] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    async def serve() -> StockedConsole:
        async with _console(root) as made:
            ready.put(made)
            await end.wait()
            return made

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = asyncio.run_coroutine_threadsafe(serve(), loop)
    # The server that failed says why; one that is up has put something.
    serving.add_done_callback(lambda _: ready.put(None))
    try:
        made = ready.get()
        yield made if made is not None else serving.result()
    finally:
        loop.call_soon_threadsafe(end.set)
        wait([serving])
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@asynccontextmanager
async def _console(root: Path) -> AsyncIterator[StockedConsole]:
    page = assets.read(resources.files("paddock.web") / "assets")
    async with consoles(root, assets=page) as scene:
        texts = {target.qualified: await _stock(scene.admin, target) for target in (*MACHINE_TARGETS, *kindtable.EVERY)}
        yield StockedConsole(scene.console.link(), texts)


async def _stock(admin: Client, target: Target[Data]) -> int:
    """Store an object of a kind; return how many of its texts are programs."""
    kind = catalog.find(target.group, target.kind)
    assert kind is not None
    annotations = {"note": PROGRAMS[0], "other": PROGRAMS[1]}
    # Both groups of pools keep theirs in one place.
    name = f"{NAME}-{target.version}" if target in objectrows.POOL_KINDS else NAME
    made = documents.least(kind) | {"apiVersion": target.api_version}
    made["metadata"] = {"name": name, "namespace": "default", "annotations": annotations}
    if target.qualified in SPECS:
        made["spec"] = SPECS[target.qualified]
    texts = [place for place in documents.places(kind) if _is_text(place) and _is_shown(target, place)]
    made, count = await _filled(admin, "POST", target.path("default"), made, [each for each in texts if each.path[0] != "status"])
    if target.has_status:
        path = target.path("default", name)
        stored = {**orjson.loads(await admin.request("GET", path)), "status": {}}
        # The status of some kinds is a part of the object like any other.
        place = f"{path}/status" if kind.status else path
        _, more = await _filled(admin, "PUT", place, stored, [each for each in texts if each.path[0] == "status"])
        count += more
    return len(annotations) + count


async def _filled(admin: Client, method: str, path: str, data: Data, texts: Iterable[documents.Place]) -> tuple[Data, int]:
    """Write an object with a program in each of these texts that the server takes it in; return it, and their number."""
    count = 0
    for place in texts:
        data, taken = await _with_program(admin, method, path, data, place)
        count += taken
    await _send(admin, method, path, data)
    return data, count


def _is_text(place: documents.Place) -> bool:
    return isinstance(place.shape, shape.StringShape) and not isinstance(place.shape, shape.TimeShape) and not place.shape.field.enum


def _is_shown(target: Target[Data], place: documents.Place) -> bool:
    """Return False for what names the object, and for machines within pools, which no page shows."""
    first, *rest = place.path
    if first in ("apiVersion", "kind", "metadata"):
        return False
    return target not in objectrows.POOL_KINDS or not rest or rest[0] not in ("template", "virtualMachineTemplate")


async def _with_program(admin: Client, method: str, path: str, before: Data, place: documents.Place) -> tuple[Data, bool]:
    """Return the object with a program at a place, if the server would take it; otherwise as it was."""
    for program in PROGRAMS:
        wanted = _joined(before, place.wrap(program), place.path)
        try:
            await _send(admin, method, f"{path}?dryRun=All", wanted)
        except ApiError:
            continue
        return wanted, True
    return before, False


def _joined(before: Any, other: Any, path: Sequence[str | int]) -> Any:
    """Return an object with what another has at a path, and what that needs around it."""
    if isinstance(before, dict) and isinstance(other, dict):
        added = {name: value for name, value in other.items() if name not in before}
        step = path[0] if path else ""
        if isinstance(step, str) and step in before and step in other:
            added[step] = _joined(before[step], other[step], path[1:])
        return {**before, **added}
    if isinstance(before, list) and isinstance(other, list) and before and other:
        return [_joined(before[0], other[0], path[1:]), *before[1:]]
    return other


async def _send(admin: Client, method: str, path: str, body: Data) -> None:
    below, _, query = path.partition("?")
    name, _, value = query.partition("=")
    await admin.request(method, below, ((name, value),) if query else (), body=orjson.dumps(body))
