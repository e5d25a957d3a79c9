"""Relations between the objects of an input: duplicates, references to missing objects, and foreign kinds.

Objects are taken one by one and not kept (besides the few that `SizeChecks` compares), so that an input may be long.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.base.nearest import nearest
from paddock.fleet.documents.objects import InputObject, LocatedFinding, located
from paddock.fleet.documents.sizes import SizeChecks
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.meta.manifests.document import Position
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds import macs
from paddock.kubevirt.plan.changes.references import FieldReference, provided, references

REFERENCE = "input/reference"
TWICE = "input/duplicate-object"
FOREIGN = "input/foreign-kind"
_CLUSTER = ""
_FEW = 2
# Looking for what is meant takes time for every name there is; beyond this many comparisons nobody is helped.
_MOST_COMPARISONS = 20_000


class _Open(msgspec.Struct, frozen=True):
    """A reference whose object has not been seen yet. `among` is the list of findings that it joins."""

    among: int
    place: LocatedFinding
    to: tuple[KindId, ...]
    namespace: str
    name: str


class HardwareAddresses:
    """Machines of an input whose network interfaces have one address on one network. Only their interfaces are kept."""

    def __init__(self) -> None:
        # namespace, network, address -> the machine that had it first
        self._first: dict[tuple[str, str, str], str] = {}
        self._found: list[tuple[int, LocatedFinding]] = []

    def add(self, number: int, subject: InputObject) -> None:
        kind = subject.admission.kind
        if kind is None or (kind.group, kind.kind) != ("kubevirt.io", "VirtualMachine"):
            return
        metadata = subject.admission.data.get("metadata") or {}
        namespace, name = metadata.get("namespace") or DEFAULT_NAMESPACE, metadata.get("name") or ""
        for interface in macs.cards(subject.admission.data):
            first = self._first.setdefault((namespace, interface.network, interface.address), name)
            if first != name:
                position: Position = subject.document.position(interface.path)
                warning = finding.warning(interface.path, macs.message(first), macs.RULE)
                self._found.append((number, LocatedFinding(subject.document.source, position, subject.title, warning)))

    def findings(self) -> Iterator[tuple[int, LocatedFinding]]:
        """Every second machine with an address."""
        yield from self._found


class Inventory:
    """The objects of an input."""

    def __init__(self, settings: AdmissionSettings) -> None:
        self._sizes = SizeChecks(settings)
        self._macs = HardwareAddresses()
        self._found: list[list[LocatedFinding]] = []
        # kind -> namespace -> names
        self._names: dict[KindId, dict[str, set[str]]] = {}
        self._first: dict[tuple[KindId, str, str], tuple[str, Position]] = {}
        self._open: list[_Open] = []
        self._comparisons = 0
        # Who refers to a namespace of which the input has nothing refers to what others keep.
        self._namespaces: set[str] = set()

    def add(self, subject: InputObject) -> None:
        """Take in one object with everything that was found in it alone."""
        kind = subject.admission.kind
        found = subject.admission.findings
        if kind is None:
            found = foreign(subject.document.data, found)
        self._found.append(located(subject, found))
        self._sizes.add(len(self._found) - 1, subject)
        self._macs.add(len(self._found) - 1, subject)
        group, name = _group(subject.document.data), subject.document.data.get("kind")
        if isinstance(name, str):
            self._identify(subject, (group, name), namespaced=kind is None or kind.namespaced)

    def _identify(self, subject: InputObject, kind: KindId, *, namespaced: bool) -> None:
        document, data = subject.document, subject.admission.data
        metadata = document.data.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = _text(metadata.get("namespace")) or DEFAULT_NAMESPACE
        name = _text(metadata.get("name"))
        self._namespaces.add(namespace)
        if name:
            self._name(subject, kind, namespace if namespaced else _CLUSTER, name)
        for what, provided_name in provided(*kind, data):
            self._names.setdefault(what, {}).setdefault(namespace, set()).add(provided_name)
        for reference in references(*kind, data):
            # A default is nobody's mistake.
            if document.written(reference.path) is not None:
                self._open.append(self._refer(subject, reference, namespace))

    def _name(self, subject: InputObject, kind: KindId, namespace: str, name: str) -> None:
        place = (subject.document.source, subject.document.position(("metadata", "name")))
        source, position = self._first.setdefault((kind, namespace, name), place)
        if (source, position) != place:
            text = f"the same object stands twice, first at {source}:{position.line}:{position.column}"
            self._found[-1].append(LocatedFinding(*place, subject.title, finding.warning(("metadata", "name"), text, TWICE)))
        self._names.setdefault(kind, {}).setdefault(namespace, set()).add(name)

    def _refer(self, subject: InputObject, reference: FieldReference, namespace: str) -> _Open:
        document = subject.document
        there = reference.namespace or namespace
        empty = finding.warning(reference.path, "", REFERENCE)
        place = LocatedFinding(document.source, document.position(reference.path), subject.title, empty)
        return _Open(len(self._found) - 1, place, reference.to, there, reference.name)

    def findings(self) -> Iterator[LocatedFinding]:
        """Everything found, in the order of the input."""
        for each in self._open:
            if each.namespace in self._namespaces and not any(self._has(kind, each.namespace, each.name) for kind in each.to):
                found = msgspec.structs.replace(each.place.finding, message=self._missing(each))
                self._found[each.among].append(msgspec.structs.replace(each.place, finding=found))
        for number, located_finding in (*self._sizes.findings(), *self._macs.findings()):
            self._found[number].append(located_finding)
        for findings in self._found:
            yield from sorted(findings, key=lambda each: each.position)

    def _has(self, kind: KindId, namespace: str, name: str) -> bool:
        names = self._names.get(kind, {})
        return name in names.get(namespace, ()) or name in names.get(_CLUSTER, ())

    def _missing(self, reference: _Open) -> str:
        kind = reference.to[0]
        where = "" if reference.namespace == DEFAULT_NAMESPACE else f" of namespace {reference.namespace}"
        text = f'the {kind[1]} "{reference.name}"{where} is not in this input'
        known = self._names.get(kind, {})
        names = known.get(reference.namespace, set()) | known.get(_CLUSTER, set())
        self._comparisons += len(names)
        meant = nearest(reference.name, names) if self._comparisons <= _MOST_COMPARISONS else None
        if meant:
            return f'{text}; did you mean "{meant}"?'
        if kind[0] and 0 < len(names) <= _FEW:
            return f"{text}; it has " + " and ".join(f'"{name}"' for name in sorted(names))
        return text


def foreign(data: dict[str, Any], findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the finding about an object of a foreign kind: a note, or a suggestion if one of Paddock's kinds is meant."""
    kind, group = data.get("kind"), _group(data)
    if not isinstance(kind, str) or not kind or not isinstance(data.get("apiVersion"), str):
        return findings
    known = catalog.known()
    same_name = {known_group for known_group, known_kind in known if known_kind == kind}
    siblings = {known_kind for known_group, known_kind in known if known_group == group}
    meant_group = bool(same_name) and (group in {each for each, _ in known} or nearest(group, same_name) is not None)
    meant = nearest(kind, siblings)
    # One letter more or less is a slip; PersistentVolume is not one for PersistentVolumeClaim.
    if meant_group or (meant is not None and abs(len(meant) - len(kind)) <= 1):
        return findings
    text = f"{data['apiVersion']} {kind} is none of Paddock's kinds and was not checked"
    return (finding.note(("kind",), text, FOREIGN),)


def _group(data: dict[str, Any]) -> str:
    version = data.get("apiVersion")
    return admission.split_api_version(version)[0] if isinstance(version, str) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
