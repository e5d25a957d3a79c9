"""Plays the requests of KubeVirt's unit tests (`kubevirttables.py`) to KubeVirt's own webhooks and, as dry-runs, to a server in memory."""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock.base import quantity
from paddock.base.errors import PaddockError
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import AdmissionSettings, KindFacts
from paddock.server.objects.encoding import stamp
from paddock.server.store.contract import StoreKey
from tests.kit.servers.apiharness import Harness

Data = dict[str, Any]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# What a test says of an object that a server says itself.
_SERVERS = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "resourceVersion", "uid")
_INSTANCE, _MACHINE = "VirtualMachineInstance", "VirtualMachine"
SETTINGS = ("default", "gates")
# What is drawn by chance.
# Members that Go writes although they say nothing.
_EMPTY = (".acpi", ".devices", ".resources", ".metadata", ".template")
_RANDOM = (".uuid", ".serial", ".target.name")


@dataclass(frozen=True)
class PlayedRequest:
    """An object to create, or what it becomes and what it was."""

    kind: KindFacts
    object: Data
    old: Data | None
    # the file of the test
    test: str

    @property
    def text(self) -> str:
        """The request as KubeVirt's program reads it."""
        return json.dumps({"object": self.object} | ({"old": self.old} if self.old is not None else {}), sort_keys=True)

    @property
    def digest(self) -> str:
        """A name that stays with the request."""
        return hashlib.sha256(f"{self.kind.kind}{self.text}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Verdict:
    """What becomes of a request: an object, or reasons. `failed` says that nothing was judged."""

    object: Data | None
    why: str = ""
    failed: bool = False


def requests(documents: Iterable[Data]) -> list[PlayedRequest]:
    """Return the requests that can be played, each once: a spec of an instance is one of an instance and one of a machine."""
    found: dict[str, PlayedRequest] = {}
    for document in documents:
        for request in _requests(document):
            found.setdefault(request.digest, request)
    return [found[digest] for digest in sorted(found)]


def _requests(document: Data) -> Iterator[PlayedRequest]:
    test = document["test"]
    if "spec" in document:
        yield from _both(document["spec"], {}, test)
        return
    asked = document["request"]
    kind, version = _kind(asked["resource"]), asked["resource"].get("version", "")
    if kind is None or asked.get("subResource") or not isinstance(asked.get("object"), dict):
        return
    # Tests of creations leave the operation out at times.
    if asked["operation"] in ("CREATE", ""):
        given = _given(kind, asked["object"], asked["object"], version)
        if kind.kind == _INSTANCE:
            yield from _both(given.get("spec") or {}, given["metadata"], test)
        else:
            yield PlayedRequest(kind, given, None, test)
        template = (given.get("spec") or {}).get("template")
        if (kind.group, kind.kind) == ("kubevirt.io", _MACHINE) and isinstance(template, dict):
            yield from _both(template.get("spec") or {}, template.get("metadata") or {}, test)
    elif asked["operation"] == "UPDATE" and isinstance(asked.get("oldObject"), dict):
        old = asked["oldObject"]
        yield PlayedRequest(kind, _given(kind, asked["object"], old, version), _given(kind, old, old, version), test)


def _both(spec: Data, metadata: Data, test: str) -> Iterator[PlayedRequest]:
    instance, machine = (
        next(kind for kind in catalog.facts() if (kind.group, kind.kind) == ("kubevirt.io", name)) for name in (_INSTANCE, _MACHINE)
    )
    yield PlayedRequest(instance, _given(instance, {"metadata": metadata, "spec": spec}, {}), None, test)
    template = {"metadata": {key: metadata[key] for key in ("labels", "annotations") if key in metadata}, "spec": spec}
    yield PlayedRequest(machine, _given(machine, {"spec": {"runStrategy": "Halted", "template": template}}, {}), None, test)


def _kind(resource: Data) -> KindFacts | None:
    group, plural = resource.get("group", ""), resource.get("resource", "")
    return next((kind for kind in catalog.facts() if kind.group == group and kind.plural == plural), None)


def _given(kind: KindFacts, data: Data, named: Data, version: str = "") -> Data:
    """Return an object of a test as a client sends it, in the namespace `default`."""
    metadata = {key: each for key, each in (data.get("metadata") or {}).items() if key not in _SERVERS and each is not None}
    name = (named.get("metadata") or {}).get("name") or ""
    metadata["name"] = name if _NAME.fullmatch(name) else "a"
    metadata.pop("namespace", None)
    metadata.pop("generateName", None)
    if kind.namespaced:
        metadata["namespace"] = "default"
    data = _without_nulls(data)
    return {**data, "apiVersion": f"{kind.group}/{version or kind.storage_version}", "kind": kind.kind, "metadata": metadata}


def alpha_gates(program: Path) -> tuple[str, ...]:
    """Return the gates of KubeVirt that are off by themselves."""
    return tuple(sorted(subprocess.run([program, "gates"], capture_output=True, text=True, check=True).stdout.split()))


def theirs(program: Path, asked: list[PlayedRequest], gates: Iterable[str]) -> list[Verdict]:
    """Return the verdicts of KubeVirt's webhooks."""
    lines = "".join(f"{request.text}\n" for request in asked)
    ran = subprocess.run([program, *gates], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(asked)
    return [_their_verdict(answer) for answer in answers]


def _their_verdict(answer: Data) -> Verdict:
    if answer["allowed"]:
        return Verdict(answer["object"])
    causes = "; ".join(f"{each.get('field', '')}: {each['message']}" for each in answer.get("causes") or ())
    message = answer.get("message", "")
    return Verdict(None, causes or message, failed=message.startswith(("panic: ", "unknown kind ")))


async def ours(asked: list[PlayedRequest], gates: Iterable[str]) -> list[Verdict]:
    """Return the verdicts of a server in memory."""
    async with Harness(settings=AdmissionSettings(gates=frozenset(gates))) as api:
        return [await _judged(api, request) for request in asked]


async def _judged(api: Harness, request: PlayedRequest) -> Verdict:
    kind, metadata = request.kind, request.object["metadata"]
    namespace = metadata.get("namespace", "")
    target = f"/apis/{request.object['apiVersion']}{f'/namespaces/{namespace}' if namespace else ''}/{kind.plural}"
    if request.old is None:
        reply = await api.post(f"{target}?dryRun=All", request.object)
    else:
        key = StoreKey(f"{kind.plural}.{kind.group}", namespace, metadata["name"])
        made = {**request.old["metadata"], "uid": api.clock.uid(), "creationTimestamp": api.clock.now()}
        stored = {**request.old, "apiVersion": kind.api_version, "metadata": made}
        await api.store.put(key, 0, lambda revision: stamp(stored, revision)).committed()
        revision = _revision(api, key)
        changed = {**request.object, "metadata": {**metadata, "uid": made["uid"], "resourceVersion": str(revision)}}
        reply = await api.put(f"{target}/{metadata['name']}?dryRun=All", changed)
        await api.store.delete(key, revision, lambda revision: stamp(stored, revision)).committed()
    if reply.status < 300:
        return Verdict(reply.data)
    return Verdict(None, "; ".join(f"{field}: {message}" for field, message in _causes(reply.data)), failed=reply.status >= 500)


def _without_nulls(data: Any) -> Any:
    """Return data as a server stores it: a member that is null is none."""
    if isinstance(data, dict):
        return {key: _without_nulls(each) for key, each in data.items() if each is not None}
    return [_without_nulls(each) for each in data] if isinstance(data, list) else data


def _revision(api: Harness, key: StoreKey) -> int:
    stored = api.store.get(key)
    assert stored is not None
    return stored.revision


def _causes(status: Data) -> list[tuple[str, str]]:
    causes = (status.get("details") or {}).get("causes") or ()
    return [(each.get("field", ""), each.get("message", "")) for each in causes] or [("", status.get("message", ""))]


def differences(request: PlayedRequest, one: Data, other: Data) -> dict[str, tuple[Any, Any]]:
    """Return where two objects that were made of a request differ, by path: spec, labels and annotations."""
    found: dict[str, tuple[Any, Any]] = {}
    for part in ("spec", "metadata"):
        sides = [_compared(each, part) for each in (one, other, request.object)]
        _differ(f".{part}", sides, found)
    return {path.removeprefix("."): pair for path, pair in found.items()}


def _compared(data: Data, part: str) -> Any:
    found = data.get(part) or {}
    return {key: found[key] for key in ("labels", "annotations") if key in found} if part == "metadata" else found


def _differ(path: str, sides: list[Any], found: dict[str, tuple[Any, Any]]) -> None:
    one, other, asked = sides
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({**one, **other}):
            below = asked.get(key) if isinstance(asked, dict) else None
            _differ(f"{path}.{key}", [one.get(key), other.get(key), below], found)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index in range(len(one)):
            below = asked[index] if isinstance(asked, list) and len(asked) == len(one) else None
            _differ(f"{path}[{index}]", [one[index], other[index], below], found)
    elif not _same(path, one, other) and not (path.endswith(_RANDOM) and one and other and not asked):
        found[path] = (one, other)


def _zero(value: Any) -> bool:
    """Return whether Go leaves a value out."""
    return value is None or value == "" or (value == 0 and value is not False)


def _same(path: str, one: Any, other: Any) -> bool:
    """Return whether two values say the same. Go writes some empty members, and quantities in another form."""
    if one == other or (not one and not other and (path.endswith(_EMPTY) or (_zero(one) and _zero(other)))):
        return True
    try:
        return quantity.parse(one) == quantity.parse(other)
    except (ValueError, TypeError, PaddockError):
        return False
