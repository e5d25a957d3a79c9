"""Says a script to one server and keeps its answers, with everything that a server chooses by itself written as what it was."""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.reference.client import Api, Unreachable
from tests.reference.scripted.script import Known, Step

# An object that was never seen has no revision; this one belongs to nobody.
NOBODYS = {"uid": "11111111-2222-4333-8444-555555555555", "revision": "1", "first revision": "1"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
AGE = re.compile(r"\A\d+s\Z")
GENERATED = re.compile(r"(base-)[a-z0-9]{5}\b")
SUBRESOURCES = ("status", "scale", "finalize", "token")


@dataclass(frozen=True)
class Said:
    """An answer that can be compared with another server's."""

    status: int
    body: Any
    warnings: tuple[str, ...] = ()


@dataclass
class Player:
    """One server and what it said so far of each object."""

    api: Api
    _uids: dict[str, str] = field(default_factory=dict)
    _revisions: dict[str, list[str]] = field(default_factory=dict)

    def play(self, step: Step) -> Said:
        """Says one step."""
        try:
            answer = self.api.request(
                step.method,
                step.path,
                self._filled(step.body),
                query={name: self._filled(value) for name, value in step.query},
                headers={"Content-Type": step.content_type, "Accept": step.accept, "User-Agent": "scripted/1.0"},
            )
        except Unreachable:
            # A handler that breaks drops the connection; to the client that is an internal error.
            return Said(500, {"message": "no answer"})
        if answer.ok:
            self._learn(step, answer.body)
        return Said(answer.status, self._compared(answer.body), tuple(self._text(each) for each in answer.warnings))

    def _filled(self, value: Any) -> Any:
        if isinstance(value, Known):
            if value.which == "uid":
                return self._uids.get(value.path, NOBODYS["uid"])
            seen = self._revisions.get(value.path)
            return seen[0 if value.which == "first revision" else -1] if seen else NOBODYS["revision"]
        if isinstance(value, dict):
            return {key: self._filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        return value

    def _learn(self, step: Step, body: Any) -> None:
        """Remembers the object of an answer. A dry run is no fact."""
        metadata = body.get("metadata") if isinstance(body, dict) else None
        if not isinstance(metadata, dict) or "uid" not in metadata or "dryRun" in dict(step.query):
            return
        path = step.path
        head, _, last = path.rpartition("/")
        if last in SUBRESOURCES and step.method != "POST":
            path = head
        elif step.method == "POST":
            path = f"{path}/{metadata['name']}"
        if self._uids.get(path) != metadata["uid"]:
            self._revisions[path] = []
        self._uids[path] = metadata["uid"]
        revisions = self._revisions[path]
        if metadata["resourceVersion"] not in revisions:
            revisions.append(metadata["resourceVersion"])

    def _compared(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._member(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._compared(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _member(self, key: str, value: Any) -> Any:
        """Revisions become their number in the object's life, so that a change that did not happen shows."""
        if key == "resourceVersion" and isinstance(value, str):
            numbers = [seen.index(value) for seen in self._revisions.values() if value in seen]
            return f"<revision {numbers[0]}>" if numbers else "<revision>"
        if key == "continue" and value:
            return "<token>"
        if key == "cells" and isinstance(value, list):
            return [AGE.sub("<age>", cell) if isinstance(cell, str) else cell for cell in value]
        if key == "managedFields" and isinstance(value, list):
            # Entries of one second have no order of their own, and the second may end between two servers.
            value = sorted(value, key=lambda entry: [str(entry.get(name)) for name in ("operation", "manager", "subresource", "fieldsV1")])
        return self._compared(value)

    def _text(self, text: str) -> str:
        for path, uid in self._uids.items():
            text = text.replace(uid, f"<uid of {path}>")
        return GENERATED.sub(r"\1<generated>", UID.sub("<uid>", TIME.sub("<time>", text)))
