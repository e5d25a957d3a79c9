"""From inputs to objects: documents read, lists of objects taken apart, each object held against its declaration.

An input that cannot be read does not stop the others: its error goes to standard error, and the command ends with the code of an
unusable input whatever else it found.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from paddock.base.lines import LinePrinter, one_line
from paddock.fleet.documents import inputs
from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests.build import NOT_A_MAPPING
from paddock.kubernetes.meta.manifests.document import Document, Position
from paddock.kubernetes.meta.manifests.limits import DEFAULT, ManifestLimits
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubernetes.schema.messages import TYPE
from paddock.kubernetes.schema.scalars import BareWord

NO_NAME = "(no name)"
NO_KIND = "(no kind)"
# of kind and name; longer ones are mistakes
_LONGEST_TITLE = 320


class InputObject(msgspec.Struct, frozen=True):
    """An object of the input and what became of it."""

    document: Document
    admission: admission.AdmissionResult

    @property
    def title(self) -> str:
        """`Kind/name`."""
        return title(self.document.data)

    @property
    def data(self) -> dict[str, Any]:
        """The object as it was written, with every bare word as what its field makes of it."""
        data: dict[str, Any] = _resolved(self.document.data, self.admission.data)
        return data


class LocatedFinding(msgspec.Struct, frozen=True):
    """A finding with the place where the user can mend it."""

    source: str
    position: Position
    title: str
    finding: Finding


def _resolved(raw: Any, checked: Any) -> Any:
    """A bare `On` is a text where the declaration wants one, and a boolean everywhere else."""
    if isinstance(raw, BareWord):
        return checked if type(checked) in (str, bool) else raw.as_bool()
    if isinstance(raw, dict):
        members = checked if isinstance(checked, dict) else {}
        return {key: _resolved(member, members.get(key)) for key, member in raw.items()}
    if isinstance(raw, list):
        entries = checked if isinstance(checked, list) and len(checked) == len(raw) else [None] * len(raw)
        return [_resolved(entry, entries[index]) for index, entry in enumerate(raw)]
    return raw


def title(data: dict[str, Any]) -> str:
    """`Kind/name` of a raw object."""
    kind = data.get("kind")
    metadata = data.get("metadata")
    name = None
    if isinstance(metadata, dict):
        name = metadata.get("name") or metadata.get("generateName")
    shown = name if isinstance(name, str) and name else NO_NAME
    return one_line(f"{kind if isinstance(kind, str) and kind else NO_KIND}/{shown}"[:_LONGEST_TITLE])


class InputReader:
    """Reads the inputs of a command. `unusable` tells afterwards whether one could not be read."""

    def __init__(self, console: LinePrinter, settings: AdmissionSettings, limits: ManifestLimits = DEFAULT) -> None:
        self._console = console
        self._settings = settings
        self._limits = limits
        self.unusable = False

    def documents(self, names: Sequence[str]) -> Iterator[Document]:
        """Every object of the inputs, in order."""
        for name in names:
            try:
                for source in inputs.sources([name]):
                    yield from self._of_source(source)
            except UnreadableManifest as error:
                self._refuse(error)

    def _of_source(self, source: str) -> Iterator[Document]:
        try:
            shown, data = inputs.read(source, self._limits)
            yield from documents(data, shown, self._limits)
        except UnreadableManifest as error:
            self._refuse(error)

    def _refuse(self, error: UnreadableManifest) -> None:
        self.unusable = True
        self._console.say(one_line(f"{error}"))

    def subjects(self, names: Sequence[str]) -> Iterator[InputObject]:
        """Every object of the inputs, held against its declaration."""
        for document in self.documents(names):
            yield InputObject(document, admission.admit(document.data, self._settings))


def documents(data: bytes, source: str, limits: ManifestLimits = DEFAULT) -> Iterator[Document]:
    """Yield every object of a text. Raises `UnreadableManifest`."""
    for document in load(data, source, limits):
        yield from _objects_of(document)


def _objects_of(document: Document) -> Iterator[Document]:
    """The document itself, or the objects of a list (`kind: List`, and the lists that an API answers)."""
    items, kind = document.data.get("items"), document.data.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list) and (items or not document.problems):
        yield from document.items("items")
    else:
        yield document


def located(subject: InputObject, findings: Sequence[Finding]) -> list[LocatedFinding]:
    """The problems of the document and the findings of its object, by place."""
    document, name = subject.document, subject.title
    found = [LocatedFinding(document.source, problem.position, name, problem.finding) for problem in document.problems]
    if any(problem.finding.rule == NOT_A_MAPPING for problem in document.problems):
        return found
    found += [LocatedFinding(document.source, place_of(document, each), name, _as_written(document, each)) for each in findings]
    return sorted(found, key=lambda each: each.position)


def place_of(document: Document, finding: Finding) -> Position:
    """Return the position of a finding: the value, or the key of a surplus field."""
    return document.position(finding.place, of_key=finding.rule.endswith("/unknown-field"))


def _as_written(document: Document, finding: Finding) -> Finding:
    """A hint to quote a word shows the word as it stands there: 1.10 and 0777 are other numbers by the time they are checked."""
    if finding.rule != TYPE:
        return finding
    before, hint, _ = finding.message.partition('; quote it: "')
    word = document.written(finding.path) if hint else None
    return msgspec.structs.replace(finding, message=f'{before}{hint}{word}"') if word else finding
