"""Paddock's own verdict on an object, in the form in which the server's is read; and the examples that both are shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.schema.finding import Finding, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests.kit import examplefiles
from tests.reference.client import Json, Resource
from tests.reference.verdict import Complaint, Question, Verdict

# Good objects of kinds for which users need no example.
GOOD = Path(__file__).parent / "good"


@dataclass(frozen=True)
class Example:
    """One document of an example file."""

    origin: str
    document: Json

    @property
    def kind(self) -> str:
        """`Kind.group`; the core group adds nothing."""
        return name_of(self._declared)

    @property
    def resource(self) -> Resource:
        """The resource of a server: in the version it is written in."""
        return resource_of(self._declared, admission.split_api_version(self.document["apiVersion"])[1])

    @property
    def _declared(self) -> Kind:
        kind, wrong = admission.identify(self.document)
        if kind is None:
            raise LookupError(f"{self.origin}: {wrong}")
        return kind


def place_of(path: Path) -> str:
    """Return where an example stands: `stakater/examples/minimal.yaml`."""
    return "/".join(path.parts[-3:])


def examples() -> Iterator[Example]:
    """Every document of every dialect's examples."""
    for path in examplefiles.examples():
        yield from documents_of(path, place_of(path))


def good_objects() -> Iterator[Example]:
    """The examples, and good objects of the kinds that have none."""
    yield from examples()
    for path in sorted(GOOD.glob("*.yaml")):
        yield from documents_of(path, path.name)


def documents_of(path: Path, origin: str) -> Iterator[Example]:
    """The documents of one file, as Paddock reads them."""
    for document in load(path.read_bytes(), origin):
        yield Example(origin, document.data)


def resource_of(kind: Kind, version: str = "") -> Resource:
    """Return the resource of a kind on a server, in its storage version unless another served one is given."""
    served = version if version in [each.name for each in kind.versions] else kind.storage_version
    return Resource(kind.group, served, kind.plural, kind.kind, kind.namespaced)


def name_of(kind: Kind) -> str:
    """`Kind.group`; the core group adds nothing."""
    return f"{kind.kind}.{kind.group}".rstrip(".")


def judge(question: Question, settings: AdmissionSettings | None = None) -> Verdict:
    """Return Paddock's verdict on an object, or on a change."""
    settings = settings or AdmissionSettings()
    admitted = admission.admit(question.thing, settings)
    if question.old is not None:
        before = admission.admit(question.old, settings)
        if before.value is None:
            raise ValueError(f"the old form is of no kind that Paddock knows: {question.old.get('kind')}")
        admitted = admission.admit_change(before.value, admitted, settings)
    return verdict_of(admitted.findings)


def verdict_of(findings: "tuple[Finding, ...] | list[Finding]") -> Verdict:
    """The verdict that findings amount to: only errors refuse."""
    errors = [found for found in findings if found.severity is Severity.ERROR]
    return Verdict(not errors, tuple(Complaint(found.field, found.rule, found.message) for found in errors))
