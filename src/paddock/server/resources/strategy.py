"""Behaviour of a kind besides its schema. Pure: old and new objects and a view of the store in, a new object or a `Failure` out."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.pipeline import Pipeline

T = TypeVar("T")


class ObjectView(Protocol):
    """The newest objects, as far as a strategy may look. `resource` is `plural.group`, or the plural in the core group."""

    def get(self, resource: str, namespace: str, name: str) -> Data | None: ...

    def list(self, resource: str, namespace: str = "") -> Iterator[Data]:
        """All objects of a resource, or those of one namespace."""

    def noted(self, resource: str, note: Callable[[Data], T]) -> Iterator[tuple[tuple[str, str], T]]:
        """Yield the result of a pure function for each object, by namespace and name. It runs once for each form of an object."""

    def holders(
        self, resource: str, values_of: Callable[[Data], Iterable[Hashable]], value: Hashable, part: Any = dict
    ) -> Iterator[tuple[str, str]]:
        """Yield the namespace and name of each object that holds a value.

        `values_of` is pure, and reads each form of an object once. `part` is a type of the members that it reads; it gets no others.
        """


class WriteContext(msgspec.Struct, frozen=True):
    """The circumstances of a write."""

    view: ObjectView
    # RFC 3339 time of the request
    now: str
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = {}
    subresource: str = ""
    # what the client should know besides; whoever notices something adds to it
    said: list[str] = []


_LABELLING = ("labels", "annotations", "finalizers", "ownerReferences")


class Strategy:
    """The plain behaviour; a kind with more overrides what it changes. The objects given may be changed in place and returned."""

    def complete(self, new: Data) -> None:
        """Defaults that no schema says, and other ways to write the same, in place. What they set belongs to who sent the body."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Fields that the server sets, or drops, on creation."""
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Fields that the server keeps, or sets, on an update."""
        return new

    def prepare_status(self, kept: Data, new: Data, old: Data) -> Data:
        """Return the object after a status write; `kept` is the old object with the new status.

        The writer of the status of a built-in kind may also set labels."""
        for key in _LABELLING:
            if key in new["metadata"]:
                kept["metadata"][key] = new["metadata"][key]
            else:
                kept["metadata"].pop(key, None)
        return kept

    def states(self) -> tuple[str, ...]:
        """The subresources whose writes change the status and nothing else."""
        return ("status",)

    def taken(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Return the part of an update that is accepted, as an object; nobody owns the rest."""
        return new

    def patchable(self, patch: Data) -> Data:
        """A merge patch as it meets the object: what it says in another form of the kind, it says in the one that is stored."""
        return patch

    def appliable(self, config: Data, said: list[str]) -> Data:
        """The part of an applied configuration that can be set, and so be owned; what the client should know is `said`."""
        return config

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Rules that the schema cannot say."""
        yield from ()

    def judge(self, pipeline: Pipeline, context: WriteContext) -> Pipeline:
        """The pipeline whose rules judge a write: some depend on what is stored at the moment."""
        return pipeline

    def warnings(self, new: Data, old: Data | None) -> Iterator[str]:
        """Yield warnings for the client."""
        yield from ()

    def holds_deletion(self, old: Data) -> bool:
        """Return whether something besides finalizers keeps a deleted object (a Namespace that is not empty)."""
        return False

    def grace_seconds(self, old: Data, asked: int | None) -> int:
        """Return the grace period of a deletion that has to wait, in seconds; `asked` is the client's."""
        return 0

    def deletion_time(self, now: str, grace: int) -> str:
        """The deletionTimestamp of a deletion that has to wait."""
        return now

    def mark_deleted(self, new: Data) -> Data:
        """Return the object with the changes, besides the metadata, of a deletion that has to wait."""
        return new

    def returns_deleted(self) -> bool:
        """Return whether a deletion answers with the object instead of a Status."""
        return False

    def has_dependents(self) -> bool:
        """Return whether objects may be owned by one of these, so that a deletion may have to wait for them."""
        return True

    def before_create(self, new: Data) -> None:
        """Raise a `Failure` when no such object may be made; validation and admission have let it pass."""

    def before_delete(self, old: Data, context: WriteContext) -> None:
        """Raise a `Failure` when the object may not be deleted."""

    def wrong_name(self, name: str) -> str:
        """Return the mistake in a name, or an empty text."""
        if names.is_subdomain(name):
            return ""
        return (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )

    def counts_generation(self) -> bool:
        """Return whether metadata.generation counts changes of the spec."""
        return False


PLAIN = Strategy()


class CustomStrategy(Strategy):
    """Objects of CRDs, and Paddock's own kinds: plain, with generations."""

    def prepare_status(self, kept: Data, new: Data, old: Data) -> Data:
        return kept

    def counts_generation(self) -> bool:
        return True


CUSTOM = CustomStrategy()
