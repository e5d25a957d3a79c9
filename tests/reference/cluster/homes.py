"""The lines that users see of a machine, and the differences between its two homes: the tables of kubectl, and conditions."""

import fnmatch
import json
import re
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.reference.client import Json, Kubectl

KNOWN = Path(__file__).with_name("homes.toml")
# Nothing has moved for so long: this is a state of rest.
_QUIET_SECONDS = 6.0
_PATIENCE = 900.0
# Columns that are another in every run, wherever the machine is.
_FLEETING = ("AGE", "VOLUME", "NAME")
_ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
_WORLD = ("virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io", "datavolumes.cdi.kubevirt.io", "persistentvolumeclaims")


@dataclass
class Home:
    """A place where a machine runs, as a user with kubectl sees it."""

    name: str
    kubectl: Kubectl
    # of the machine; what is made for it has names that begin with that
    machine: str
    namespace: str
    # step -> place of a line -> the line
    seen: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(self, *words: str, given: str = "") -> str:
        """Run kubectl in the namespace of the machine."""
        return self.kubectl.ok("-n", self.namespace, *words, stdin=given)

    def rest(self, step: str, kind: str) -> None:
        """Wait until nothing moves, and keep what there is to see of a kind of machine."""
        end, since, last = time.monotonic() + _PATIENCE, time.monotonic(), self.look(kind)
        while time.monotonic() < since + _QUIET_SECONDS:
            assert time.monotonic() < end, f"{self.name} never comes to rest: {last}"
            time.sleep(1)
            now = self.look(kind)
            if now != last:
                since, last = time.monotonic(), now
        self.seen[step] = last

    def look(self, kind: str) -> dict[str, str]:
        """Return the lines by their places, such as `virtualmachines.kubevirt.io PHASE`."""
        found = {}
        for each in (kind, *_WORLD):
            for column, cell in self._cells(each):
                found[f"{each} {column}"] = cell
        for each in (kind, _WORLD[0]):
            things = json.loads(self.run("get", each, "-o", "json"))["items"]
            for thing in (one for one in things if one["metadata"]["name"] == self.machine):
                found |= {f"{each} condition {type_}": said for type_, said in _conditions(thing)}
        return found

    def _cells(self, kind: str) -> Iterator[tuple[str, str]]:
        head, *lines = self.run("get", kind).splitlines() or [""]
        ours = [line for line in lines if line.startswith(self.machine)]
        yield "objects", str(len(ours))
        starts = [match.start() for match in re.finditer(r"(?<!\S)\S+(?: \S+)*", head)]
        for line in ours[:1]:
            for start, end in zip(starts, [*starts[1:], None], strict=True):
                column = head[start:end].strip()
                if column not in _FLEETING:
                    yield column, _ADDRESS.sub("ADDRESS", line[start:end].strip())


def _conditions(thing: Json) -> Iterator[tuple[str, str]]:
    for each in thing.get("status", {}).get("conditions", ()):
        yield each["type"], " ".join(filter(None, (each["status"], each.get("reason", ""))))


@dataclass(frozen=True)
class Difference:
    """A line that is another in the two homes; empty where a home does not have it."""

    step: str
    line: str
    embedded: str
    cluster: str

    def __str__(self) -> str:
        facts = {"line": self.line, "steps": [self.step], "embedded": self.embedded, "cluster": self.cluster, "why": ""}
        return "\n".join(["[[difference]]", *(f"{name} = {json.dumps(value)}" for name, value in facts.items())])


@dataclass(frozen=True)
class Known:
    """A difference with its explanation; texts are patterns."""

    line: str
    embedded: str
    cluster: str
    step: str

    def covers(self, found: Difference) -> bool:
        """Return whether a difference is this one."""
        pairs = ((found.line, self.line), (found.embedded, self.embedded), (found.cluster, self.cluster))
        return found.step == self.step and all(fnmatch.fnmatchcase(text, pattern) for text, pattern in pairs)


def known(steps: Iterable[str]) -> Sequence[Known]:
    """Return the differences that are explained, one for each of these steps."""
    listed = tomllib.loads(KNOWN.read_text())["difference"]
    assert all(each["why"] for each in listed)
    return [Known(each["line"], each["embedded"], each["cluster"], step) for each in listed for step in steps if step in each["steps"]]


def differences(embedded: Home, cluster: Home) -> Iterator[Difference]:
    """Yield the lines that differ, step by step."""
    assert embedded.seen.keys() == cluster.seen.keys()
    for step in embedded.seen:
        one, other = embedded.seen[step], cluster.seen[step]
        for line in sorted(one.keys() | other.keys()):
            if one.get(line, "") != other.get(line, ""):
                yield Difference(step, line, one.get(line, ""), other.get(line, ""))


def live(home: Home, kind: str, steps: Mapping[str, Callable[[Home], None]]) -> None:
    """Play a script, and look at the machine at rest after each step."""
    for name, act in steps.items():
        act(home)
        home.rest(name, kind)
