"""The recorded answers of a kube-apiserver, so that the same questions need not be asked of it each time.

A file of `answers/` belongs to one test module. A line is the digest of a question and its answer; the digest also covers the release of
the server, its flags, and the definitions of the kinds it was asked about, without their texts. So a question that changes, a new one,
and every question after a new release or a changed CRD have no answer in the file, and a server is started to give it. `make answers`
records what was asked.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

from tests.reference import crds, objects, server, verdict
from tests.reference.build import MODULE
from tests.reference.client import Api, Json, Resource
from tests.reference.verdict import Question, Stored, Verdict

FOLDER = Path(__file__).parent / "answers"
# What a server makes up anew for each object.
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


class Answers:
    """The answers of a server to the questions of one test module; `live` starts one."""

    def __init__(self, file: Path, live: Callable[[], Api]) -> None:
        self._file, self._live = file, live
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self._known: dict[str, Any] = {line[:16]: json.loads(line[17:]) for line in lines}
        self._asked: dict[str, Any] = {}
        self.anew = 0

    def remember(self, question: Any, ask: Callable[[Api], Any]) -> Any:
        """Return the answer to a question that JSON can hold: the recorded one, or that of a server."""
        key = _digest(_release(), question)
        if key not in self._known:
            self._note(key, ask(self._live()))
        self._asked[key] = self._known[key]
        return self._known[key]

    def ask(self, question: Question) -> Verdict:
        """Return the server's verdict on one object."""
        return next(self.ask_all([question]))

    def ask_all(self, questions: Iterable[Question]) -> Iterator[Verdict]:
        """Yield the server's verdicts, in the order of the questions."""
        keyed = [(_digest(_release(), *_said(each)), each) for each in questions]
        missing = {key: each for key, each in keyed if key not in self._known}
        if missing:
            for key, answer in zip(missing, _asked_live(self._live(), list(missing.values())), strict=True):
                self._note(key, to_builtins(answer))
        for key, _ in keyed:
            self._asked[key] = self._known[key]
            yield convert(self._known[key], Verdict)

    def stored(self, resource: Resource, thing: Json) -> Stored:
        """Return an object in the server's form, without what the server makes up anew each time."""

        def ask(api: Api) -> Json:
            with objects.stored(api, resource, thing) as made:
                metadata = {name: value for name, value in made.thing["metadata"].items() if name not in _OWN}
                return {"path": made.path, "thing": {**made.thing, "metadata": metadata}}

        answer = self.remember(["stored", to_builtins(resource), thing, _definition(resource)], ask)
        return Stored(answer["path"], answer["thing"])

    def write(self, *, whole: bool) -> None:
        """Keep what was asked; a whole run forgets the rest."""
        self._file.parent.mkdir(exist_ok=True)
        kept = self._asked if whole else self._known
        lines = (f"{key} {json.dumps(answer, sort_keys=True)}\n" for key, answer in sorted(kept.items()))
        self._file.write_text("".join(lines), encoding="utf-8")

    def _note(self, key: str, answer: Any) -> None:
        self._known[key] = json.loads(json.dumps(answer))
        self.anew += 1


def _asked_live(api: Api, questions: list[Question]) -> Iterator[Verdict]:
    """Ask a server; the objects whose status is to be written are stored meanwhile."""
    with ExitStack() as stack:
        bases: dict[str, Stored] = {}
        for each in questions:
            if each.status_of is not None and each.status_of.path not in bases:
                bases[each.status_of.path] = stack.enter_context(objects.stored(api, each.resource, each.status_of.thing))
        asked = [replace(each, status_of=bases[each.status_of.path]) if each.status_of else each for each in questions]
        yield from verdict.ask_all(api, asked)


def _said(question: Question) -> tuple[Any, ...]:
    """All that an answer depends on."""
    base = question.status_of.thing if question.status_of else None
    return question.thing, to_builtins(question.resource), question.old, base, _definition(question.resource)


@cache
def _definitions() -> dict[tuple[str, str], str]:
    return {(crd.spec["group"], crd.names["plural"]): _digest(_without_texts(crd.document)) for crd in crds.load()}


def _without_texts(found: Any) -> Any:
    """Return a definition without its descriptions, on which no answer depends. A field of that name has a schema, and stays."""
    if isinstance(found, dict):
        return {key: _without_texts(each) for key, each in found.items() if key != "description" or not isinstance(each, str)}
    return [_without_texts(each) for each in found] if isinstance(found, list) else found


def definitions() -> str:
    """Return the digest of all CRDs."""
    return _digest(sorted(_definitions().values()))


def _definition(resource: Resource) -> str:
    """Return the digest of a kind's CRD; "" for one that the server has itself."""
    return _definitions().get((resource.group, resource.plural), "")


@cache
def _release() -> str:
    """Return a digest of the server: the versions that it is built from, and how it is started."""
    return _digest((MODULE / "go.mod").read_text(), Path(server.__file__).read_text())


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
