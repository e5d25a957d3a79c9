"""The lines that users see of a machine in each of its two homes, and the differences: tables of kubectl, conditions, and statuses."""

import fnmatch
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from tests.reference.client import Json, Kubectl
from tools.referencepages.homes import KnownDifference, Step

STEPS: Sequence[Step] = get_args(Step)
MACHINES, INSTANCES = "virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io"
_WORLD = (MACHINES, INSTANCES, "datavolumes.cdi.kubevirt.io", "persistentvolumeclaims")
# Nothing has moved for so long: this is a state of rest.
_QUIET_SECONDS = 9.0
_LOOK_SECONDS = 2.0
_PATIENCE = 1500.0
# One that refuses a command for so long means it.
_BUSY_SECONDS = 240.0
# Columns that are another in every run, wherever the machine is; and a member of statuses.
_FLEETING = ("AGE", "VOLUME", "NAME")
_REVISION = "resourceVersion"
# What a front asks for again only after minutes.
_LATE = "status.provider.guestOS"
# What is another in every run, within a text.
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b"), "MAC"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(?::\d+)?\b"), "ADDRESS"),
    # of the address of an image, in names
    (re.compile(r"-[0-9a-f]{8}\b"), "-HASH"),
)


@dataclass
class Home:
    """A place where a machine runs, as its user sees it with kubectl."""

    name: str
    # of the API where the machine runs, and of the one that has its user's documents
    kubectl: Kubectl
    front: Kubectl
    # of the user's machine, such as `machines.vitistack.io`
    kind: str
    namespace: str
    # step -> place of a line -> the line
    seen: dict[str, dict[str, str]] = field(default_factory=dict)
    # step -> how long it took
    seconds: dict[str, float] = field(default_factory=dict)

    def write(self, *words: str, given: Sequence[Json] = ()) -> None:
        """Run a command about the user's documents."""
        self._run(self.front, *words, given=given)

    def written(self, name: str) -> Json:
        """The user's machine; empty when it is not there."""
        return self._get(self.front, self.kind, name)

    def made(self, kind: str, name: str) -> Json:
        """Something that came of it; empty when it is not there."""
        return self._get(self.kubectl, kind, name)

    def objects(self) -> list[Json]:
        """Return the user's object and everything made of it."""
        found: list[Json] = []
        for kubectl, kinds in self._places():
            found += json.loads(self._run(kubectl, "get", kinds, "-o", "json"))["items"]
        return found

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait for something, as long as a guest may take."""
        end = time.monotonic() + _PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{self.name}: not {what}: {json.dumps(self.objects(), indent=1)}"
            time.sleep(_LOOK_SECONDS)

    def rest(self, step: str) -> None:
        """Wait until nothing moves, and keep what there is to see."""
        end, since, last = time.monotonic() + _PATIENCE, time.monotonic(), self._statuses()
        while time.monotonic() < since + _QUIET_SECONDS:
            assert time.monotonic() < end, f"{self.name} never comes to rest: {last}"
            time.sleep(_LOOK_SECONDS)
            now = self._statuses()
            if now != last:
                since, last = time.monotonic(), now
        self.seen[step] = {**last, **dict(self._tables())}

    def _get(self, kubectl: Kubectl, kind: str, name: str) -> Json:
        found: Json = json.loads(self._run(kubectl, "get", kind, name, "-o", "json", "--ignore-not-found") or "{}")
        return found

    def _run(self, kubectl: Kubectl, *words: str, given: Sequence[Json] = ()) -> str:
        """Run a command; an API server or webhook that others starve may need several attempts."""
        end = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                return kubectl.ok("-n", self.namespace, *words, stdin="\n".join(map(json.dumps, given)))
            except (AssertionError, subprocess.TimeoutExpired):
                if time.monotonic() > end:
                    raise
                time.sleep(_LOOK_SECONDS)

    def _places(self) -> Iterator[tuple[Kubectl, str]]:
        yield self.front, self.kind
        yield self.kubectl, ",".join(each for each in _WORLD if each != self.kind)

    def _statuses(self) -> dict[str, str]:
        return {line: plain(text) for thing in self.objects() for line, text in _status_lines(thing)}

    def _tables(self) -> Iterator[tuple[str, str]]:
        for kubectl, kinds in self._places():
            said = self._run(kubectl, "get", kinds, "-o", "wide", "--show-kind")
            for table in filter(None, said.split("\n\n")):
                yield from _cells(table)


def plain(text: str) -> str:
    """A text without what is another in every run."""
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def _cells(table: str) -> Iterator[tuple[str, str]]:
    head, *rows = table.splitlines()
    starts = [match.start() for match in re.finditer(r"(?<!\S)\S+(?: \S+)*", head)]
    for row in rows:
        name = plain(row.split()[0])
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            column = head[start:end].strip()
            if column not in _FLEETING:
                yield f"{name} {column}", plain(row[start:end].strip())


def _status_lines(thing: Json) -> Iterator[tuple[str, str]]:
    group = thing["apiVersion"].rpartition("/")[0]
    name = ".".join(filter(None, (thing["kind"].lower(), group))) + "/" + plain(thing["metadata"]["name"])
    yield from ((f"{name} {place}", text) for place, text in _leaves("status", thing.get("status") or {}) if place != _LATE)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the values in a part of a status, by their places; what has a name is found by it."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            if name == "conditions":
                yield from _conditions(place, each)
            elif name != _REVISION:
                yield from _leaves(f"{place}.{plain(name)}", each)
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            label = each.get("name") if isinstance(each, dict) else None
            yield from _leaves(f"{place}[{label or index}]", each)
    elif value != {}:
        yield place, value if isinstance(value, str) else json.dumps(value)


def _conditions(place: str, conditions: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """Yield a line for each: a front may repeat those of what it has made."""
    where = "" if place == "status" else f"{place} "
    for each in conditions:
        said = " ".join(filter(None, (each["status"], each.get("reason"))))
        yield f"{where}condition {each['type']}", ": ".join(filter(None, (said, each.get("message"))))


@dataclass(frozen=True)
class Difference:
    """A line that is another in the two homes; empty where a home does not have it."""

    dialect: str
    step: str
    line: str
    embedded: str
    cluster: str


def covers(known: KnownDifference, found: Difference) -> bool:
    """Return whether a difference is a known one."""
    pairs = ((found.line, known.line), (found.embedded, known.embedded), (found.cluster, known.cluster))
    is_meant = found.dialect in known.dialects and found.step in known.steps
    return is_meant and all(fnmatch.fnmatchcase(text, _literal(pattern)) for text, pattern in pairs)


def _literal(pattern: str) -> str:
    """A pattern in which only `*` is special: places have brackets."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def differences(dialect: str, embedded: Home, cluster: Home) -> Iterator[Difference]:
    """Yield the lines that differ, step by step."""
    assert embedded.seen.keys() == cluster.seen.keys()
    for step in embedded.seen:
        one, other = embedded.seen[step], cluster.seen[step]
        for line in sorted(one.keys() | other.keys()):
            if one.get(line, "") != other.get(line, ""):
                yield Difference(dialect, step, line, one.get(line, ""), other.get(line, ""))


