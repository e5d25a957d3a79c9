"""Two judges compared: where Paddock and a kube-apiserver say different things about an object, and why that is right.

A difference is reduced to a place, a rule and the sort of mistake, so that a thousand broken objects give a few lines. The
known ones stand in `differences.toml`, each with its explanation, and the file is exact: a difference that no entry covers
fails the tests, and so does an entry, or a place of one, that no object shows any more.

Rules that have no form for a kube-apiserver are Paddock's alone. What only they refuse is no difference.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from paddock.kubernetes.schema.messages import TYPE
from tests.reference.verdict import Complaint, Question, Verdict

KNOWN = Path(__file__).parent / "differences.toml"

_INDEX = re.compile(r"\[\d+\]")
_KEY = re.compile(r"\[([^\]]*)\]")


class Side(StrEnum):
    """The judge that refuses alone."""

    ONLY_PADDOCK = "only-paddock"  # Paddock refuses, the server accepts
    ONLY_SERVER = "only-server"  # the server refuses, Paddock accepts
    ELSEWHERE = "elsewhere"  # both refuse, and one has nothing to say about the place that the other means


@dataclass(frozen=True, order=True)
class Difference:
    """One reason for saying different things: `place` is a kind and a field, `what` the sort of mistake where it is known."""

    side: Side
    rule: str
    what: str
    place: str


@dataclass(frozen=True)
class Case:
    """One object with Paddock's verdict on it; `kind` as `Kind.group`, without a group for the core.

    Of an object that was broken on purpose, `what` is the sort of mistake, `broken` the place, and `keys` are the keys of
    maps on the way there, which are nothing but examples. `own` are the ids of rules that only Paddock has.
    """

    kind: str
    question: Question
    ours: Verdict
    what: str = ""
    broken: str = ""
    keys: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Entry:
    """Differences with one explanation. In `rule`, `what` and `places` a `*` stands for anything."""

    side: Side
    rule: str
    what: str
    places: tuple[str, ...]
    why: str

    def covers(self, difference: Difference, place: str) -> bool:
        """Return whether an entry describes a difference, at one of its places."""
        return (
            difference.side is self.side
            and _fits(self.rule, difference.rule)
            and _fits(self.what, difference.what)
            and _fits(place, difference.place)
        )


@dataclass(frozen=True)
class Shown:
    """An object that shows a difference, with the server's verdict."""

    case: Case
    server: Verdict


class BadFile(ValueError):
    """The file of known differences leaves something unexplained."""


def compare(case: Case, server: Verdict) -> Iterator[Difference]:
    """The differences that one object shows."""
    ours = [complaint for complaint in case.ours.complaints if complaint.rule not in case.own]
    if server.accepted:
        yield from (_difference(Side.ONLY_PADDOCK, case, complaint) for complaint in ours)
    elif case.ours.accepted:
        yield from (_difference(Side.ONLY_SERVER, case, complaint) for complaint in server.complaints)
    else:
        yield from _elsewhere(case, ours, server.complaints)


def agreed(case: Case, server: Verdict) -> Iterator[str]:
    """The rules of Paddock's that one object broke to the server, too."""
    for complaint in case.ours.complaints:
        if any(_agree(complaint, theirs) for theirs in server.complaints):
            yield complaint.rule


def _elsewhere(case: Case, ours: Sequence[Complaint], theirs: Sequence[Complaint]) -> Iterator[Difference]:
    """Both refuse. The server must mean places that Paddock means, too, and both the one that was broken."""
    for complaint in theirs:
        if not any(_agree(each, complaint) for each in case.ours.complaints):
            yield _difference(Side.ELSEWHERE, case, complaint)
    if case.broken and not any(_is_related(case.broken, complaint.field) for complaint in theirs):
        yield from (_difference(Side.ONLY_PADDOCK, case, each) for each in ours if _is_within(each.field, case.broken))


