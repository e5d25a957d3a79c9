from typing import Any
from urllib.parse import quote

import msgspec

Query = tuple[tuple[str, str], ...]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A selection of objects of a kind; empty means all."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> Query:
        pairs = (("labelSelector", self.labels), ("fieldSelector", self.fields))
        return tuple((name, value) for name, value in pairs if value)


EVERYTHING = Selection()


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a write. `force` takes fields from other managers and is for apply alone."""

    manager: str = ""
    subresource: str = ""
    force: bool = False
    dry_run: bool = False
    # Ignore, Warn or Strict; empty leaves it to the server
    validation: str = ""

    def query(self, manager: str) -> Query:
        """As parameters, with the client's own manager where none is given."""
        pairs = [("fieldManager", self.manager or manager)]
        if self.dry_run:
            pairs.append(("dryRun", "All"))
        if self.validation:
            pairs.append(("fieldValidation", self.validation))
        if self.force:
            pairs.append(("force", "true"))
        return tuple(pairs)


PLAIN = WriteOptions()


class DeletionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a deletion. Nothing is deleted when `uid` or `revision` is given and differs."""

    # Background, Foreground or Orphan; empty leaves it to the server
    propagation: str = ""
    uid: str = ""
    revision: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False

    def body(self) -> dict[str, Any]:
        """The DeleteOptions of the request."""
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if self.propagation:
            body["propagationPolicy"] = self.propagation
        conditions = {name: value for name, value in (("uid", self.uid), ("resourceVersion", self.revision)) if value}
        if conditions:
            body["preconditions"] = conditions
        if self.grace_seconds is not None:
            body["gracePeriodSeconds"] = self.grace_seconds
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body


DELETE = DeletionOptions()


class Patch(msgspec.Struct, frozen=True):
    """A change: its media type and its document."""

    media: str
    document: Any


def merge_patch(document: dict[str, Any]) -> Patch:
    """Members to set; None takes one away; lists are replaced."""
    return Patch("application/merge-patch+json", document)


def json_patch(operations: list[dict[str, Any]]) -> Patch:
    """Operations of RFC 6902, all or none."""
    return Patch("application/json-patch+json", operations)


def strategic_patch(document: dict[str, Any]) -> Patch:
    """Members to set, lists merged by their keys; built-in kinds only."""
    return Patch("application/strategic-merge-patch+json", document)


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a watch: its start and its duration."""

    revision: str = ""
    # begin with everything there is and a bookmark that says so
    initial: bool = False
    seconds: int = 300

    def query(self) -> Query:
        pairs = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(self.seconds))]
        if self.revision:
            pairs.append(("resourceVersion", self.revision))
        if self.initial:
            pairs += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        return tuple(pairs)


def target_of(path: str, query: Query = ()) -> str:
    """Path and query as a request writes them."""
    encoded = quote(path, safe="/:@!$&'()*+,;=~")
    if not query:
        return encoded
    return encoded + "?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query)
