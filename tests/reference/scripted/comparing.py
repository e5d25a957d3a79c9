"""Two answers to one request, compared; each difference is one line that an entry of `differences.toml` can explain."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.reference.scripted.playing import Said
from tests.reference.scripted.script import Step

FILE = Path(__file__).with_name("differences.toml")
ABSENT = "<absent>"
# Paddock's own housekeeping makes these in every namespace; the other server has no controllers, but one that makes events.
HOUSEKEEPING = ("kube-root-ca.crt", "default")
REPAIRER = "ipallocator-repair-controller"


@dataclass(frozen=True)
class Difference:
    """A difference between two answers to a request."""

    request: str
    place: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.request} | {self.place} | {self.ours!r} | {self.theirs!r}"


@dataclass
class Explained:
    """One known difference: patterns (as in a shell) of the line, and why it is left so."""

    line: str
    why: str
    seen: int = field(default=0, compare=False)


def explained(file: Path = FILE) -> list[Explained]:
    """The known differences."""
    return [Explained(each["line"], each["why"]) for each in tomllib.loads(file.read_text()).get("difference", [])]


def differences(step: Step, ours: Said, theirs: Said) -> list[Difference]:
    """All differences of two answers, in the order of the fields."""
    request = f"{step.kind} {_plural(step.path)}"
    found = [Difference(request, place, mine, other) for place, mine, other in _compare("", _told(ours), _told(theirs))]
    if ours.status != theirs.status:
        # The rest follows from it.
        text = f"{ours.status} {_message(ours)}", f"{theirs.status} {_message(theirs)}"
        return [Difference(request, "code", *text)]
    return found


def unexplained(found: list[Difference], known: list[Explained]) -> list[Difference]:
    """The differences that no entry explains; entries that explain one count it."""
    left = []
    for each in found:
        for entry in known:
            if fnmatchcase(str(each), entry.line):
                entry.seen += 1
                break
        else:
            left.append(each)
    return left


def _told(said: Said) -> Any:
    """Return the part that has to be the same: of a refusal its reason and causes, else the whole object and the warnings."""
    body = said.body
    if said.status >= 400:
        causes = (body.get("details") or {}).get("causes") or []
        return {"reason": body.get("reason"), "causes": {f"{each.get('field', '')} {each.get('reason', '')}": "" for each in causes}}
    for many in ("items", "rows"):
        if isinstance(body.get(many), list):
            body = {**body, many: [each for each in body[many] if not _is_housekeeping(each)]}
    if "items" in body or "rows" in body:
        # The revision of a list is that of the whole server.
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": ""}}
    return {"body": body, "warnings": list(said.warnings)}


def _is_housekeeping(item: Any) -> bool:
    name = (item.get("object") or item).get("metadata", {}).get("name")
    return name in HOUSEKEEPING or item.get("reportingComponent") == REPAIRER


def _message(said: Said) -> str:
    return str(said.body.get("message", "")) if isinstance(said.body, dict) else ""


def _compare(place: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            yield from _compare(f"{place}.{key}" if place else key, ours.get(key, ABSENT), theirs.get(key, ABSENT))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _compare(f"{place}[{index}]", mine, other)
    elif ours != theirs:
        yield place, ours, theirs


def _plural(path: str) -> str:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join([parts[0], *("NAME" for _ in parts[1:2]), *parts[2:]])
