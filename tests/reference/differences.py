"""Two judges compared: where Paddock and a kube-apiserver say different things about an object, and why that is right.

A difference is reduced to a place and a rule, so that a thousand broken objects give one line per reason. The known ones
stand in `differences.toml`, each with its explanation, and the file is exact: a new difference fails the tests, and so does
a line that no object shows any more.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.reference.verdict import Question, Verdict

KNOWN = Path(__file__).parent / "differences.toml"

_INDEX = re.compile(r"\[\d+\]")
_KEY = re.compile(r"\[([^\]]*)\]")


class Side(StrEnum):
    """Who says what the other does not."""

    ONLY_PADDOCK = "only-paddock"  # Paddock refuses, the server accepts
    ONLY_SERVER = "only-server"  # the server refuses, Paddock accepts
    ELSEWHERE = "elsewhere"  # both refuse, and the server complains about a field that Paddock has nothing to say about


@dataclass(frozen=True, order=True)
class Difference:
    """One reason for saying different things: `place` is a kind and a field, list indices as `[*]`."""

    side: Side
    rule: str
    place: str


@dataclass(frozen=True)
class Case:
    """One object with Paddock's verdict on it; `kind` as `Kind.group`."""

    kind: str
    question: Question
    ours: Verdict


class BadFile(ValueError):
    """The file of known differences says something twice, or leaves something unexplained."""


def compare(case: Case, server: Verdict) -> Iterator[Difference]:
    """The differences that one object shows."""
    if case.ours.accepted and server.accepted:
        return
    if server.accepted:
        for complaint in case.ours.complaints:
            yield Difference(Side.ONLY_PADDOCK, complaint.rule, place(case.kind, complaint.field))
        return
    side = Side.ONLY_SERVER if case.ours.accepted else Side.ELSEWHERE
    ours = {_plain(complaint.field) for complaint in case.ours.complaints}
    for complaint in server.complaints:
        # A refusal without a field cannot be elsewhere.
        if side is Side.ONLY_SERVER or (complaint.field and _plain(complaint.field) not in ours):
            yield Difference(side, complaint.rule, place(case.kind, complaint.field))


def compare_all(cases: Iterable[Case], verdicts: Iterable[Verdict]) -> dict[Difference, Case]:
    """Every difference, with the first object that shows it."""
    found: dict[Difference, Case] = {}
    for case, verdict in zip(cases, verdicts, strict=True):
        for difference in compare(case, verdict):
            found.setdefault(difference, case)
    return found


def place(kind: str, field: str) -> str:
    """Where a difference is, without the accidents of one object."""
    return f"{kind} {_INDEX.sub('[*]', field)}".rstrip()


def read(path: Path = KNOWN) -> dict[Difference, str]:
    """The known differences with their explanations."""
    known: dict[Difference, str] = {}
    for entry in tomllib.loads(path.read_text()).get("difference", []):
        if not entry.get("why", "").strip():
            raise BadFile(f"{path}: {entry.get('rule')}: `why` is empty")
        for where in entry["places"]:
            difference = Difference(Side(entry["side"]), entry["rule"], where)
            if difference in known:
                raise BadFile(f"{path}: {difference.rule} at {where} stands there twice")
            known[difference] = entry["why"]
    return known


def report(found: dict[Difference, Case], known: Iterable[Difference]) -> str:
    """What the file does not explain, as entries to complete, and what it explains in vain. Empty when they agree."""
    known = set(known)
    lines: list[str] = []
    unexplained = sorted(set(found) - known)
    for side, rule in dict.fromkeys((each.side, each.rule) for each in unexplained):
        alike = [each for each in unexplained if (each.side, each.rule) == (side, rule)]
        lines += ["", f"# for instance {found[alike[0]].question.thing!r:.300}"]
        lines += ["[[difference]]", f'side = "{side}"', f'rule = "{rule}"', 'why = ""', "places = ["]
        lines += [*(f'    "{each.place}",' for each in alike), "]"]
    for stale in sorted(known - set(found)):
        lines.append(f"# not seen any more: {stale.side} {stale.rule} at {stale.place}")
    return "\n".join(lines)


def _plain(field: str) -> str:
    """One spelling for a path: `a[key].b` and `a.key.b` are the same place."""
    return _KEY.sub(lambda found: found[0] if found[1].isdigit() else f".{found[1]}", field)
