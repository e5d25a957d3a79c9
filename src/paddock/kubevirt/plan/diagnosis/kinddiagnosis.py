"""What the search for causes has to know of the kinds of a dialect. Pure.

The module that the value of a dialect names has one `DialectDiagnosis`. Kinds of KubeVirt and Kubernetes are the search's own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

import msgspec

from paddock.base.jsondata import Data, entries, texts
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.dialect import KindId

# good: as it should be; off: at rest, as somebody wanted; waits: on its way; bad: something is wrong; going: being deleted;
# unknown: it does not say, and no rule knows its kind
State = Literal["good", "off", "waits", "bad", "going", "unknown"]


class ObjectVerdict(msgspec.Struct, frozen=True):
    """The state of an object. `word` goes on after the object's name: `runs`, `is stopped, as it should be`."""

    state: State
    word: str


class MadeObject(NamedTuple):
    """An object that was made of another one. `path` is the field that says so; without a namespace it is in that of the other one."""

    kind: KindId
    name: str
    path: str = ""
    namespace: str = ""


class OwnStatement(NamedTuple):
    """What an object says in fields of its own, and where."""

    field: str
    message: str
    reason: str = ""


class MissingKind(NamedTuple):
    """The rule for a named object that does not exist, what people call the kind, and how they list those that exist."""

    rule: str
    title: str
    listing: str
    # those that exist without anybody's work
    built_in: str = ""


class KindDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a kind."""

    # without a namespace
    is_wide: bool = False
    # It is there for others to use: nothing can go wrong with it.
    is_passive: bool = False
    # its state by its own status; None: by its conditions
    verdict: Callable[[Data], ObjectVerdict] | None = None
    made: Callable[[Data], Iterable[MadeObject]] | None = None
    # the storage classes that it names, with the fields
    classes: Callable[[Data], Iterable[tuple[str, str]]] | None = None
    # the kind of the objects that its selector selects
    members: KindId | None = None
    missing: MissingKind | None = None
    statement: Callable[[Data], OwnStatement | None] | None = None
    # It is a machine whose VirtualMachine has its name, and it names the image.
    is_namesake: bool = False
    # It is a machine of a Provider, whose word may be so many seconds old while it runs and while it is off.
    polls: tuple[float, float] | None = None
    # Its disk is filled from the address in its spec.
    is_image: bool = False
    # It is a network, with a NetworkAttachmentDefinition of the same name.
    is_network: bool = False


class DialectDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the kinds of a dialect. `finalizers` are the beginnings of those that its controllers take off."""

    kinds: Mapping[KindId, KindDiagnosis]
    finalizers: tuple[str, ...] = ()


_NOTHING = KindDiagnosis()


@cache
def every() -> tuple[DialectDiagnosis, ...]:
    """What is known of each dialect, in the order of the list."""
    return tuple(import_module(each.diagnosis).DIAGNOSIS for each in catalog.every_dialect() if each.diagnosis)


@cache
def _kinds() -> Mapping[KindId, KindDiagnosis]:
    return {kind: known for each in every() for kind, known in each.kinds.items()}


def of(kind: KindId) -> KindDiagnosis:
    """Return what is known of a kind."""
    return _kinds().get(kind, _NOTHING)


def items() -> Iterator[tuple[KindId, KindDiagnosis]]:
    """Yield all kinds that something is known of."""
    yield from _kinds().items()


# --- for the parts of dialects ----------------------------------------------------------------------------------------------


def conditions(data: Any) -> Mapping[str, Data]:
    """The conditions of an object by type."""
    return {texts(each, "type"): each for each in entries(data, "status", "conditions")}


def holds(data: Any, type: str, status: str = "True") -> bool:
    """Return whether a condition has this status."""
    return texts(conditions(data).get(type), "status") == status
