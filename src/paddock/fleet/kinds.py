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

_KUBERMATIC_NOTES = ("virtualization.k8c.io/", "kubevirt.io/immediate-data-volume-creation")
# The condition of a machine whose sources are Kubermatic's.
_KUBERMATIC_CONDITION = "DataSourceResolved"


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


def _front(name: str) -> MachineKind:
    """Return the kind of a front dialect; without the dialect, a kind that no object has."""
    missing = MachineKind(dialect=name, group=name, version="", kind="", plural="", words=(name,), front=True)
    return next((each for each in FRONTS if each.dialect == name), missing)


VM, VMI = _kinds(catalog.dialect(catalog.HUB))
FRONTS = tuple(kind for dialect in catalog.fronts() for kind in _kinds(dialect))
STAKATER, VIRTRIGAUD, VITISTACK = _front("stakater"), _front("virtrigaud"), _front("vitistack")
# The order in which a name is looked for: what people wrote goes before what was made of it.
MACHINES = (*FRONTS, VM, VMI)
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
    """Return the dialect of an object. Kubermatic's machines are KubeVirt's with annotations or sources of Kubermatic."""
    return "kubermatic" if kind is VM and _is_kubermatics(data) else kind.dialect


def _is_kubermatics(data: Data) -> bool:
    if any(each.get("type") == _KUBERMATIC_CONDITION for each in (data.get("status") or {}).get("conditions") or ()):
        return True
    templates = (data.get("spec") or {}).get("dataVolumeTemplates") or ()
    notes = [(each.get("metadata") or {}).get("annotations") or {} for each in (data, *templates)]
    return any(key.startswith(_KUBERMATIC_NOTES) for each in notes for key in each)
