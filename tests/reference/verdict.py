"""The verdict of a judge on an object: accepted, or refused with complaints about fields. The server's side of it.

A request to the server has `dryRun=All` and `fieldValidation=Strict`, so it does everything but store. For a change the old form is
stored for a moment, because rules about changes need one to compare with. A status is written to an object that is stored,
because a server drops it everywhere else.
"""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

from tests.reference.client import Answer, Api, Json, Resource

STRICT = {"dryRun": "All", "fieldValidation": "Strict"}

UNKNOWN = "UnknownField"
REPEATED = "DuplicateField"
# Refused before any field was looked at, for instance because metadata does not decode.
UNREADABLE = "BadRequest"

_changes = count()
_STRICT_ERROR = re.compile(r'(unknown|duplicate) field "((?:[^"\\]|\\.)*)"')
# A request that says nothing about the object: asking again, or asking better, could end otherwise.
_NO_VERDICT = frozenset({401, 403, 404, 409, 429, 500, 503, 504})


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong. `rule` is the judge's own name for what was broken: a cause type, or the id of a rule."""

    field: str
    rule: str
    message: str = ""


@dataclass(frozen=True)
class Verdict:
    """The verdict on an object, and every complaint about it."""

    accepted: bool
    complaints: tuple[Complaint, ...] = ()


@dataclass(frozen=True)
class Stored:
    """An object that the server holds."""

    path: str
    thing: Json


@dataclass(frozen=True)
class Question:
    """An object to judge, asked where its kind is served, whatever it says of itself.

    With `old`, it is a change of that object. With `status_of`, its status is to be written to that stored object.
    """

    thing: Json
    resource: Resource
    old: Json | None = None
    status_of: Stored | None = None


class NoVerdict(RuntimeError):
    """The server answered something that is no judgement of the object."""


def read(answer: Answer) -> Verdict:
    """The verdict that stands in an answer to a dry run."""
    if answer.ok:
        return Verdict(True)
    if answer.status in _NO_VERDICT:
        raise NoVerdict(f"HTTP {answer.status}: {answer.message}")
    causes = (answer.body.get("details") or {}).get("causes") or []
    complaints = [Complaint(_field(each), each.get("reason", ""), each.get("message", "")) for each in causes]
    if not complaints:
        complaints = [
            Complaint(place, UNKNOWN if what == "unknown" else REPEATED, f'{what} field "{place}"')
            for what, place in _STRICT_ERROR.findall(answer.message)
        ]
    return Verdict(False, tuple(complaints) or (Complaint("", UNREADABLE, answer.message),))


def _field(cause: Json) -> str:
    """The field of a cause; the whole object, which the server writes as `<nil>`, is the empty path."""
    field: str = cause.get("field", "")
    return "" if field == "<nil>" else field.lstrip(".")


def ask(api: Api, question: Question) -> Verdict:
    """The server's verdict on one object."""
    if question.status_of:
        written = {**question.status_of.thing, "status": question.thing["status"]}
        return read(api.request("PUT", f"{question.status_of.path}/status", written, query=STRICT))
    if question.old is not None:
        return _ask_about_change(api, question.resource, question.old, question.thing)
    return read(api.request("POST", question.resource.collection_of(question.thing), question.thing, query=STRICT))


def _ask_about_change(api: Api, resource: Resource, old: Json, new: Json) -> Verdict:
    """The old form gets a namespace, or a name, of its own, so that questions at the same time stay apart."""
    apart = {"namespace" if resource.namespaced else "name": f"change-{next(_changes)}"}
    old, new = ({**each, "metadata": {**each.get("metadata", {}), **apart}} for each in (old, new))
    path = resource.collection_of(old)
    answer = api.request("POST", path, old)
    if not answer.ok:
        raise NoVerdict(f"cannot store the old form: {answer.message}")
    one = f"{path}/{answer.body['metadata']['name']}"
    try:
        if "status" in old:
            # A creation drops it where it is a subresource, and rules about changes may look at it.
            answer = api.request("PUT", f"{one}/status", {**answer.body, "status": old["status"]})
            if not answer.ok:
                raise NoVerdict(f"cannot store the old status: {answer.message}")
        new["metadata"]["resourceVersion"] = answer.body["metadata"]["resourceVersion"]
        return read(api.request("PUT", one, new, query=STRICT))
    finally:
        api.request("DELETE", one)


def ask_all(api: Api, questions: Iterable[Question], *, at_once: int = 4) -> Iterator[Verdict]:
    """The server's verdicts, in the order of the questions."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda question: ask(api, question), questions)
