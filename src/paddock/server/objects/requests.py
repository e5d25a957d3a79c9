"""The request and the answer of a write, and the parties that judge it: values and protocols, no behaviour."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from paddock.base.jsondata import Data
from paddock.server.resources.resource import ServedResource

# Tens of thousands of fields fit into what is larger, and nearly everything is smaller.
LARGE_BYTES = 256 * 1024


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a write, and its client."""

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    # what admission wants the audit log to hold
    notes: dict[str, str] = {}
    # the options that the client gave, by name
    given: dict[str, str] = {}
    manager: str = ""
    field_validation: str = ""
    dry_run: bool = False
    subresource: str = ""
    # the server's own, without which it would not come up: nobody may keep it from that
    unasked: bool = False
    # the object is made by an apply: its owner is an applier
    applies: bool = False
    # the work takes a part of a second, so the event loop does not do it
    is_large: bool = False


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a deletion, and its client."""

    user: str = ""
    groups: tuple[str, ...] = ()
    user_uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    notes: dict[str, str] = {}
    dry_run: bool = False
    # "", Orphan, Background or Foreground
    propagation: str = ""
    # seconds; told to admission, and nothing here waits
    grace: int | None = None
    uid: str | None = None
    revision: str | None = None


class Deleted(msgspec.Struct, frozen=True):
    """The answer to a deletion: the object as it was, or as it waits for its finalizers."""

    value: bytes
    gone: bool
    uid: str = ""
    warnings: tuple[str, ...] = ()


class Written(msgspec.Struct, frozen=True):
    """The answer to a write: bytes in the version of the request."""

    value: bytes
    created: bool = False
    warnings: tuple[str, ...] = ()
    name: str = ""


class Attempt:
    """A write as admission sees it: what it would make of which object, and who asks. `new` is None for a deletion."""

    __slots__ = ("details", "name", "namespace", "new", "old", "operation", "options", "resource", "warnings")

    def __init__(self, resource: ServedResource, operation: str, new: Data | None, old: Data | None, options: Options) -> None:
        meta = (new or old or {}).get("metadata") or {}
        self.resource = resource
        # CREATE, UPDATE, DELETE or CONNECT
        self.operation = operation
        self.new = new
        self.old = old
        self.options = options
        self.name: str = meta.get("name", "")
        self.namespace: str = meta.get("namespace", "")
        self.warnings: list[str] = []
        # the options of the operation that only this operation has
        self.details: Data = {}


class AdmissionChain(Protocol):
    """The chain that may change, judge or bound a write before it is decided: webhooks, policies, quotas."""

    def concerns(self, resource: ServedResource, operation: str, subresource: str) -> bool:
        """Return whether anything changes or judges such a write. For most writes nothing does."""

    async def change(self, attempt: Attempt) -> Data | None:
        """The new object as it shall be, None when it stays as it is; raises a `Failure` when it is refused."""

    async def judge(self, attempt: Attempt) -> None:
        """Raise a `Failure` when the write is refused."""

    def bound(self, resource: ServedResource, new: Data, old: Data | None, options: Options) -> None:
        """Raise a `Failure` when a namespace would hold more than it may. Does not wait: the write is decided right after."""


class ObjectClock(Protocol):
    """A source of time and identity."""

    def now(self) -> str:
        """RFC 3339, UTC, whole seconds."""

    def uid(self) -> str: ...

    def random(self, count: int) -> bytes: ...


class Proposal(msgspec.Struct, frozen=True):
    """A new form of an object.

    `settled`: its managedFields are already those of the new form (server-side apply). `whole`: it shares nothing with the old form.
    """

    data: Data
    settled: bool = False
    whole: bool = False


# Makes the new form of an object from its old one, in the version of the request. It hands on what it leaves alone, and changes nothing
# in place.
Compute = Callable[[Data], Proposal]
