"""What a judge says about an object: accepted, or refused with complaints about fields. The server's side of it.

The server is asked with `dryRun=All` and `fieldValidation=Strict`, so it does everything but store. A change is asked about
by storing the old form for a moment, because rules about changes need one to look at.
"""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.reference.client import Answer, Api, Json

STRICT = {"dryRun": "All", "fieldValidation": "Strict"}

UNKNOWN = "UnknownField"
REPEATED = "DuplicateField"
# Refused before any field was looked at, for instance because metadata does not decode.
UNREADABLE = "BadRequest"

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
    """Whether an object may be stored, and everything that speaks against it."""

    accepted: bool
    complaints: tuple[Complaint, ...] = ()


@dataclass(frozen=True)
class Question:
    """An object to judge; with `old`, the object that it would replace."""

    thing: Json
    old: Json | None = None


class NoVerdict(RuntimeError):
    """The server answered something that is no judgement of the object."""


def read(answer: Answer) -> Verdict:
    """The verdict that stands in an answer to a dry run."""
    if answer.ok:
        return Verdict(True)
    if answer.status in _NO_VERDICT:
        raise NoVerdict(f"HTTP {answer.status}: {answer.message}")
    causes = (answer.body.get("details") or {}).get("causes") or []
    complaints = [Complaint(each.get("field", ""), each.get("reason", ""), each.get("message", "")) for each in causes]
    if not complaints:
        complaints = [
            Complaint(place, UNKNOWN if what == "unknown" else REPEATED, f'{what} field "{place}"')
            for what, place in _STRICT_ERROR.findall(answer.message)
        ]
    return Verdict(False, tuple(complaints) or (Complaint("", UNREADABLE, answer.message),))


def ask(api: Api, question: Question) -> Verdict:
    """The server's verdict on one object."""
    path = api.collection(question.thing)
    if question.old is None:
        return read(api.request("POST", path, question.thing, query=STRICT))
    stored = api.request("POST", path, question.old)
    if not stored.ok:
        raise NoVerdict(f"cannot store the old form: {stored.message}")
    one = f"{path}/{stored.body['metadata']['name']}"
    try:
        metadata = {**question.thing.get("metadata", {}), "resourceVersion": stored.body["metadata"]["resourceVersion"]}
        return read(api.request("PUT", one, {**question.thing, "metadata": metadata}, query=STRICT))
    finally:
        api.request("DELETE", one)


def ask_all(api: Api, questions: Iterable[Question], *, at_once: int = 4) -> Iterator[Verdict]:
    """The server's verdicts, in the order of the questions."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda question: ask(api, question), questions)