def compare_all(cases: Iterable[Case], verdicts: Iterable[Verdict]) -> dict[Difference, Shown]:
    """Every difference, with the first object that shows it."""
    found: dict[Difference, Shown] = {}
    for case, verdict in zip(cases, verdicts, strict=True):
        for difference in compare(case, verdict):
            found.setdefault(difference, Shown(case, verdict))
    return found


def _difference(side: Side, case: Case, complaint: Complaint) -> Difference:
    return Difference(side, complaint.rule, case.what, place(case, complaint.field))


def place(case: Case, field: str) -> str:
    """Return the place of a difference, without the accidents of one object: `[*]` for list entries, `{*}` for the entries of maps."""
    for key in case.keys:
        field = re.sub(rf"(\[{re.escape(key)}\]|\.{re.escape(key)})(?=[.\[]|\Z)", "{*}", field, count=1)
    # Metadata is the same for every kind, to both judges.
    kind = "every kind" if _plain(field).split(".")[0] == "metadata" else case.kind
    return f"{kind} {_INDEX.sub('[*]', field)}".rstrip()


def read(path: Path = KNOWN) -> list[Entry]:
    """The known differences with their explanations."""
    entries = []
    for each in tomllib.loads(path.read_text()).get("difference", []):
        entry = Entry(Side(each["side"]), each["rule"], each.get("what", ""), tuple(each["places"]), each["why"])
        if not entry.why.strip():
            raise BadFile(f"{path}: {entry.rule} {entry.what}: `why` is empty")
        entries.append(entry)
    return entries


def unexplained(found: dict[Difference, Shown], known: Sequence[Entry]) -> str:
    """Return the differences without an entry, as entries to complete; empty when there are none."""
    new = [each for each in sorted(found) if not any(entry.covers(each, place) for entry in known for place in entry.places)]
    lines: list[str] = []
    for side, rule, what in dict.fromkeys((each.side, each.rule, each.what) for each in new):
        alike = [each for each in new if (each.side, each.rule, each.what) == (side, rule, what)]
        lines += ["", *_comments(found[alike[0]])]
        lines += ["[[difference]]", f'side = "{side}"', f'rule = "{rule}"', f'what = "{what}"', 'why = ""', "places = ["]
        lines += [*(f'    "{each.place}",' for each in alike), "]"]
    return "\n".join(lines)


def _comments(shown: Shown) -> list[str]:
    """Return comments that help to explain a difference: an object, and both verdicts on it."""
    question = shown.case.question
    lines = [f"{question.thing!r:.500}"]
    lines += [f"before: {question.old!r:.500}"] if question.old is not None else []
    for judge, verdict in (("Paddock", shown.case.ours), ("server", shown.server)):
        lines += [f"{judge}: {each.field}: {each.message:.200}" for each in verdict.complaints[:4]] or [f"{judge}: accepted"]
    return [f"# {line}".replace("\n", " ") for line in lines]


def stale(found: Iterable[Difference], known: Sequence[Entry]) -> list[str]:
    """The entries, place by place, that nothing shows any more."""
    found = list(found)
    return [
        f"{entry.side} {entry.rule} {entry.what}: {place}"
        for entry in known
        for place in entry.places
        if not any(entry.covers(each, place) for each in found)
    ]


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text, re.DOTALL) is not None


def _plain(field: str) -> str:
    """One spelling for a path: `a[key].b` and `a.key.b` are the same place."""
    return _KEY.sub(lambda found: found[0] if found[1].isdigit() else f".{found[1]}", field)


def _agree(ours: Complaint, theirs: Complaint) -> bool:
    """Paddock may say more exactly where; and below what has the wrong type everything is wrong."""
    return _is_within(ours.field, theirs.field) or (ours.rule == TYPE and _is_within(theirs.field, ours.field))


def _is_within(field: str, outer: str) -> bool:
    """Return whether a complaint is at a place or inside it; the whole object is around everything."""
    field, outer = _plain(field), _plain(outer)
    return not outer or field == outer or field.startswith((f"{outer}.", f"{outer}["))


def _is_related(field: str, other: str) -> bool:
    return _is_within(field, other) or _is_within(other, field)