def unexplained(found: Iterable[Difference], explained: Sequence[KnownDifference]) -> str:
    """Return what nothing explains, as entries for the list of what is known."""
    steps: dict[tuple[str, str, str, str], list[str]] = {}
    for each in found:
        if not any(covers(one, each) for one in explained):
            steps.setdefault((each.dialect, each.line, each.embedded, each.cluster), []).append(each.step)
    entries = []
    for (dialect, line, embedded, cluster), those in steps.items():
        facts = {"dialects": [dialect], "steps": those, "line": line, "embedded": embedded, "cluster": cluster}
        entries.append("\n".join(["[[reason.difference]]", *(f"{name} = {json.dumps(value)}" for name, value in facts.items())]))
    return "\n\n".join(entries)


def stale(dialect: str, found: Sequence[Difference], explained: Sequence[KnownDifference]) -> list[tuple[str, KnownDifference]]:
    """Return what is explained and not to be seen any more, with the step."""
    mine = [(step, each) for each in explained if dialect in each.dialects for step in each.steps]
    return [(step, each) for step, each in mine if not any(covers(each, one) for one in found if one.step == step)]


def live(home: Home, steps: Mapping[str, Callable[[Home], None]]) -> None:
    """Play a script, and look at the machine at rest after each step."""
    for name, act in steps.items():
        began = time.monotonic()
        act(home)
        home.seconds[name] = time.monotonic() - began
        home.rest(name)
