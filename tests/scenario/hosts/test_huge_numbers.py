"""No number in a manifest decides how much work one turn of the event loop is: the largest that each place takes, one at a time.

Work is counted in calls, not in time. Memory is bounded by the process's own limit, so that a list of a billion entries is an error.
"""

import asyncio
import copy
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from paddock.engine.machine.argv.command import command
from paddock.kubernetes import catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.kind import Kind
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.declarations import documents
from tests.kit.declarations.documents import Place
from tests.kit.engine.fakehost import FakeHost, machine
from tests.unit.engine.machine.argv.samples import KVM

# Twenty times what the most laborious document takes.
MOST_CALLS = 3_000_000
MOST_MEMORY = 2 << 30
TURNS = 40
_SETS = ("VirtualMachinePool", "VirtualMachineInstanceReplicaSet")
_REQUESTS = {"resources": {"requests": {"storage": "1Gi"}}}
_SPECS: dict[str, Any] = {
    "DataVolume": {"source": {"blank": {}}, "storage": _REQUESTS},
    "PersistentVolumeClaim": {"accessModes": ["ReadWriteOnce"], **_REQUESTS},
}
_EXAMPLE = {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}
# The kinds on which the controllers of a host act.
KINDS = [
    ("kubevirt.io", "VirtualMachine"),
    ("kubevirt.io", "VirtualMachineInstance"),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"),
    ("pool.kubevirt.io", "VirtualMachinePool"),
    ("cdi.kubevirt.io", "DataVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Service"),
    ("instancetype.kubevirt.io", "VirtualMachineInstancetype"),
    ("vitistack.io", "NetworkConfiguration"),
    ("infrastructure.stakater.com", "VirtualMachine"),
]


class TooMuchWork(BaseException):
    """No `except Exception` takes this for a defect of the object."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raise `TooMuchWork` after so many calls, `MemoryError` when a list would be a large part of the machine."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > MOST_CALLS:
            sys.setprofile(None)
            raise TooMuchWork(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + MOST_MEMORY, hard))
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def largest(place: Place) -> list[Any]:
    """The largest values that a place may take."""
    found, field = place.shape, place.shape.field
    if isinstance(found, shape.IntegerShape):
        bound = 2 ** (field.bits - 1) - 1
        return [bound if field.le is None else min(bound, int(field.le))]
    if isinstance(found, shape.QuantityShape):
        return ["7Ei"]
    if isinstance(found, shape.IntOrStringShape):
        return [2**31 - 1, "2147483647%"]
    return [1e308] if isinstance(found, shape.NumberShape) else []


def with_huge_numbers(kind: Kind) -> Iterator[tuple[str, Any]]:
    """Documents of a kind, each with one number that is as large as it may be."""
    for place in documents.places(kind):
        # What is in the template of a set is in the machines, too.
        is_elsewhere = kind.kind in _SETS and any("emplate" in str(step) for step in place.path)
        for value in largest(place) if place.path[:1] == ("spec",) and not is_elsewhere else ():
            yield ".".join(map(str, place.path)), place.wrap(value)


# Numbers that count for something only in this company.
_COMPANY = {
    "supplementalPoolThreadCount": {"ioThreadsPolicy": "supplementalPool"},
    "sockets": {"ioThreadsPolicy": "auto"},
}


def _accompanied(domain: Any) -> Any:
    for name, members in _COMPANY.items():
        if name in (domain.get("ioThreads") or {}) or name in (domain.get("cpu") or {}):
            domain = {**domain, **members}
    return domain


def completed(document: Any, kind: Kind, number: int) -> Any:
    """Return a document with what the rules across fields require of its kind."""
    made = copy.deepcopy(document)
    made["metadata"] = {**made.get("metadata", {}), "name": f"huge-{number}"}
    spec = made["spec"] = _merged(_SPECS.get(kind.kind, {}), made.get("spec") or {})
    labels = {"matchLabels": {"app": "huge"}}
    if kind.kind in ("VirtualMachine", "VirtualMachineInstanceReplicaSet") and kind.group == "kubevirt.io":
        template = spec.setdefault("template", {})
        template["spec"] = _merged(_EXAMPLE, template.get("spec") or {})
        if kind.kind == "VirtualMachine":
            spec["runStrategy"] = "Always"
            spec.pop("running", None)
        else:
            spec["selector"], template["metadata"] = labels, {"labels": {"app": "huge"}}
    elif kind.kind == "VirtualMachineInstance":
        made["spec"] = _merged(_EXAMPLE, spec)
        made["spec"]["domain"] = _accompanied(made["spec"]["domain"])
    elif kind.kind == "VirtualMachinePool":
        spec["selector"] = labels
        spec["virtualMachineTemplate"] = _merged(_pool_template(), spec.get("virtualMachineTemplate") or {})
    return made


def _pool_template() -> Any:
    template = machine()["spec"]
    return {
        "metadata": {"labels": {"app": "huge"}},
        "spec": {**template, "template": {**template["template"], "metadata": {"labels": {"app": "huge"}}}},
    }


def _merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


@pytest.mark.parametrize(("group", "name"), KINDS)
@run_by(virtualtime.run)
async def test_the_largest_number_is_bounded_work(group: str, name: str, tmp_path: Path) -> None:
    kind = catalog.find(group, name)
    assert kind is not None
    accepted: list[str] = []
    async with FakeHost(tmp_path) as host:
        for number, (where, document) in enumerate(with_huge_numbers(kind)):
            collection = _collection(kind)
            with bounded():
                try:
                    answer = await host.api.post(collection, completed(document, kind, number))
                    for _ in range(TURNS):
                        await asyncio.sleep(0)
                    for each in host.engine.machines:
                        command(each.config, KVM)
                except (TooMuchWork, MemoryError) as error:
                    raise AssertionError(f"{name} {where}: {error!r}") from error
            if answer.status == 201:
                accepted.append(where)
                await host.api.delete(f"{collection}/huge-{number}")
                await asyncio.sleep(1)
    # The documents are such that the server takes many of them.
    assert accepted


def _collection(kind: Kind) -> str:
    base = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    return f"{base}/namespaces/default/{kind.plural}"
