"""The promises to writers and the events of watchers, and their agreement with the stored state.

Every write carries a token of its own in an annotation, so that each state of each object is known by revision and token.
"""

from dataclasses import dataclass, field
from typing import Any

Data = dict[str, Any]
TOKEN = "chaos/token"
# an object as it is: revision and token; None when there is none
State = tuple[int, str] | None


def state_of(item: Data) -> tuple[int, str]:
    """Revision and token of an object."""
    meta = item["metadata"]
    return int(meta["resourceVersion"]), (meta.get("annotations") or {}).get(TOKEN, "")


def identity(item: Data) -> tuple[str, str]:
    """Namespace and name."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


@dataclass
class Entry:
    """One object: what was acknowledged last, and what was asked for since and never answered."""

    known: State = None
    # the token of a write without an answer, "" for a deletion without one
    asked: str | None = None


@dataclass
class Watched:
    """The events of one watcher of a collection since it began."""

    begin: int
    last: int
    seen: list[tuple[int, str, tuple[str, str], str]] = field(default_factory=list)
    resumed: int = 0

    def take(self, event: Data) -> None:
        """Note an event; nothing may come twice or out of order."""
        revision, token = state_of(event["object"])
        assert revision > self.last, f"event {revision} after {self.last}"
        self.last = revision
        self.seen.append((revision, event["type"], identity(event["object"]), token))


class Ledger:
    """One collection."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self.watchers: list[Watched] = []
        # every acknowledged write: revision -> name and token ("" for a deletion, whose revision nobody is told)
        self.acknowledged: dict[int, tuple[str, str]] = {}

    def entry(self, name: str) -> Entry:
        """The entry of an object."""
        return self.entries.setdefault(name, Entry())

    def answered(self, name: str, item: Data) -> None:
        """A write was acknowledged."""
        entry, state = self.entry(name), state_of(item)
        assert state[1] == entry.asked, f"{name}: asked for {entry.asked}, answered {state}"
        assert entry.known is None or state[0] > entry.known[0]
        assert state[0] not in self.acknowledged, f"revision {state[0]} was given out twice"
        self.acknowledged[state[0]] = (name, state[1])
        entry.known, entry.asked = state, None

    def answered_deletion(self, name: str) -> None:
        """A deletion was acknowledged."""
        entry = self.entry(name)
        entry.known, entry.asked = None, None

    def hold_against(self, items: list[Data], *, exactly: bool) -> None:
        """After a restart: all that was acknowledged is there, exactly; what was not answered came to be, or did not.

        `exactly`: the server had time to finish, so what was not answered did not come to be.
        """
        found = {item["metadata"]["name"]: state_of(item) for item in items if state_of(item)[1]}
        for name in {*found, *self.entries}:
            entry, state = self.entry(name), found.get(name)
            if state != entry.known:
                assert entry.asked is not None and not exactly, f"{self.path}/{name}: acknowledged {entry.known}, found {state}"
                assert (state[1] if state else "") == entry.asked, f"{self.path}/{name}: {state} is not {entry}"
                assert state is None or entry.known is None or state[0] > entry.known[0]
                if state is not None:
                    self.acknowledged[state[0]] = (name, state[1])
            entry.known, entry.asked = state, None

    def hold_watchers(self) -> None:
        """At the end: each watcher saw every write once, in order, the same as the others, and what they saw makes what is there."""
        for watched in self.watchers:
            assert watched.seen == [each for each in self.watchers[0].seen if each[0] > watched.begin]
            writes = {revision: (name, token) for revision, kind, (_, name), token in watched.seen if kind != "DELETED"}
            for revision, write in self.acknowledged.items():
                if revision > watched.begin:
                    assert writes.get(revision) == write, f"{self.path}: write {revision} {write} was seen as {writes.get(revision)}"
            held: dict[str, tuple[int, str]] = {}
            for revision, kind, (_, name), token in watched.seen:
                assert (kind == "ADDED") == (name not in held), f"{kind} {name} at {revision}"
                if kind == "DELETED":
                    del held[name]
                else:
                    held[name] = (revision, token)
            there = {
                name: entry.known for name, entry in self.entries.items() if entry.known is not None and entry.known[0] > watched.begin
            }
            assert {name: state for name, state in held.items() if state[1]} == there
