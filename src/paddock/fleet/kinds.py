"""The kinds that are machines, as the values of the dialects name them. The declarations are not loaded."""

from collections.abc import Mapping

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.base.nearest import nearest
from paddock.kubernetes import catalog
from paddock.kubernetes.client.target import Target, plain
from paddock.kubernetes.schema.dialect import Dialect
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.adapters import KindName, MachineAdapter


class MachineKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind whose objects are machines. `words` are what people call it, besides its kind, plural and group."""

    dialect: str
    group: str
    version: str
    kind: str
    plural: str
    words: tuple[str, ...] = ()
    # A machine of a dialect that becomes a VirtualMachine of KubeVirt.
    front: bool = False
    # Nothing is written to a machine that has this annotation with the value "true".
    paused_by: str = ""

    @property
    def target(self) -> Target[Data]:
        """The kind as the API serves it, with objects as plain data."""
        return plain(self.group, self.version, self.plural, self.kind)

    @property
    def adapter(self) -> MachineAdapter:
        """How its machines are read and written."""
        return adapters.of(self.dialect)

    @property
    def qualified(self) -> str:
        """`virtualmachines.kubevirt.io`."""
        return f"{self.plural}.{self.group}"

    @property
    def word(self) -> str:
        """The shortest word that names this kind and no other: `vm`, `vmi`, `stakater`, `virtrigaud`, `vitistack`."""
        return self.words[0]

    def is_called(self, word: str) -> bool:
        """Return whether a word of a command line names the kind: `vm`, `virtualmachines`, `VirtualMachine`, each also with its group."""
        name, _, group = word.lower().partition(".")
        return name in (self.kind.lower(), self.plural, *self.words) and group in ("", self.group)


def _kinds(dialect: Dialect) -> tuple[MachineKind, ...]:
    """Return the kinds of machines of a dialect. A dialect whose machines are KubeVirt's gives these its name as one more word."""
    more = (each.name for each in catalog.every_dialect() if each.extends_kubevirt) if dialect.name == catalog.HUB else ()
    words = [each.words for each in dialect.machines]
    words[:1] = [(*each, *more) for each in words[:1]]
    return tuple(
        MachineKind(
            dialect=dialect.name,
            group=each.group,
            version=each.version,
            kind=each.kind,
            plural=each.plural,
            words=known,
            front=dialect.is_front,
            paused_by=each.paused_by,
        )
        for each, known in zip(dialect.machines, words, strict=True)
    )


VM, VMI = _kinds(catalog.dialect(catalog.HUB))
FRONTS = tuple(kind for dialect in catalog.fronts() for kind in _kinds(dialect))
# The order in which a name is looked for: what people wrote goes before what was made of it.
MACHINES = (*FRONTS, VM, VMI)
# Dialects whose machines are KubeVirt's, with more in them.
_MORE = tuple(each.name for each in catalog.every_dialect() if each.extends_kubevirt)
_BY_ID: Mapping[tuple[str, str], MachineKind] = {(each.group, each.kind): each for each in MACHINES}


def named_target(kind: KindName) -> Target[Data]:
    """Return a kind of a dialect as the API serves it, with objects as plain data."""
    return plain(kind.group, kind.version, kind.plural, kind.kind, namespaced=kind.namespaced)


class NoMachineKind(Terminal):
    """A word names no kind of machine."""


def of(group: str, kind: str) -> MachineKind | None:
    """Return the kind of machine of a group and kind."""
    return _BY_ID.get((group, kind))


def adapter(kind: tuple[str, str]) -> MachineAdapter:
    """Return how machines of a group and kind are read and written."""
    found = _BY_ID.get(kind)
    return found.adapter if found is not None else MachineAdapter()


def called(word: str) -> tuple[MachineKind, ...]:
    """Return the kinds that a word names, the likeliest first. Raises `NoMachineKind`."""
    found = tuple(each for each in MACHINES if each.is_called(word))
    if not found:
        known = {each.kind.lower() for each in MACHINES} | {name for each in MACHINES for name in each.words}
        meant = nearest(word.lower(), known)
        hint = f'did you mean "{meant}"?' if meant else f"the words are {', '.join(each.word for each in MACHINES)}"
        raise NoMachineKind(f'no kind of machine is called "{word}"', fix=hint)
    return found


def dialect_of(kind: MachineKind, data: Data) -> str:
    """Return the dialect of an object. A machine of KubeVirt may have something in it that another dialect knows as its own."""
    return next((name for name in _MORE if adapters.of(name).is_in(data)), kind.dialect) if kind is VM else kind.dialect
